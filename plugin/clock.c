// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guest's time, of the instructions that were counted, and which times matter.
 *
 * An instruction takes 2^shift ns, and while the CPU is halted the clock goes on
 * without instructions. How much was skipped shows when the guest next reads its
 * clock: ns = (instructions << shift) + skipped.
 */
#include "arch.h"

struct first_process first_process;

static uint64_t skipped;
static bool has_time;
/* The reading whose value the next instruction sees, and what is kept of the instruction that read. */
static uint64_t clock_count;
static uint32_t clock_how;
static bool clock_read;
/* The CPU was halted since the clock was last read, so it may be later than is known. */
static bool may_be_later;

/* What was skipped shows only when the clock is next read, so until then this is early. */
uint64_t ns_at(uint64_t count)
{
	return (count << plan.shift) + skipped;
}

/* Whether the first process had begun to run then. */
static bool has_begun_at(uint64_t count)
{
	return first_process.has_begun && count >= first_process.count;
}

bool is_in_window(uint64_t count)
{
	uint64_t since = ns_at(count) - first_process.ns;

	return has_begun_at(count) && since >= plan.from && since < plan.to;
}

/*
 * A guest says when its first process began by a reading of the clock, which comes
 * later than the first instruction: an optimised program took up to 1 ms to fault in
 * what it runs, another one 5 ms. Plans count from the first reading of a program
 * that comes this soon, ns. Where programs ask the kernel for the time none does,
 * and a plan's times are early by up to this.
 */
#define FIRST_READING 10000000

/* Edges are written so much longer, ns: for wakeups that were due at the end of the time. */
#define EDGES_LONGER 10000000

bool are_edges_written(uint64_t count)
{
	uint64_t since = ns_at(count) - first_process.ns;

	return plan.edges && has_begun_at(count) && (since >= plan.from || may_be_later) &&
	       since < plan.to + EDGES_LONGER;
}

bool may_be_early(uint64_t count)
{
	return ns_at(count) - first_process.ns < plan.from;
}

/* Time is behind until the clock is first read after idle time, which looks have room for. */
bool is_in_look(uint64_t begin, uint64_t end)
{
	uint64_t from = ns_at(begin) - first_process.ns, to = ns_at(end) - first_process.ns;

	return has_begun_at(begin) && is_looked_at(from, to);
}

void at_halt(void)
{
	may_be_later = true;
}

/* An instruction that reads the clock, of the kernel. */
void at_clock(const struct place *place)
{
	clock_count = count_at(place);
	clock_how = place->how;
	clock_read = true;
}

/* The instruction after one that read the clock, whose value is in registers now. */
void after_clock(unsigned int cpu, void *data)
{
	uint64_t now, before = skipped;

	if (!clock_read)
		return;
	clock_read = false;
	now = arch->clock(clock_how);
	skipped = now - (clock_count << plan.shift);
	if (!has_time || skipped != before) {
		const uint64_t words[] = { clock_count, now };

		put_time(TIME, words, 2);
	}
	has_time = true;
	may_be_later = false;
	settle_early_edges(may_be_early(clock_count));
	if (is_in_look(clock_count, clock_count))
		put_looked(READING, &now, 1);
}

void at_process(unsigned int cpu, void *data)
{
	if (first_process.has_begun || !arch->runs_program())
		return;
	first_process.has_begun = true;
	first_process.count = count_now();
	first_process.ns = ns_at(first_process.count);
}

void note_first_reading(uint64_t count)
{
	if (!first_process.has_begun || first_process.has_read)
		return;
	first_process.has_read = true;
	if (ns_at(count) - first_process.ns > FIRST_READING)
		return;
	first_process.count = count;
	first_process.ns = ns_at(count);
}
