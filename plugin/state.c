// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the CPU is at: whether interrupts and preemption are off, whether it is in the
 * kernel and halted, and which task runs. Sections begin and end where that changes.
 *
 * It is followed from one change to the next, because reading it from the guest at
 * each block would cost too much; where the guest reads it itself, both are compared.
 */
#include "arch.h"

/* Not known before the first instruction that turns interrupts on or off. */
static bool knows_irqs;
static bool irqs_off;
static uint32_t preempt_count;
/* With the bit that says whether the CPU need be given up. */
static uint32_t whole_preempt_count;
static bool in_user;
/* Halted, until the next interrupt. */
static bool was_idle;

/* Interrupts */

/*
 * The processor's own flag is the truth, and so is the guest's memory. Where they are not what was
 * followed, something was missed, and the reader refuses all that was seen.
 */
void check_state(void)
{
	uint32_t stored;

	if (knows_irqs && irqs_off != arch->are_irqs_off())
		told.disagreements++;
	if (first_process.has_begun && arch->stored_preempt_count(&stored) &&
	    stored != whole_preempt_count)
		told.disagreements++;
}

void set_irqs(bool off, const struct place *place, bool has_caller)
{
	uint64_t count, caller;

	if (knows_irqs && off == irqs_off)
		return;
	count = count_at(place);
	caller = has_caller ? arch->caller_at(place) : 0;
	put_edge(off ? IRQS_OFF_AT : IRQS_ON_AT, place, count, caller, 0);
	knows_irqs = true;
	irqs_off = off;
	if (off)
		begin_section(IRQS_OFF, place->address, caller, count);
	else
		end_section(IRQS_OFF, place->address, caller, count);
}

/* The kernel is left, for a program or for what an interrupt came into. */
static void leave(const struct place *place, bool to_user)
{
	put_edge(LEAVE, place, count_at(place), 0, to_user);
	in_user = to_user;
}

void at_instruction(unsigned int cpu, void *data)
{
	const struct place *place = data;
	struct left left;
	enum kind kind;

	switch (place->what) {
	case TURN_IRQS_OFF:
		check_state();
		set_irqs(true, place, true);
		break;
	case TURN_IRQS_ON:
		check_state();
		set_irqs(false, place, true);
		break;
	case RETURN:
		check_state();
		left = arch->left();
		set_irqs(left.irqs_off, place, false);
		if (plan.edges)
			leave(place, left.to_user);
		break;
	case RETURN_TO_PROGRAM:
		check_state();
		set_irqs(false, place, false);
		leave(place, true);
		break;
	case HALT:
		/* Time while nothing runs is no part of a section. */
		for (kind = 0; kind < KINDS; kind++)
			end_section(kind, place->address, 0, count_at(place));
		was_idle = true;
		{
			uint64_t count = count_at(place);

			put_time(IDLE, &count, 1);
			put_edge(HALTED, place, count, 0, 0);
			at_halt();
		}
		break;
	case CLOCK:
		at_clock(place);
		break;
	}
}

/* Preemption */

/* The highest bit of the preempt count says that the CPU need not be given up. */
#define COUNT 0x7fffffff
/* How often preemption was turned off, apart from softirqs and interrupts. */
#define DEPTH 0xff

/* What the kernel reads is the truth, as is the flag of interrupts. */
void check_preempt_count(uint32_t count)
{
	if ((count & COUNT) != preempt_count && first_process.has_begun)
		told.disagreements++;
}

void set_preempt_count(uint32_t whole, const struct place *place)
{
	uint32_t before = preempt_count, count = whole & COUNT;
	bool begins = !before && count, ends = before && !count;
	uint64_t caller = 0;

	if (begins || ends || (whole ^ whole_preempt_count) & ~DEPTH) {
		caller = begins || ends || plan.edges ? arch->caller_at(place) : 0;
		put_edge(PREEMPT_COUNT_IS, place, count_at(place), caller, whole);
	}
	/* Where softirqs are let in again every kernel has it, behind a part of theirs. */
	if (begins && count & DEPTH && is_in_window(count_at(place)))
		told.depths++;
	preempt_count = count;
	whole_preempt_count = whole;
	if (begins)
		begin_section(PREEMPT_OFF, place->address, caller, count_at(place));
	else if (ends)
		end_section(PREEMPT_OFF, place->address, caller, count_at(place));
}

/* Tasks */

/* Another task runs. */
void set_task(uint64_t task, const struct place *place)
{
	forget_calls();
	switch_locks_to(task);
	if (are_edges_written(count_at(place)))
		put_edge(SWITCH, place, count_at(place), 0, number_of_task(task));
}

/* The ways into the kernel */

static void put_entry(const struct place *place)
{
	static const enum edge edges[] = { ENTER_INTERRUPT, ENTER_EXCEPTION, ENTER_SYSTEM_CALL };
	struct entered entered = arch->entered(place);

	put_edge(edges[entered.way], place, count_now(), entered.from_user ? 0 : entered.address,
		 entered.from_user | entered.cause << 1);
	in_user = false;
}

/* The first instruction of a way into the kernel, before its block is counted. */
void at_entry(unsigned int cpu, void *data)
{
	const struct place *place = data;

	if (place->entry->way == BY_EXCEPTION)
		correct_count();
	if (plan.edges)
		put_entry(place);
	/* set_irqs() takes back what follows the instruction, and its block is not counted yet. */
	if (!irqs_off || !knows_irqs) {
		knows_irqs = irqs_off = true;
		begin_section(IRQS_OFF, place->address, 0, count_now());
	}
	if (was_idle && preempt_count)
		begin_section(PREEMPT_OFF, place->address, 0, count_now());
	was_idle = false;
}

/* The instruction behind one that halted, which an interrupt ended before it was taken. */
void after_halt(unsigned int cpu, void *data)
{
	const struct place *place = data;
	uint64_t caller;

	if (!was_idle)
		return;
	was_idle = false;
	caller = arch->caller_at(place);
	put_edge(RESUMED, place, count_now(), caller, 0);
	if (irqs_off)
		begin_section(IRQS_OFF, place->address, caller, count_now());
	if (preempt_count)
		begin_section(PREEMPT_OFF, place->address, caller, count_now());
}

struct state state_now(void)
{
	return (struct state){ irqs_off, whole_preempt_count, in_user, arch->task() };
}
