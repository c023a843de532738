/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a quota of CPU time (cpu.max) took of a long wait.
 *
 * Before 6.18 a quota stops all that waits in a queue of its group. So the time by which the kernel's sum has grown
 * since the task began to run is in its wait. What the sum was then is noted at the switch.
 *
 * From 6.18 on a quota stops a task only on its way to user space, and says so in the task. Others of its group go on:
 * one that sleeps in a system call and is woken waits for the CPU like any other, while the sum grows. So the sum is
 * noted when a task that was stopped gives up the CPU. A quota took nothing of any other wait.
 */
#pragma once

#include "bpf.h"
#include "throttle.h"
#include "watch.h"
#include "watch_tasks.h"

/* Whether this kernel says for how long a quota has stopped a queue. */
INLINE int has_throttled_time(void)
{
	struct cfs_rq *queue = 0;
	struct cfs_rq___pelt *pelt = 0;
	struct cfs_rq___task *older = 0;
	return FIELD_EXISTS(queue->throttled_clock_self_time) || FIELD_EXISTS(pelt->throttled_clock_pelt_time) ||
	       FIELD_EXISTS(older->throttled_clock_task_time);
}

/* The sum of `throttle_of`, without a call of the kernel: it is read at each switch. */
INLINE u64 throttled_sum(struct cfs_rq *queue)
{
	struct cfs_rq___pelt *pelt = (void *)queue;
	struct cfs_rq___task *older = (void *)queue;
	if (FIELD_EXISTS(queue->throttled_clock_self_time))
		return queue->throttled_clock_self_time;
	if (FIELD_EXISTS(pelt->throttled_clock_pelt_time))
		return pelt->throttled_clock_pelt_time;
	if (FIELD_EXISTS(older->throttled_clock_task_time))
		return older->throttled_clock_task_time;
	return 0;
}

/* How often a task has slept, where it may just do so. */
#define NOT_KNOWN (~0ULL)

/* The task begins to run: what its next wait is compared with. */
INLINE void note_queue(struct task_books *books, struct task_struct *task, u64 sleeps)
{
	if (FIELD_EXISTS(task->throttled))
		return;
	struct cfs_rq *queue = task->se.cfs_rq;
	books->queue = (u64)queue;
	books->throttled = throttled_sum(queue);
	books->sleeps = sleeps;
}

/* For how long the queue of this task has been stopped so far. */
INLINE u64 throttled_until_now(struct task_struct *task)
{
	struct throttle seen = throttle_of(task->se.cfs_rq);
	/* From 6.18 on others of the queue may be stopped, and this task not. */
	int is_stopped = seen.since && (!FIELD_EXISTS(task->throttled) || task->throttled);
	return seen.sum + (is_stopped ? seen.now - seen.since : 0);
}

/* A quota has stopped this task, which gives up the CPU. */
APART int note_stopped(struct task_struct *task)
{
	struct task_books *books = books_of(task);
	if (!books)
		return 0;
	books->stopped_after = task->sched_info.pcount;
	books->queue = (u64)task->se.cfs_rq;
	books->throttled = throttled_until_now(task);
	return 0;
}

/* Nobody saw whether a quota had stopped this task when it gave up the CPU. */
APART int stopped_unseen(u32 pid)
{
	struct task_books *books = pid ? known_books(pid) : 0;
	if (books) {
		books->stopped_after = books->arrivals;
		books->queue = 0;
	}
	return 0;
}

/*
 * What a quota took of `ns` that the task waits in its queue, from `began` on by the clock of the run queue.
 * `is_first`: it was in no other queue before, since it began to wait.
 */
INLINE struct bounds taken_by_quota(struct task_struct *task, struct task_books *books, u64 began, u64 ns,
				    int is_first)
{
	struct bounds taken = {};
	u64 arrivals = task->sched_info.pcount, least = 0, sum;
	int stops_tasks = FIELD_EXISTS(task->throttled), has_slept = !books || books->sleeps != task->nvcsw;
	/* Quotas are for ordinary tasks. */
	if (task->prio < 100)
		return taken;
	/* One that runs for the first time was never on its way to user space. */
	if (stops_tasks && (!arrivals || (books && books->stopped_after != (u32)arrivals)))
		return taken;
	sum = throttled_until_now(task);
	if (books && is_first && books->queue == (u64)task->se.cfs_rq) {
		sum -= books->throttled;
		least = sum;
		if (!stops_tasks && has_slept) {
			/* It may have done so while its group was stopped. */
			u64 before = began - task->sched_info.last_arrival;
			least = sum > before ? sum - before : 0;
		}
	} else if (books && is_first && books->queue && (stops_tasks || !has_slept)) {
		/* It waited in another group before, whose quota may have stopped it. */
		sum = ns;
	}
	/* A queue that was made anew has been stopped for less. */
	if ((s64)sum < 0)
		sum = least = 0;
	taken.least = least < ns ? least : ns;
	taken.most = sum < ns ? sum : ns;
	return taken;
}
