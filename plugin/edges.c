// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each change of what the CPU is at, in its order: two words each, many to a record.
 *
 * The first word: the kind in the low byte, then instructions since the edge before
 * (24 bits), then a number. The second: the low halves of the address and of the
 * caller, for the kernel's image has the same high halves everywhere. Each record
 * begins with the count of instructions that its first edge counts from.
 */
#include "arch.h"

/* At most so many are written, and so many to a record. */
#define EDGES_MOST (12U << 20)
#define BATCH 510

static uint64_t batch[1 + BATCH];
static unsigned int used;
static uint64_t last_count;

/* What the CPU was at before the first edge. */
static uint64_t start[5];
static bool has_started, start_is_put;
/*
 * Whether the batch begins with edges that may be too early. The first interrupt after
 * idle time is such until it reads the clock: a wakeup's may be the first that counts.
 */
static bool are_early;

void put_edges(void)
{
	/* Where the last one is not too early, all may be needed; where it is, all are. */
	if (used)
		settle_early_edges(may_be_early(last_count));
	if (used && !start_is_put) {
		start_is_put = true;
		put_record(START, start, 5);
	}
	if (used)
		put_record(EDGES, batch, used);
	used = 0;
}

void settle_early_edges(bool are_too_early)
{
	if (are_early && are_too_early) {
		told.edges -= used / 2;
		used = 0;
		has_started = false;
	}
	are_early = false;
}

static void note_start(uint64_t count)
{
	struct state now;

	if (has_started)
		return;
	has_started = true;
	now = state_now();
	start[0] = count;
	start[1] = now.irqs_off;
	start[2] = now.preempt_count;
	start[3] = now.in_user;
	start[4] = now.task ? number_of_task(now.task) : 0;
}

/* 0 of what is far from the kernel's image. */
static uint64_t low_half(uint64_t address)
{
	return (address ^ plan.starts_end) >> 32 ? 0 : address & 0xffffffff;
}

void put_edge(enum edge edge, const struct place *place, uint64_t count, uint64_t caller,
	      uint32_t value)
{
	uint64_t since = count - last_count;

	if (!are_edges_written(count))
		return;
	/* Which task runs cannot be read yet, nor does anything change. */
	if (!has_started && arch->hides_kernel && edge == USER_CLOCK)
		return;
	if (told.edges == EDGES_MOST) {
		told.edges_lost++;
		return;
	}
	told.edges++;
	/* Backwards, which a reader refuses, or too far for 24 bits: the next record begins. */
	if (!used || used + 2 > BATCH || since >> 24) {
		put_edges();
		batch[used++] = count;
		since = 0;
	}
	note_start(count);
	are_early = are_early || may_be_early(count);
	last_count = count;
	batch[used++] = edge | since << 8 | (uint64_t)value << 32;
	batch[used++] = low_half(place->address) | low_half(caller) << 32;
}

/* The first instruction of a function that is followed, before its block is counted. */
void at_function(unsigned int cpu, void *data)
{
	const struct place *place = data;
	uint64_t count = count_now();

	if (!are_edges_written(count))
		return;
	switch (place->entry->way) {
	case TO_SOFTIRQ:
		put_edge(SOFTIRQ, place, count, arch->return_address(), place->entry->value);
		break;
	case TO_WAKE:
		put_edge(WAKE, place, count, arch->return_address(), number_of_task(arch->argument(0)));
		break;
	case TO_SCHEDULE:
		put_edge(SCHEDULE, place, count, arch->return_address(), 0);
		break;
	case TO_HANDLER:
		put_edge(INTERRUPT_IS, place, count, arch->return_address(), arch->argument(1));
		break;
	case TO_TAKE:
		if (!may_be_early(count))
			at_take(place);
		break;
	case TO_RELEASE:
		if (!may_be_early(count))
			at_release(place);
		break;
	case TO_ASK:
		put_edge(ASK, place, count, arch->return_address(), 0);
		break;
	}
}

/* Under models that preempt, the instruction there does nothing. */
void at_ask(unsigned int cpu, void *data)
{
	const struct place *place = data;

	put_edge(ASK, place, count_at(place), 0, place->how);
}

/* A task's flags are its first word. */
void at_flags(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	const struct place *place = data;

	if (are_edges_written(count_at(place)) && address == state_now().task)
		at_ask(cpu, data);
}

void at_user_clock(unsigned int cpu, void *data)
{
	const struct place *place = data;

	note_first_reading(count_at(place));
	put_edge(USER_CLOCK, place, count_at(place), 0, 0);
}

/* Tasks */

/* At most so many are known at a time; of the others each mention is a new one. */
#define TASKS 4096

struct task {
	uint64_t at;
	uint32_t number;
	/* Pid, priority, policy, name. */
	uint64_t words[4];
};

/* The number of the task at @at, which counts from 1. It has another one with another name or priority. */
uint32_t number_of_task(uint64_t at)
{
	static struct task tasks[TASKS];
	struct task *task = &tasks[(at >> 6) * 0x9e3779b97f4a7c15ULL >> 52];
	uint64_t words[4];

	words[0] = half_word_at(at + plan.pid);
	words[1] = half_word_at(at + plan.prio) | (uint64_t)half_word_at(at + plan.policy) << 32;
	words[2] = word_at(at + plan.comm);
	words[3] = word_at(at + plan.comm + 8);
	if (task->at == at && !memcmp(task->words, words, sizeof(words)))
		return task->number;
	task->at = at;
	task->number = ++told.tasks;
	memcpy(task->words, words, sizeof(words));
	put_record(TASK, words, 4);
	return task->number;
}
