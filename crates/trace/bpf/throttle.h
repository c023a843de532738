/* SPDX-License-Identifier: GPL-2.0 */
/* For how long quotas of CPU time (cpu.max) have stopped a queue, by the kernel's own account. */
#pragma once

#include "bpf.h"

/* How long a queue has been throttled, itself or with a group above it, by one of its CPU's clocks. */
struct throttle {
	/* Until it went on the last time. */
	u64 sum;
	/* Since when it is again; 0 if it is not. */
	u64 since;
	/* That clock, as the kernel read it last. */
	u64 now;
};

INLINE struct throttle throttle_of(struct cfs_rq *queue)
{
	struct cfs_rq___pelt *pelt = (void *)queue;
	struct cfs_rq___task *older = (void *)queue;
	struct rq *rq = FIELD_EXISTS(queue->rq) ? READ(queue, rq) : 0;
	struct throttle seen = {};
	if (!rq)
		return seen;
	if (FIELD_EXISTS(queue->throttled_clock_self_time)) {
		/* From 6.5 on: by the run queue's clock. */
		seen.sum = READ(queue, throttled_clock_self_time);
		seen.since = READ(queue, throttled_clock_self);
		seen.now = READ(rq, clock);
	} else if (FIELD_EXISTS(queue->throttle_count) && FIELD_EXISTS(pelt->throttled_clock_pelt_time)) {
		/* From 5.19 on: without steal and interrupts. */
		seen.sum = READ(pelt, throttled_clock_pelt_time);
		seen.since = READ(queue, throttle_count) ? READ(pelt, throttled_clock_pelt) : 0;
		seen.now = READ(rq, clock_pelt) - READ(rq, lost_idle_time);
	} else if (FIELD_EXISTS(queue->throttle_count) && FIELD_EXISTS(older->throttled_clock_task_time)) {
		seen.sum = READ(older, throttled_clock_task_time);
		seen.since = READ(queue, throttle_count) ? READ(older, throttled_clock_task) : 0;
		seen.now = READ(rq, clock_task);
	}
	return seen;
}
