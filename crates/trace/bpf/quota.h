/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What quotas of CPU time (cpu.max) took of a wakeup: how long the queue was throttled that the task
 * waited in.
 *
 * From 6.18 on a quota stops a task only on its way to user space, and says so in the task; before, it
 * stops all that wait in a queue of its group. Both count for how long by the queue's own clocks.
 */
#pragma once

#include "state.h"

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

/* Whether the quota of its queue may stop this task, which is about to wait. */
INLINE int may_be_stopped(struct task_struct *task)
{
	return READ(task, prio) >= 100 && (!FIELD_EXISTS(task->throttled) || READ(task, throttled));
}

/* The queue of the task's group on that CPU; 0 if it is not known. */
INLINE struct cfs_rq *queue_on(struct task_struct *task, u32 number)
{
	struct cfs_rq *queue = READ(task, se.cfs_rq);
	struct task_group *group = 0;
	struct cfs_rq **queues = 0;
	if (queue && FIELD_EXISTS(queue->tg))
		group = READ(queue, tg);
	if (group && FIELD_EXISTS(group->cfs_rq))
		queues = READ(group, cfs_rq);
	queue = 0;
	if (queues)
		bpf_probe_read_kernel(&queue, sizeof(queue), queues + number);
	return queue;
}

/* The task waits in this queue since `at`. */
INLINE void begin_quota(struct wakeup *wakeup, struct task_struct *task, struct cfs_rq *queue, u64 at)
{
	wakeup->queue = may_be_stopped(task) ? (u64)queue : 0;
	if (!wakeup->queue)
		return;
	struct throttle seen = throttle_of(queue);
	wakeup->queued_at = at;
	wakeup->queue_sum = seen.sum;
	wakeup->queue_since = seen.since;
}

/*
 * That wait ends now, under the lock of the run queue, where its clock is read. The clock may have stood
 * still for long when the wait began: the CPU was idle. So it is counted back from here.
 */
INLINE void end_quota(struct wakeup *wakeup, struct task_struct *task, u64 at)
{
	struct cfs_rq *queue = (void *)wakeup->queue;
	if (!queue)
		return;
	wakeup->queue = 0;
	if (READ(task, se.cfs_rq) != queue || wakeup->quota == UNKNOWN) {
		/* In another group than it waited in. */
		wakeup->quota = UNKNOWN;
		return;
	}
	struct throttle seen = throttle_of(queue);
	u64 waited = at > wakeup->queued_at ? at - wakeup->queued_at : 0;
	u64 began = seen.now > waited ? seen.now - waited : 0;
	u64 taken = seen.sum > wakeup->queue_sum ? seen.sum - wakeup->queue_sum : 0;
	u64 before = wakeup->queue_since && began > wakeup->queue_since ? began - wakeup->queue_since : 0;
	taken = taken > before ? taken - before : 0;
	wakeup->quota += taken < waited ? taken : waited;
}
