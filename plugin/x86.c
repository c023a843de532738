// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * x86-64: its registers, its stack, and what each CPU has of its own.
 */
#include "x86.h"

enum { RSP, RBP, RAX, RDX, RDI, RSI, EFLAGS };
static const char *const registers[] = { "rsp", "rbp", "rax",    "rdx",
					 "rdi", "rsi", "eflags", NULL };

/* In the flags: interrupts are on. */
#define IF 0x200

/* Where what each CPU has of its own lies. */
static uint64_t own_base;
static bool has_own_base;

/*
 * From 7.3 on the preempt count is 64 bits, of which the highest says that the CPU need not be given
 * up (CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS). Before, it is the highest of 32.
 */
static bool is_wide, need_not;

static bool are_irqs_off(void)
{
	return !(reg(EFLAGS) & IF);
}

/* popf: what it takes from the stack. */
static void at_popf(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);

	if (value.type != MEMORY_U64)
		told.odd_writes++;
	else
		set_irqs(!(value.u64 & IF), data, true);
}

static void at_reading_of_count(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);

	if (value.type == MEMORY_U32)
		check_preempt_count(value.u32);
	if (value.type != MEMORY_U64)
		return;
	check_preempt_count(value.u64);
	if (need_not != value.u64 >> 63 && first_process.has_begun)
		told.disagreements++;
}

static void at_preempt_count(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);
	uint32_t count = value.u32;

	if (value.type == MEMORY_U64) {
		is_wide = true;
		need_not = value.u64 >> 63;
		count = value.u64;
	}
	if (value.type != (is_wide ? MEMORY_U64 : MEMORY_U32)) {
		told.odd_writes++;
		return;
	}
	own_base = address - plan.preempt_count;
	has_own_base = true;
	/* Of the bits for NMIs in the lower 32 this takes the place of the highest. */
	if (is_wide)
		count = (count & 0x7fffffff) | (uint32_t)need_not << 31;
	set_preempt_count(count, data);
}

static void at_current_task(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);

	if (value.type != MEMORY_U64)
		told.odd_writes++;
	else
		set_task(value.u64, data);
}

static uint64_t task(void)
{
	return has_own_base && plan.current_task ? word_at(own_base + plan.current_task) : 0;
}

static void follow(struct insn *insn, unsigned int what, struct place *place)
{
	switch (what) {
	case PREEMPT_COUNT:
		qemu_plugin_register_vcpu_mem_cb(insn, at_reading_of_count, NO_REGISTERS, LOADS,
						 NULL);
		qemu_plugin_register_vcpu_mem_cb(insn, at_preempt_count, READS_REGISTERS, STORES,
						 place);
		break;
	case CURRENT_TASK:
		if (plan.edges || plan.functions)
			qemu_plugin_register_vcpu_mem_cb(insn, at_current_task, READS_REGISTERS,
							 STORES, place);
		break;
	case APIC:
		if (plan.edges)
			qemu_plugin_register_vcpu_mem_cb(insn, x86_at_apic, READS_REGISTERS,
							 STORES, place);
		break;
	case POPF:
		qemu_plugin_register_vcpu_mem_cb(insn, at_popf, READS_REGISTERS, LOADS, place);
		break;
	}
}

/* Where the processor stored where it was. */
static uint64_t stored_by_exception(uint64_t *address)
{
	uint64_t sp = reg(RSP);

	*address = word_at(sp);
	/* Some exceptions have an error code, a small number, before the address. */
	if (*address < 0x10000)
		*address = word_at(sp += 8);
	return sp;
}

static struct entered entered(const struct place *place)
{
	struct entered entered = { place->entry->way, true, 0, 0 };
	uint64_t sp;

	switch (entered.way) {
	case BY_SYSTEM_CALL:
		return entered;
	case BY_EXCEPTION:
		sp = stored_by_exception(&entered.address);
		break;
	default:
		sp = reg(RSP);
		entered.address = word_at(sp);
	}
	entered.from_user = word_at(sp + 8) & 3;
	return entered;
}

static bool has_stopped_at(uint64_t *address)
{
	stored_by_exception(address);
	return true;
}

/* What iret takes from the stack. */
static struct left left(void)
{
	uint64_t sp = reg(RSP);

	return (struct left){ !(word_at(sp + 16) & IF), plan.edges && word_at(sp + 8) & 3 };
}

static uint64_t time_stamp(uint32_t how)
{
	return reg(RDX) << 32 | (reg(RAX) & 0xffffffff);
}

static bool runs_program(void)
{
	return true;
}

static uint64_t stack_pointer(void)
{
	return reg(RSP);
}

static uint64_t return_address(void)
{
	return word_at(reg(RSP));
}

static uint64_t argument(unsigned int number)
{
	return reg(number ? RSI : RDI);
}

static uint64_t result(void)
{
	return reg(RAX);
}

static uint64_t own(void)
{
	return has_own_base ? own_base : 0;
}

static uint64_t caller_at(const struct place *place)
{
	switch (place->base) {
	case FROM_SP:
		return word_at(reg(RSP) + place->offset - 8);
	case FROM_BP:
		return word_at(reg(RBP) + place->offset - 8);
	default:
		return 0;
	}
}

static struct image image(void)
{
	return (struct image){ 0xffffffff80000000ULL, 0xffffffffc0000000ULL };
}

const struct arch x86 = {
	.target = "x86_64",
	.machine = 62,
	.registers = registers,
	.meaning_of = x86_meaning_of,
	.jump_of = x86_jump_of,
	.follow = follow,
	.are_irqs_off = are_irqs_off,
	.entered = entered,
	.has_stopped_at = has_stopped_at,
	.left = left,
	.clock = time_stamp,
	.runs_program = runs_program,
	.task = task,
	.stack_pointer = stack_pointer,
	.return_address = return_address,
	.argument = argument,
	.result = result,
	.own = own,
	.caller_at = caller_at,
	.image = image,
};
