// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In which functions the time of sections goes, and by whom these were called.
 *
 * While a section is open, each block of code that begins ends the time of the one
 * before. So the times of a section add up to its length.
 *
 * A function is entered where a block begins at its first instruction, and has
 * returned where the stack pointer is above what it was there. Who is on the stack
 * before the section began is not known: when what began it returns, its caller
 * stands in its place.
 */
#include "arch.h"

/* At most so many different calls in one section, and in all sections with the same ends together. */
#define TIMES (1U << 13)
#define TIMES_USED (TIMES / 4 * 3)
#define SPENT_MOST (1U << 20)
#define SPENT_USED (SPENT_MOST / 4 * 3)
/* At most so many different calls at all, and so many within each other. */
#define CALLS (1U << 18)
#define CALLS_USED (CALLS / 4 * 3)
#define DEPTH_MOST 128

/* No stack of the kernel is longer. Addresses further apart are on different ones. */
#define STACK (1U << 15)

/* How many instructions a section spent in a function, called as it was. */
struct time {
	uint64_t call, count;
	/* Those of earlier sections do not count. */
	uint64_t section;
};
/* A function on the stack. */
struct frame {
	uint64_t sp, function, call;
};
static struct {
	bool is_followed;
	/* The block that runs, the call that it is of, and since when. */
	const void *block;
	uint64_t call, since;
	uint64_t section;
	unsigned int used, depth;
	uint16_t used_at[TIMES_USED];
	struct time times[TIMES];
	struct frame stack[DEPTH_MOST];
} open[KINDS];

/* A function that was called by another call, whose number is that of the first by one above zero. */
struct call {
	uint64_t caller, function;
};
static struct call *calls;
static uint32_t *call_at;
static unsigned int calls_used;

/* The same of all sections with the same ends, whose number is above that of the first by one. */
struct spent {
	uint64_t site, call, count;
};
static struct spent *all;
static unsigned int all_used;

bool make_room_for_times(void)
{
	all = calloc(SPENT_MOST, sizeof(*all));
	calls = calloc(CALLS_USED, sizeof(*calls));
	call_at = calloc(CALLS, sizeof(*call_at));
	return all && calls && call_at;
}

static uint64_t hash_of(uint64_t value)
{
	value *= 0x9e3779b97f4a7c15ULL;
	return value ^ value >> 32;
}

/* The number of the call of @function by the call @caller; 0 if there is no room. */
static uint64_t call_of(uint64_t caller, uint64_t function)
{
	uint64_t at = hash_of(function + caller * 0x100000001b3ULL) % CALLS;

	for (; call_at[at]; at = (at + 1) % CALLS) {
		const struct call *call = &calls[call_at[at] - 1];

		if (call->caller == caller && call->function == function)
			return call_at[at];
	}
	if (calls_used == CALLS_USED)
		return 0;
	calls[calls_used] = (struct call){ caller, function };
	call_at[at] = ++calls_used;
	return calls_used;
}

/* What finds no room is missing from the sum, as the reader sees. */
static void add(enum kind kind, uint64_t call, uint64_t count)
{
	uint64_t at = hash_of(call) % TIMES;
	struct time *time;

	if (!count || !call)
		return;
	for (;; at = (at + 1) % TIMES) {
		time = &open[kind].times[at];
		if (time->section != open[kind].section)
			break;
		if (time->call == call) {
			time->count += count;
			return;
		}
	}
	if (open[kind].used == TIMES_USED)
		return;
	open[kind].used_at[open[kind].used++] = at;
	*time = (struct time){ call, count, open[kind].section };
}

static bool is_near(uint64_t one, uint64_t other)
{
	return one - other < STACK || other - one < STACK;
}

