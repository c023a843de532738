/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long each interrupt of each CPU takes at most, and how soon the next ones come: what a bound on
 * the wakeup latency is composed from. Only where that is asked for.
 */
#pragma once

#include "bpf.h"
#include "shared.h"

/* Of no use, or of interrupts; of softirqs, too. */
enum { NOTHING = 0, INTERRUPTS = 1, SOFTIRQS_TOO = 2 };
const volatile u32 wants_bound = NOTHING;

/* The loader makes room for what CPUs ask for. */
MAP(MAP_HASH, struct source, struct interference, 1, 0) interference SEC(".maps");
/* All zero: too large for a program's stack. */
MAP(MAP_ARRAY, u32, struct interference, 1, 0) blank_interference SEC(".maps");

/* The CPU's own time: that of a hypervisor is none of an interrupt's. */
INLINE u64 own_time(u64 now, u64 stolen)
{
	return now - stolen;
}

INLINE struct interference *interference_of(u32 cpu, u32 number, u64 who)
{
	struct source source = { .cpu = cpu, .number = number, .who = who };
	struct interference *known = bpf_map_lookup_elem(&interference, &source);
	if (HOT(known))
		return known;
	u32 zero = 0;
	void *blank = bpf_map_lookup_elem(&blank_interference, &zero);
	if (blank)
		bpf_map_update_elem(&interference, &source, blank, IF_ABSENT);
	return bpf_map_lookup_elem(&interference, &source);
}

/* One that comes at `now`: how close to those before it. */
INLINE void arrives(struct interference *known, u64 now)
{
#pragma unroll
	for (u32 back = 0; back < ARRIVALS; back++) {
		if (known->count <= back)
			break;
		u64 span = now - known->arrivals[(known->count - 1 - back) & (ARRIVALS - 1)];
		if (!known->least[back] || span < known->least[back])
			known->least[back] = span;
	}
	known->arrivals[known->count & (ARRIVALS - 1)] = now;
	known->count++;
}

INLINE void takes_of(struct window *window, u64 number, u64 took)
{
	if (number != window->number) {
		window->before = number == window->number + 1 ? window->taken : 0;
		window->taken = 0;
		window->number = number;
	}
	window->taken += took;
	u64 both = window->before + window->taken;
	if (both > window->most)
		window->most = both;
}

/* The one that came at `at` has taken `took`, others that came meanwhile left out. */
INLINE void has_taken(struct interference *known, u64 *in_interrupts, u64 at, u64 took)
{
#pragma unroll
	for (u32 i = 0; i < WINDOWS; i++)
		takes_of(&known->windows[i], at >> WINDOW_SHIFT(i), took);
	if (took > known->longest)
		known->longest = took;
	__sync_fetch_and_add(in_interrupts, took);
}

/* `own` is the CPU's own time, `in_interrupts` what all of its interrupts have taken so far. */
INLINE void interference_begins(struct interference *known, u64 now, u64 own, u64 *in_interrupts)
{
	arrives(known, now);
	known->begun = own;
	known->before = *in_interrupts;
}

INLINE void interference_ends(struct interference *known, u64 own, u64 *in_interrupts)
{
	/* Attached in the middle of one, the end is seen first. */
	if (!known->begun)
		return;
	u64 whole = own > known->begun ? own - known->begun : 0;
	u64 others = *in_interrupts - known->before;
	known->begun = 0;
	u64 at = known->arrivals[(known->count - 1) & (ARRIVALS - 1)];
	has_taken(known, in_interrupts, at, whole > others ? whole - others : 0);
}
