/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All that is known of one architecture alone: what the bytes of instructions mean, which
 * registers hold what, how the kernel is entered and left, and where it keeps what is followed.
 */
#ifndef WAKESCOPE_ARCH_H
#define WAKESCOPE_ARCH_H

#include "scope.h"

/* No architecture names more registers. */
#define REGISTERS_MOST 64

/* The longest instruction of all architectures, in bytes. */
#define LONGEST 15

struct jump {
	/* The address, or 0. */
	uint64_t to;
	/* A register or memory says where it goes. */
	bool is_indirect;
};

/* What the processor stored as it entered the kernel. */
struct entered {
	enum way way;
	bool from_user;
	/* Where it was. */
	uint64_t address;
	/* Why there was an exception, if the way in does not say it: a number that is passed on. */
	uint32_t cause;
};

/* What the kernel is left for. */
struct left {
	bool irqs_off, to_user;
};

/* Where the kernel lies: its image and no modules. */
struct image {
	uint64_t start, end;
};

struct arch {
	/* As the emulator calls it. */
	const char *target;
	/* As programs for it have it (ELF). */
	uint64_t machine;
	/* The registers that are read, by the emulator's names, up to NULL. */
	const char *const *registers;

	/* What the instruction at @address changes that is followed, and what to keep of it. */
	unsigned int (*meaning_of)(const uint8_t *bytes, size_t size, uint64_t address, uint32_t *how);
	/* Where it jumps to, if it does and that stands in it. */
	struct jump (*jump_of)(const uint8_t *bytes, size_t size, uint64_t address);
	/* Follows an instruction that only the architecture knows. */
	void (*follow)(struct insn *insn, unsigned int what, struct place *place);

	/* The processor's own flag. */
	bool (*are_irqs_off)(void);
	/* The preempt count that the guest has in its memory, as it is followed; false if that is out of reach. */
	bool (*stored_preempt_count)(uint32_t *whole);
	/* At the first instruction of a way into the kernel. */
	struct entered (*entered)(const struct place *place);
	/* Where an exception stopped a block; false if it did not. At the same place. */
	bool (*has_stopped_at)(uint64_t *address);
	/* At an instruction that leaves the kernel. */
	struct left (*left)(void);
	/* Behind an instruction that read the clock, of which @how was kept. */
	uint64_t (*clock)(uint32_t how);
	/* Whether code at an address that is not the kernel's is a program's. */
	bool (*runs_program)(void);
	/* The task that runs, or 0. */
	uint64_t (*task)(void);

	uint64_t (*stack_pointer)(void);
	/* At the first instruction of a function. */
	uint64_t (*return_address)(void);
	uint64_t (*argument)(unsigned int number);
	/* What a function has returned, where it returned to. */
	uint64_t (*result)(void);
	/* Where what the CPU has of its own lies, less the addresses of symbols; 0 if that is not known. */
	uint64_t (*own)(void);
	/* What the function at @place returns to; 0 if that is not known. */
	uint64_t (*caller_at)(const struct place *place);

	/* In the kernel. */
	struct image (*image)(void);

	/* What is executed after an instruction that halts is the next one, with interrupts still off. */
	bool goes_on_behind_halt;
	/* A call does not move the stack pointer: what it returns to is in a register. */
	bool keeps_return_address;
	/* The kernel's memory cannot be read while a program runs. */
	bool hides_kernel;
};

extern const struct arch x86, arm64;

#endif /* WAKESCOPE_ARCH_H */
