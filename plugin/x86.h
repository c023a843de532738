/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of x86-64 know of each other.
 */
#ifndef WAKESCOPE_X86_H
#define WAKESCOPE_X86_H

#include "arch.h"

/*
 * What instructions do that only x86-64 knows: among it what of each CPU's own they read or write, a neighbour of
 * the preempt count, or whatever lies where a register says.
 */
enum { POPF = OWN, PREEMPT_COUNT, CURRENT_TASK, BESIDE_COUNT, BY_REGISTER, APIC };

/* x86_instructions.c */
unsigned int x86_meaning_of(const uint8_t *bytes, size_t size, uint64_t address, uint32_t *how);
struct jump x86_jump_of(const uint8_t *bytes, size_t size, uint64_t address);

/* x86_timer.c: the timer of the CPU's local APIC. */
void x86_at_apic(unsigned int cpu, uint32_t access, uint64_t address, void *data);

#endif /* WAKESCOPE_X86_H */
