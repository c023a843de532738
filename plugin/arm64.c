// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * arm64: its registers, its ways into the kernel, and what the task that runs has of its own.
 */
#include "arm64.h"

static const char *const registers[] = {
	"x0",	"x1",  "x2",  "x3",   "x4",	  "x5",	     "x6",	"x7",  "x8",  "x9",
	"x10",	"x11", "x12", "x13",  "x14",	  "x15",     "x16",	"x17", "x18", "x19",
	"x20",	"x21", "x22", "x23",  "x24",	  "x25",     "x26",	"x27", "x28", "x29",
	"x30",	"sp",  "cpsr", "SPSR_EL1", "ELR_EL1", "ESR_EL1", "VBAR", NULL
};

/* In PSTATE and where it is stored: interrupts are masked; and which mode it is, 0 of a program. */
#define MASK_IRQ 0x80
#define MODE 0x0f

/* The task that runs, once another one has had the CPU. */
static uint64_t current;
/* Its preempt count, and whether the word behind it says that the CPU need not be given up. */
static uint32_t count;
static bool need_not;

uint64_t arm64_general(unsigned int number)
{
	return number == ZERO ? 0 : reg(number);
}

/* Interrupts */

static bool are_irqs_off(void)
{
	return reg(PSTATE) & MASK_IRQ;
}

static void at_masks(unsigned int cpu, void *data)
{
	const struct place *place = data;

	check_state();
	set_irqs(arm64_general(place->how) & MASK_IRQ, place, true);
}

/* The priority of all interrupts but NMIs. Those of at least what is written are masked. */
#define PRIORITY 0xa0

/* A kernel that lets NMIs in masks interrupts by their priority (CONFIG_ARM64_PSEUDO_NMI). */
static void at_priority_mask(unsigned int cpu, void *data)
{
	const struct place *place = data;

	if (first_process.has_begun && (arm64_general(place->how) & 0xff) <= PRIORITY)
		told.priority_masks++;
}

/* What the task that runs has of its own */

/* As on x86: with the highest bit set if the CPU need not be given up. */
static uint32_t whole_count(uint32_t count, bool need_not)
{
	/* From 7.3 on the highest bit of the count is one of those for NMIs. */
	return (count & 0x7fffffff) | (uint32_t)need_not << 31;
}

static void put_count(const struct place *place)
{
	set_preempt_count(whole_count(count, need_not), place);
}

static bool stored_preempt_count(uint32_t *whole)
{
	uint64_t words;

	if (!current || !read_word(current + plan.preempt_count, &words))
		return false;
	*whole = whole_count(words, words >> 32);
	return true;
}

/* The two words at @at in the 64 bits of count and need that @value holds. */
static void at_writing(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);
	uint64_t at = address - current - plan.preempt_count;

	if (!current || at > 4)
		return;
	if (value.type == MEMORY_U64 && !at) {
		count = value.u64;
		need_not = value.u64 >> 32;
	} else if (value.type == MEMORY_U32 && !at) {
		count = value.u32;
	} else if (value.type == MEMORY_U32 && at == 4) {
		need_not = value.u32;
	} else {
		told.odd_writes++;
		return;
	}
	put_count(data);
}

static void at_reading(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);
	uint64_t at = address - current - plan.preempt_count;

	if (!current || at > 4)
		return;
	if (!at)
		check_preempt_count(value.type == MEMORY_U64 ? value.u64 : value.u32);
	/* The other word, alone or as the high half. */
	if (first_process.has_begun &&
	    ((at && value.type == MEMORY_U32 && need_not != !!value.u32) ||
	     (!at && value.type == MEMORY_U64 && need_not != !!(value.u64 >> 32))))
		told.disagreements++;
}

/* Another task gets the CPU, and with it its own count. */
static void at_task(unsigned int cpu, void *data)
{
	const struct place *place = data;
	uint64_t words;

	current = arm64_general(place->how);
	if (plan.edges || plan.functions)
		set_task(current, place);
	words = word_at(current + plan.preempt_count);
	count = words;
	need_not = words >> 32;
	put_count(place);
}

