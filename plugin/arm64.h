/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of arm64 know of each other.
 */
#ifndef WAKESCOPE_ARM64_H
#define WAKESCOPE_ARM64_H

#include "arch.h"

/* What instructions do that only arm64 knows. */
enum {
	WRITE_MASKS = OWN,
	PRIORITY_MASK,
	CURRENT_TASK,
	READS_TASK,
	WRITES_TASK,
	TIMER_COMPARE,
	TIMER_CONTROL,
};

/* Registers by their numbers, then the others. Number 31 reads as zero. */
enum { FRAME_POINTER = 29, LINK = 30, ZERO = 31, SP = 31, PSTATE, SPSR, ELR, ESR, VBAR };

/* arm64_instructions.c */
unsigned int arm64_meaning_of(const uint8_t *bytes, size_t size, uint64_t address, uint32_t *how);
struct jump arm64_jump_of(const uint8_t *bytes, size_t size, uint64_t address);

/* arm64.c. What an instruction has in a general register. */
uint64_t arm64_general(unsigned int number);

/* arm64_timer.c: the CPU's own timer, as a kernel uses it that no hypervisor is below. */
void arm64_at_timer_compare(unsigned int cpu, void *data);
void arm64_at_timer_control(unsigned int cpu, void *data);

#endif /* WAKESCOPE_ARM64_H */