/* The call that code of @function is of which runs with this stack pointer. */
static uint64_t follow_call(enum kind kind, uint64_t function, bool is_first, uint64_t sp)
{
	struct frame *stack = open[kind].stack;
	unsigned int depth = open[kind].depth, i;
	uint64_t now = sp;

	/* Back from another stack, as that of interrupts. */
	if (depth && !is_near(stack[depth - 1].sp, sp))
		for (i = depth; i--;)
			if (is_near(stack[i].sp, sp)) {
				depth = i + 1;
				break;
			}
	while (depth && is_near(stack[depth - 1].sp, sp) && stack[depth - 1].sp < sp)
		depth--;
	/* Back from a function without a frame of its own. */
	if (arch->keeps_return_address && depth > 1 && !is_first && stack[depth - 1].sp == sp &&
	    stack[depth - 1].function != function && stack[depth - 2].function == function)
		depth--;
	if (depth == DEPTH_MOST || (depth && stack[depth - 1].function == function &&
				    (!is_first || stack[depth - 1].sp == sp))) {
		open[kind].depth = depth;
		return stack[depth - 1].call;
	}
	/* What jumps into another function is not called back. */
	if (depth && (!is_first || stack[depth - 1].sp == sp))
		sp = stack[--depth].sp;
	/* A call from here will come in with the same stack pointer, and is none from this one into another function. */
	if (arch->keeps_return_address && !is_first && sp == now)
		sp++;
	stack[depth].sp = sp;
	stack[depth].function = function;
	stack[depth].call = call_of(depth ? stack[depth - 1].call : 0, function);
	open[kind].depth = depth + 1;
	return stack[depth].call;
}

/* A section begins at @address, behind @block or in it. */
void begin_times(enum kind kind, const struct block *block, uint64_t address, uint64_t count)
{
	const struct entry *entry = entry_at(address);

	open[kind].is_followed = true;
	open[kind].block = block;
	open[kind].depth = 0;
	open[kind].call = follow_call(kind, function_of(block), false, arch->stack_pointer());
	/* What was interrupted has called nobody. */
	if (entry && entry->way <= BY_SYSTEM_CALL)
		open[kind].stack[0].sp = arch->stack_pointer();
	open[kind].since = count;
	open[kind].section++;
	open[kind].used = 0;
}

void enter_block(const struct block *block, uint64_t count)
{
	uint64_t sp = 0;
	enum kind kind;

	for (kind = 0; kind < KINDS; kind++) {
		/* A block that runs again goes on. */
		if (!open[kind].is_followed || open[kind].block == block)
			continue;
		if (!sp)
			sp = arch->stack_pointer();
		add(kind, open[kind].call, count - open[kind].since);
		open[kind].block = block;
		open[kind].call =
			follow_call(kind, function_of(block), is_first_of(block), sp);
		open[kind].since = count;
	}
}

/* Another task has the CPU, and another stack: who is on that is not known. */
void forget_calls(void)
{
	enum kind kind;

	for (kind = 0; kind < KINDS; kind++)
		open[kind].depth = 0;
}

/* Others will have the addresses of those that were. */
void forget_blocks(void)
{
	enum kind kind;

	for (kind = 0; kind < KINDS; kind++)
		open[kind].block = NULL;
}

/* Returns whether the section was followed. */
bool end_times(enum kind kind, uint64_t count)
{
	if (!open[kind].is_followed)
		return false;
	add(kind, open[kind].call, count - open[kind].since);
	open[kind].is_followed = false;
	return true;
}

unsigned int followed_sections(void)
{
	return open[IRQS_OFF].is_followed + open[PREEMPT_OFF].is_followed;
}

/* Adds the times of the section that ended last to those of all with its ends. */
void keep_times(enum kind kind, unsigned int site)
{
	unsigned int i;

	for (i = 0; i < open[kind].used; i++) {
		const struct time *time = &open[kind].times[open[kind].used_at[i]];
		uint64_t at = hash_of((time->call << 15) + site) % SPENT_MOST;

		while (all[at].site && (all[at].site != site + 1 || all[at].call != time->call))
			at = (at + 1) % SPENT_MOST;
		if (!all[at].site) {
			if (all_used == SPENT_USED)
				continue;
			all_used++;
			all[at].site = site + 1;
			all[at].call = time->call;
		}
		all[at].count += time->count;
	}
}

/* Writes all calls, in the order of their numbers, before what was spent in them. */
void put_times(void)
{
	unsigned int i;

	for (i = 0; i < calls_used; i++) {
		const uint64_t words[] = { calls[i].caller, calls[i].function };

		put_record(CALL, words, 2);
	}
	for (i = 0; all && i < SPENT_MOST; i++)
		if (all[i].site) {
			const uint64_t words[] = { all[i].site - 1, all[i].call, all[i].count };

			put_record(SPENT, words, 3);
		}
}