static uint64_t task(void)
{
	return current;
}

static void follow(struct insn *insn, unsigned int what, struct place *place)
{
	static const on_execution calls[] = {
		[WRITE_MASKS] = at_masks,
		[PRIORITY_MASK] = at_priority_mask,
		[CURRENT_TASK] = at_task,
		[TIMER_COMPARE] = arm64_at_timer_compare,
		[TIMER_CONTROL] = arm64_at_timer_control,
	};

	switch (what) {
	case READS_TASK:
		qemu_plugin_register_vcpu_mem_cb(insn, at_reading, NO_REGISTERS, LOADS, NULL);
		break;
	case WRITES_TASK:
		qemu_plugin_register_vcpu_mem_cb(insn, at_writing, READS_REGISTERS, STORES, place);
		break;
	default:
		qemu_plugin_register_vcpu_insn_exec_cb(insn, calls[what], READS_REGISTERS, place);
	}
}

/* Ways into the kernel, and out of it */

/* Why there was an exception, by the processor's number. */
#define CLASS(esr) ((esr) >> 26 & 0x3f)
enum { SVC32 = 0x11, SVC64 = 0x15, DATA_ABORT_OF_PROGRAM = 0x24, DATA_ABORT = 0x25 };

static struct entered entered(const struct place *place)
{
	uint64_t cause = CLASS(reg(ESR));
	struct entered entered = { place->entry->way, !(reg(SPSR) & MODE), reg(ELR), cause };

	/* Both come in by the same way. */
	if (entered.way == BY_EXCEPTION && (cause == SVC32 || cause == SVC64))
		entered.way = BY_SYSTEM_CALL;
	return entered;
}

/* Other exceptions are raised by the last instruction of a block. */
static bool has_stopped_at(uint64_t *address)
{
	uint64_t cause = CLASS(reg(ESR));

	*address = reg(ELR);
	return cause == DATA_ABORT || cause == DATA_ABORT_OF_PROGRAM;
}

static struct left left(void)
{
	uint64_t state = reg(SPSR);

	return (struct left){ state & MASK_IRQ, !(state & MODE) };
}

static uint64_t clock(uint32_t how)
{
	return arm64_general(how);
}

/* The kernel maps a part of itself at its physical address, too, and goes there to change its page tables. */
static bool runs_program(void)
{
	return !(reg(PSTATE) & MODE);
}

/* Calls */

static uint64_t stack_pointer(void)
{
	return reg(SP);
}

static uint64_t return_address(void)
{
	return reg(LINK);
}

static uint64_t argument(unsigned int number)
{
	return reg(number);
}

static uint64_t result(void)
{
	return reg(0);
}

static uint64_t own(void)
{
	return 0;
}

static uint64_t caller_at(const struct place *place)
{
	switch (place->base) {
	case FROM_LINK:
		return reg(LINK);
	case FROM_FRAME:
		return word_at(reg(FRAME_POINTER) + 8);
	default:
		return 0;
	}
}

/* The table of ways into the kernel is a part of the image, which begins at a multiple of this. */
#define IMAGE (128ULL << 20)

static struct image image(void)
{
	uint64_t start = reg(VBAR) & ~(IMAGE - 1);

	return (struct image){ start, start + IMAGE };
}

const struct arch arm64 = {
	.target = "aarch64",
	.machine = 183,
	.registers = registers,
	.meaning_of = arm64_meaning_of,
	.jump_of = arm64_jump_of,
	.follow = follow,
	.are_irqs_off = are_irqs_off,
	.stored_preempt_count = stored_preempt_count,
	.entered = entered,
	.has_stopped_at = has_stopped_at,
	.left = left,
	.clock = clock,
	.runs_program = runs_program,
	.task = task,
	.stack_pointer = stack_pointer,
	.return_address = return_address,
	.argument = argument,
	.result = result,
	.own = own,
	.caller_at = caller_at,
	.image = image,
	.goes_on_behind_halt = true,
	.keeps_return_address = true,
	.hides_kernel = true,
};
