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
#define COUNT_SIZE (is_wide ? 8 : 4)

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

/* What the kernel has for the preempt count, as it is followed: of the lower 32 bits the highest is always the flag. */
static uint32_t whole_count(uint64_t stored)
{
	return is_wide ? (stored & 0x7fffffff) | (uint32_t)(stored >> 63) << 31 : stored;
}

static void at_preempt_count(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);

	is_wide |= value.type == MEMORY_U64;
	if (value.type != (is_wide ? MEMORY_U64 : MEMORY_U32)) {
		told.odd_writes++;
		return;
	}
	if (is_wide)
		need_not = value.u64 >> 63;
	own_base = address - plan.preempt_count;
	has_own_base = true;
	set_preempt_count(whole_count(is_wide ? value.u64 : value.u32), data);
}

static bool follows_tasks(void)
{
	return plan.current_task && (plan.edges || plan.functions);
}

static void at_current_task(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);

	if (value.type != MEMORY_U64)
		told.odd_writes++;
	else
		set_task(value.u64, data);
}

static bool stored_preempt_count(uint32_t *whole)
{
	uint64_t stored;

	if (!has_own_base || !read_word(own_base + plan.preempt_count, &stored))
		return false;
	*whole = whole_count(stored);
	return true;
}

/* How many bytes were read or written. */
static unsigned int size_of(struct memory_value value)
{
	return 1U << value.type;
}

/* What lies beside the preempt count, or a part of it. */
static void at_beside_count(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	uint64_t count = own_base + plan.preempt_count;

	if (has_own_base && address < count + COUNT_SIZE &&
	    address + size_of(qemu_plugin_mem_get_value(access)) > count)
		told.odd_writes++;
}

static void at_reading_by_register(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	if (has_own_base && address == own_base + plan.preempt_count)
		at_reading_of_count(cpu, access, address, data);
}

static void at_writing_by_register(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	if (!has_own_base)
		return;
	if (address == own_base + plan.preempt_count)
		at_preempt_count(cpu, access, address, data);
	else if (follows_tasks() && address == own_base + plan.current_task)
		at_current_task(cpu, access, address, data);
	else
		at_beside_count(cpu, access, address, data);
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
		if (follows_tasks())
			qemu_plugin_register_vcpu_mem_cb(insn, at_current_task, READS_REGISTERS,
							 STORES, place);
		break;
	case BESIDE_COUNT:
		qemu_plugin_register_vcpu_mem_cb(insn, at_beside_count, NO_REGISTERS, STORES, NULL);
		break;
	case BY_REGISTER:
		qemu_plugin_register_vcpu_mem_cb(insn, at_reading_by_register, NO_REGISTERS, LOADS,
						 NULL);
		qemu_plugin_register_vcpu_mem_cb(insn, at_writing_by_register, READS_REGISTERS,
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
	.stored_preempt_count = stored_preempt_count,
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
