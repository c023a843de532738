/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the hypervisor took of a wakeup, by its CPU's clock of stolen time.
 *
 * The clock is read at each event. Between two readings no more can have been stolen than the time that
 * passed: what a reading has beyond that was stolen before the wakeup was due, or after its response.
 */
#pragma once

#include "state.h"

/* Events that are searched for the last reading before a wakeup was due. */
#define STEAL_LOOK_BACK 8

/* 0 if there is no clock. Where another CPU has its own is known once a program has run there. */
INLINE u64 read_steal(struct cpu *cpu, u32 number)
{
	if (!cpu->runqueue && number != bpf_get_smp_processor_id())
		return 0;
	return stolen(cpu);
}

/* Adds what was stolen since the last reading. */
INLINE void add_stolen(struct wakeup *wakeup, u64 reading, u64 at)
{
	u64 before = wakeup->steal_read;
	u64 since = wakeup->steal_read_at;
	if (before && reading > before && at > since) {
		u64 taken = reading - before;
		wakeup->stolen += taken < at - since ? taken : at - since;
	}
	wakeup->steal_read = reading;
	wakeup->steal_read_at = at;
}

/* The wakeup begins, on the CPU that it waits for. */
INLINE void begin_stolen(struct wakeup *wakeup, struct cpu *waits, u64 now)
{
	wakeup->stolen = 0;
	wakeup->steal_read = 0;
	if (!steal_time_place.is_known)
		return;
	u64 reading = read_steal(waits, wakeup->cpu);
	u64 at = now;
	u64 before = 0;
#pragma nounroll
	for (u32 back = 1; back <= STEAL_LOOK_BACK; back++) {
		struct event *event = &waits->ring[(waits->seen - back) & (RING - 1)];
		if (back > waits->seen)
			break;
		if (event->at_ns < wakeup->due) {
			before = event->steal_ns;
			break;
		}
		reading = event->steal_ns;
		at = event->at_ns;
	}
	wakeup->steal_read = before;
	wakeup->steal_read_at = wakeup->due;
	add_stolen(wakeup, reading, at);
}

/* The wakeup waits for `from` no more. */
INLINE void leave_stolen(struct wakeup *wakeup, struct cpu *from, u64 now)
{
	wakeup->steal_after = read_steal(from, wakeup->cpu);
	add_stolen(wakeup, wakeup->steal_after, now);
}

/* It goes on to wait for the CPU of that number, which has a clock of its own. */
INLINE void go_on_stolen(struct wakeup *wakeup, u32 number, struct cpu *to)
{
	wakeup->moved_steal = read_steal(to, number);
	wakeup->steal_read = wakeup->moved_steal;
}
