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
#include "throttle.h"

/* Whether the quota of its queue may stop this task, which is about to wait. */
INLINE int may_be_stopped(struct task_struct *task)
{
	return READ(task, prio) >= 100 && (!FIELD_EXISTS(task->throttled) || READ(task, throttled));
}

/* Whether a deadline task has used up its time. */
INLINE u32 deadline_throttled(struct task_struct *task)
{
	if (!FIELD_EXISTS(task->dl.dl_throttled))
		return 0;
	u64 word = 0;
	u32 at = __builtin_preserve_field_info(task->dl.dl_throttled, 0);
	u32 size = __builtin_preserve_field_info(task->dl.dl_throttled, 1);
	if (size > sizeof(word))
		return 0;
	bpf_probe_read_kernel(&word, size, (void *)task + at);
	word <<= __builtin_preserve_field_info(task->dl.dl_throttled, 4);
	return word >> __builtin_preserve_field_info(task->dl.dl_throttled, 5);
}

/*
 * Whether a deadline task, or a real-time task of a group with a quota of such time, is stopped for having used that
 * up. For how long nobody counts. What all real-time tasks have is another matter: see `held_back`.
 */
INLINE u32 stopped_by_its_own(struct cpu *cpu, struct task_struct *task)
{
	struct task_struct___groups *grouped = (void *)task;
	s32 prio = READ(task, prio);
	if (prio < 0)
		return deadline_throttled(task);
	if (prio >= 100)
		return 0;
	if (FIELD_EXISTS(grouped->rt.rt_rq)) {
		struct rt_rq *queue = READ(grouped, rt.rt_rq);
		struct rq *rq = (void *)runqueue(cpu);
		struct rt_rq *of_all = rq ? __builtin_preserve_access_index(&rq->rt) : 0;
		if (of_all && queue && queue != of_all && FIELD_EXISTS(queue->rt_throttled))
			return READ(queue, rt_throttled) != 0;
	}
	return 0;
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
