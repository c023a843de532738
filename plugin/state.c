// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the CPU is at: whether interrupts and preemption are off, whether it is in the
 * kernel and halted, and which task runs. Sections begin and end where that changes.
 *
 * It is followed from one change to the next, because reading it from the guest at
 * each block would cost too much; where the guest reads it itself, both are compared.
 */
#include "scope.h"

/* Not known before the first instruction that turns interrupts on or off. */
static bool knows_irqs;
static bool irqs_off;
static uint32_t preempt_count;
/* With the bit that says whether the CPU need be given up. */
static uint32_t whole_preempt_count;
static bool in_user;
/* Halted, until the next interrupt. */
static bool was_idle;
/* Where what each CPU has of its own lies. */
static uint64_t own_base;
static bool has_own_base;

/* Interrupts */

/*
 * The processor's own flag is the truth. Where it is not what was followed, something
 * was missed, and the reader refuses all that was seen.
 */
static void check_irqs(void)
{
	if (knows_irqs && irqs_off != !(reg(EFLAGS) & 0x200))
		told.disagreements++;
}

static void set_irqs(bool off, const struct place *place, bool has_caller)
{
	uint64_t count, caller;

	if (knows_irqs && off == irqs_off)
		return;
	count = count_at(place);
	caller = has_caller ? caller_at(place) : 0;
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
	enum kind kind;

	switch (place->what) {
	case CLI:
		check_irqs();
		set_irqs(true, place, true);
		break;
	case STI:
		check_irqs();
		set_irqs(false, place, true);
		break;
	case IRET:
		check_irqs();
		set_irqs(!(word_at(reg(RSP) + 16) & 0x200), place, false);
		if (plan.edges)
			leave(place, word_at(reg(RSP) + 8) & 3);
		break;
	case SYSRET:
		check_irqs();
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
		}
		break;
	case CLOCK:
		at_clock(place);
		break;
	}
}

void at_popf(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);

	if (value.type != MEMORY_U64)
		told.odd_writes++;
	else
		set_irqs(!(value.u64 & 0x200), data, true);
}

/* Preemption */

/* The highest bit of the preempt count says that the CPU need not be given up. */
#define COUNT 0x7fffffff
/* How often preemption was turned off, apart from softirqs and interrupts. */
#define DEPTH 0xff

/* What the kernel reads is the truth, as is the flag of interrupts. */
void check_preempt_count(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);

	if (value.type == MEMORY_U32 && (value.u32 & COUNT) != preempt_count &&
	    first_process.has_begun)
		told.disagreements++;
}

void at_preempt_count(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);
	const struct place *place = data;
	uint32_t before = preempt_count, whole = whole_preempt_count;
	uint64_t caller;

	if (value.type != MEMORY_U32) {
		told.odd_writes++;
		return;
	}
	own_base = address - plan.preempt_count;
	has_own_base = true;
	if (!before == !(value.u32 & COUNT) && !((whole ^ value.u32) & ~DEPTH)) {
		preempt_count = value.u32 & COUNT;
		whole_preempt_count = value.u32;
		return;
	}
	caller = !before == !(value.u32 & COUNT) && !plan.edges ? 0 : caller_at(place);
	put_edge(PREEMPT_COUNT_IS, place, count_at(place), caller, value.u32);
	preempt_count = value.u32 & COUNT;
	whole_preempt_count = value.u32;
	if (!before && preempt_count)
		begin_section(PREEMPT_OFF, place->address, caller, count_at(place));
	else if (before && !preempt_count)
		end_section(PREEMPT_OFF, place->address, caller, count_at(place));
}

/* Tasks */

/* Another task runs. */
void at_current_task(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);
	const struct place *place = data;

	if (value.type != MEMORY_U64) {
		told.odd_writes++;
		return;
	}
	forget_calls();
	if (are_edges_written(count_at(place)))
		put_edge(SWITCH, place, count_at(place), 0, number_of_task(value.u64));
}

/* The ways into the kernel */

/* What the processor stored as it entered the kernel: where it was, and in which mode. */
static void put_entry(const struct place *place)
{
	static const enum edge edges[] = { ENTER_INTERRUPT, ENTER_EXCEPTION, ENTER_SYSTEM_CALL };
	uint64_t sp, address = 0;
	bool from_user = true;

	if (place->entry->way != BY_SYSTEM_CALL) {
		sp = reg(RSP);
		address = word_at(sp);
		/* Some exceptions have an error code, a small number, before the address. */
		if (place->entry->way == BY_EXCEPTION && address < 0x10000)
			address = word_at(sp += 8);
		from_user = word_at(sp + 8) & 3;
	}
	put_edge(edges[place->entry->way], place, count_now(), from_user ? 0 : address,
		 from_user);
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

struct state state_now(void)
{
	uint64_t task = has_own_base && plan.current_task ?
				word_at(own_base + plan.current_task) : 0;

	return (struct state){ irqs_off, whole_preempt_count, in_user, task };
}
