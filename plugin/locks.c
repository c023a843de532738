// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Locks that are taken and released, as edges: the reader puts them together.
 *
 * A lock is taken where the function that takes it returns, and released where the
 * one that releases it begins. A function has returned where code begins at the
 * address that it returns to, with the stack pointer that a return leaves. Until then
 * each block of code that begins is compared, but only while the task that called
 * runs: it may sleep for long before it has the lock.
 */
#include "arch.h"

/* At most so many calls have not returned yet, of all tasks. */
#define CALLS 256

/* How the value that is returned says whether the lock was taken. */
enum success { ALWAYS, IF_NOT_ZERO, IF_ZERO };

struct call {
	uint64_t task, returns_to, sp;
	const struct entry *entry;
	uint32_t lock;
};
static struct call calls[CALLS];
static unsigned int used;

/* The task that runs, once a lock was taken. */
static uint64_t current;

/* Has blocks call back while a call of the task that runs has not returned. */
static void count_awaited(void)
{
	unsigned int i, awaited = 0;

	for (i = 0; i < used; i++)
		awaited += calls[i].task == current;
	call_back_if_awaited(awaited);
}

void switch_locks_to(uint64_t task)
{
	current = task;
	if (used)
		count_awaited();
}

/* Locks are numbered in place of having their addresses in each edge. */
#define LOCKS 16384

static uint32_t number_of_lock(uint64_t at)
{
	static struct {
		uint64_t at;
		uint32_t number;
	} locks[LOCKS];
	unsigned int place = (at >> 2) * 0x9e3779b97f4a7c15ULL >> 50;

	if (locks[place].at != at || !locks[place].number) {
		const uint64_t words[] = { at, arch->own() };

		locks[place].at = at;
		locks[place].number = ++told.locks;
		put_record(LOCK, words, 2);
	}
	return locks[place].number;
}

/* The first instruction of a function that takes a lock, or tries to. */
void at_take(const struct place *place)
{
	uint32_t lock = number_of_lock(arch->argument(0));
	struct call *call = &calls[used];

	put_edge(LOCK_ASKED, place, count_now(), arch->return_address(), lock);
	if (used == CALLS) {
		told.calls_lost++;
		return;
	}
	if (!current)
		current = arch->task();
	used++;
	*call = (struct call){ current, arch->return_address(),
			       arch->stack_pointer() + (arch->keeps_return_address ? 0 : 8),
			       place->entry, lock };
	count_awaited();
}

/* The first instruction of a function that releases a lock, or a part of it. */
void at_release(const struct place *place)
{
	put_edge(LOCK_RELEASED, place, count_now(), arch->return_address(),
		 number_of_lock(arch->argument(0)));
}

static bool has_succeeded(enum success success)
{
	switch (success) {
	case IF_NOT_ZERO:
		return arch->result() & 0xff;
	case IF_ZERO:
		return !(arch->result() & 0xffffffff);
	default:
		return true;
	}
}

/* A block begins at @address, while a call of the task that runs has not returned. */
void at_awaited(uint64_t address)
{
	unsigned int i = used;

	while (i--) {
		const struct call call = calls[i];
		struct place place = { .address = call.entry->start };

		if (call.returns_to != address || call.sp != arch->stack_pointer())
			continue;
		for (used--; i < used; i++)
			calls[i] = calls[i + 1];
		put_edge(has_succeeded(call.entry->value) ? LOCK_TAKEN : LOCK_REFUSED, &place,
			 count_now(), address, call.lock);
		count_awaited();
		return;
	}
}
