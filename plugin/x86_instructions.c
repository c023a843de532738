// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the bytes of an instruction of x86-64 say of it.
 */
#include "x86.h"

static bool is_prefix(uint8_t byte)
{
	return byte == 0x65 || byte == 0x66 || byte == 0x67 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 ||
	       byte == 0x2e || byte == 0x3e || byte == 0x36 || (byte & 0xf0) == 0x40;
}

/* The most that an instruction with a GS prefix and an address of its own reads or writes at once, in bytes. */
#define WIDEST 8

/* What of each CPU's own lies at an address, as instructions with a GS prefix have it. */
static unsigned int named(uint64_t address)
{
	if (address == plan.preempt_count)
		return PREEMPT_COUNT;
	if (plan.current_task && address == plan.current_task)
		return CURRENT_TASK;
	if (address + WIDEST > plan.preempt_count && address < plan.preempt_count + WIDEST)
		return BESIDE_COUNT;
	return NOTHING;
}

/*
 * What of each CPU's own an instruction with a GS prefix reads or writes, as its operand says. A compiler that
 * knows of variables of each CPU (GCC, for kernels since 6.9) also has their addresses in registers.
 */
static unsigned int named_by(const uint8_t *bytes, size_t size, size_t at, uint64_t next)
{
	uint8_t opcode = bytes[at], modrm;
	int32_t distance;

	/* mov of 64 bits of address, which no compiler writes. */
	if ((opcode & 0xfc) == 0xa0)
		return BY_REGISTER;
	/* Opcodes have one byte (add, inc, mov …), two (0x0f), or three. */
	at++;
	if (opcode == 0x0f)
		at += (bytes[at] & 0xfd) == 0x38 ? 2 : 1;
	if (at >= size)
		return NOTHING;
	modrm = bytes[at++];
	/* Registers alone. */
	if (modrm >= 0xc0)
		return NOTHING;
	if ((modrm & 0xc7) == 0x05 && at + 4 <= size) {
		memcpy(&distance, bytes + at, 4);
		return named(next + distance);
	}
	/* Without a base and an index register. */
	if ((modrm & 0xc7) == 0x04 && bytes[at] == 0x25 && at + 5 <= size) {
		memcpy(&distance, bytes + at + 1, 4);
		return named((uint64_t)(int64_t)distance);
	}
	return BY_REGISTER;
}

/*
 * Whether it stores into the fixed mappings of devices (FIXADDR_START and above), among which the local
 * APIC is: its number of a page differs from kernel to kernel.
 */
static bool stores_to_device(const uint8_t *bytes, size_t size, size_t at)
{
	uint8_t opcode = bytes[at], modrm;
	uint32_t distance;

	if (opcode != 0x89 && opcode != 0x87 && opcode != 0xc7)
		return false;
	if (++at + 5 > size)
		return false;
	modrm = bytes[at++];
	/* A base register and 32 bits, or no base register. */
	if ((modrm & 0xc0) != 0x80 && (modrm & 0xc7) != 0x04)
		return false;
	if ((modrm & 7) == 4)
		at++;
	if (at + 4 > size)
		return false;
	memcpy(&distance, bytes + at, 4);
	return distance >> 20 == 0xff5;
}

unsigned int x86_meaning_of(const uint8_t *bytes, size_t size, uint64_t address, uint32_t *how)
{
	bool gs = false, wide = false, near = false;
	size_t at;

	for (at = 0; at < size && is_prefix(bytes[at]); at++) {
		gs |= bytes[at] == 0x65;
		/* Only the lower half of the address counts. */
		near |= bytes[at] == 0x67;
		wide |= (bytes[at] & 0xf8) == 0x48;
	}
	if (at == size)
		return NOTHING;
	if (gs && near)
		return BY_REGISTER;
	if (gs)
		return named_by(bytes, size, at, address + size);
	if (stores_to_device(bytes, size, at))
		return APIC;
	switch (bytes[at]) {
	case 0xfa:
		return TURN_IRQS_OFF;
	case 0xfb:
		return TURN_IRQS_ON;
	case 0x9d:
		return POPF;
	case 0xcf:
		return wide ? RETURN : NOTHING;
	case 0xf4:
		return HALT;
	}
	if (bytes[at] != 0x0f || at + 1 >= size)
		return NOTHING;
	switch (bytes[at + 1]) {
	case 0x07: /* sysret */
	case 0x35: /* sysexit */
		return RETURN_TO_PROGRAM;
	case 0x31: /* rdtsc */
		return CLOCK;
	case 0x01:
		if (at + 2 < size && bytes[at + 2] == 0xf9) /* rdtscp */
			return CLOCK;
		if (at + 2 < size && bytes[at + 2] == 0xc9) /* mwait */
			return HALT;
	}
	return NOTHING;
}

struct jump x86_jump_of(const uint8_t *bytes, size_t size, uint64_t address)
{
	uint64_t next = address + size;
	struct jump jump = { 0, false };
	bool repeats = false;
	int32_t far = 0;
	size_t at;

	/* Among them are branch hints, no tracking, bounds, and repetition. */
	for (at = 0; at < size && is_prefix(bytes[at]); at++)
		repeats |= bytes[at] == 0xf2 || bytes[at] == 0xf3;
	if (at == size)
		return jump;
	jump.is_indirect = bytes[at] == 0xff;
	/* A string instruction is executed anew for each element. */
	if (repeats && ((bytes[at] & 0xfc) == 0xa4 || (bytes[at] >= 0xaa && bytes[at] <= 0xaf)))
		jump.to = address;
	else if (size >= 2 &&
		 ((bytes[at] & 0xf0) == 0x70 || (bytes[at] & 0xfc) == 0xe0 || bytes[at] == 0xeb))
		jump.to = next + (int8_t)bytes[size - 1];
	else if (size >= 5) {
		memcpy(&far, bytes + size - 4, 4);
		if (bytes[at] == 0xe8 || bytes[at] == 0xe9 ||
		    (bytes[at] == 0x0f && (bytes[at + 1] & 0xf0) == 0x80))
			jump.to = next + far;
	}
	return jump;
}
