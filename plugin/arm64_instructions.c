// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the bytes of an instruction of arm64 say of it.
 */
#include "arm64.h"

static uint32_t word_of(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* Register of the system that is read or written, with the direction, but not by which register. */
#define SYSTEM(word) ((word) & ~0x1fU)
#define GENERAL(word) ((word) & 0x1f)

/* msr daifset, #bits and msr daifclr, #bits: of which one masks interrupts. */
#define DAIF_SET 0xd50340dfU
#define DAIF_CLEAR 0xd50340ffU
#define DAIF_BITS 0x00000f00U
#define DAIF_IRQ 0x00000200U

/*
 * Loads and stores of 32 or 64 bits whose address is a register's with a number added, as the kernel
 * reads and writes what the task that runs has at a fixed place. Most are of other things.
 */
static unsigned int of_task(uint32_t word)
{
	uint64_t offset = word >> 10 & 0xfff;

	switch (word & 0xffc00000) {
	case 0xb9000000: /* str w */
	case 0xb9400000: /* ldr w */
		offset *= 4;
		if (offset != plan.preempt_count && offset != plan.preempt_count + 4)
			return NOTHING;
		break;
	case 0xf9000000: /* str x */
	case 0xf9400000: /* ldr x */
		if (offset * 8 != plan.preempt_count)
			return NOTHING;
		break;
	default:
		return NOTHING;
	}
	/* Relative to the stack pointer it is a variable. */
	if ((word >> 5 & 0x1f) == SP)
		return NOTHING;
	return word & 0x00400000 ? READS_TASK : WRITES_TASK;
}

unsigned int arm64_meaning_of(const uint8_t *bytes, size_t size, uint64_t address, uint32_t *how)
{
	uint32_t word = word_of(bytes);

	*how = GENERAL(word);
	switch (word & ~DAIF_BITS) {
	case DAIF_SET:
		return word & DAIF_IRQ ? TURN_IRQS_OFF : NOTHING;
	case DAIF_CLEAR:
		return word & DAIF_IRQ ? TURN_IRQS_ON : NOTHING;
	}
	switch (SYSTEM(word)) {
	case 0xd51b4220: /* daif */
		return WRITE_MASKS;
	case 0xd5184600: /* icc_pmr_el1 */
		return PRIORITY_MASK;
	case 0xd5184100: /* sp_el0 */
		return address == plan.current_task ? CURRENT_TASK : NOTHING;
	case 0xd53be040: /* cntvct_el0 */
	case 0xd53be020: /* cntpct_el0 */
	case 0xd53be0c0: /* cntvctss_el0 */
	case 0xd53be0a0: /* cntpctss_el0 */
		return CLOCK;
	case 0xd51be340: /* cntv_cval_el0 */
		return TIMER_COMPARE;
	case 0xd51be320: /* cntv_ctl_el0 */
		return TIMER_CONTROL;
	}
	switch (word) {
	case 0xd69f03e0: /* eret */
		return RETURN;
	case 0xd503207f: /* wfi */
		return HALT;
	}
	return of_task(word);
}

/* A signed number of so many bits from bit @from on, in instructions. */
static int64_t distance(uint32_t word, unsigned int from, unsigned int bits)
{
	uint64_t number = word >> from & ((1U << bits) - 1);

	return ((int64_t)(number << (64 - bits)) >> (64 - bits)) * 4;
}

struct jump arm64_jump_of(const uint8_t *bytes, size_t size, uint64_t address)
{
	uint32_t word = word_of(bytes);
	struct jump jump = { 0, false };

	if ((word & 0x7c000000) == 0x14000000) /* b, bl */
		jump.to = address + distance(word, 0, 26);
	else if ((word & 0xff000000) == 0x54000000 || /* b.cond */
		 (word & 0x7e000000) == 0x34000000) /* cbz, cbnz */
		jump.to = address + distance(word, 5, 19);
	else if ((word & 0x7e000000) == 0x36000000) /* tbz, tbnz */
		jump.to = address + distance(word, 5, 14);
	else if ((word & 0xfe000000) == 0xd6000000) /* br, blr, ret, eret */
		jump.is_indirect = true;
	return jump;
}
