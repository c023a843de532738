// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When the kernel sets the timer of the CPU's local APIC, and when it will fire.
 *
 * The APIC counts down at 1 GHz, divided as the kernel says, and QEMU's fires one
 * count after zero (apic_next_timer in hw/intc/apic_common.c).
 */
#include "x86.h"

/* Registers of the local APIC, by their physical addresses. */
#define INITIAL_COUNT 0xfee00380ULL
#define DIVISOR 0xfee003e0ULL

/* The divisor is 2^this. */
static unsigned int shift;

/* How many ns after the edge it fires; 0 if it is stopped. */
static uint32_t time_to_fire(uint32_t count)
{
	uint64_t ns = count ? ((uint64_t)count + 1) << shift : 0;

	return ns > UINT32_MAX ? UINT32_MAX : ns;
}

/* The kernel writes where the APIC may be. */
void x86_at_apic(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);
	const struct physical_address *physical = qemu_plugin_get_hwaddr(access, address);
	const struct place *place = data;

	if (!physical || value.type != MEMORY_U32)
		return;
	switch (qemu_plugin_hwaddr_phys_addr(physical)) {
	case DIVISOR:
		/* Bits 0, 1 and 3: 2, 4, 8 … 128, 1. */
		shift = ((value.u32 & 3) + (value.u32 >> 1 & 4) + 1) & 7;
		break;
	case INITIAL_COUNT:
		put_edge(TIMER_SET, place, count_at_device(place), arch->caller_at(place),
			 time_to_fire(value.u32));
		break;
	}
}
