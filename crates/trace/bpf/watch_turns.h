/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whose turns there were on a CPU while a task waited for it, for the longest waits.
 *
 * At each switch a line of memory is written, and no clock is read: the run queue has all of them. Only a wait
 * that is longer than those that are kept already is kept, with a copy of the last turns.
 */
#pragma once

#include "bpf.h"
#include "watch.h"

MAP(MAP_ARRAY, u32, struct cpu_turns, 1, MAP_MMAPABLE) cpu_turns SEC(".maps");

#define barrier() asm volatile("" ::: "memory")

/* Shorter waits are only counted: src/watch/layout.rs has the same, ns. */
#define LEAST_LONG 1000000

/* The cgroup in the unified hierarchy: 0 without one. */
INLINE u64 cgroup_of(struct task_struct *task)
{
	return FIELD_EXISTS(task->cgroups) ? task->cgroups->dfl_cgrp->kn->id : 0;
}

/* Whether this kernel says for how long a quota has stopped a queue. */
INLINE int has_throttled_time(void)
{
	struct cfs_rq *queue = 0;
	struct cfs_rq___pelt *pelt = 0;
	struct cfs_rq___task *older = 0;
	return FIELD_EXISTS(queue->throttled_clock_self_time) || FIELD_EXISTS(pelt->throttled_clock_pelt_time) ||
	       FIELD_EXISTS(older->throttled_clock_task_time);
}

/* For how long a quota has stopped the queue so far, itself or with a group above. It does not just now. */
INLINE u64 throttled_sum(struct cfs_rq *queue)
{
	struct cfs_rq___pelt *pelt = (void *)queue;
	struct cfs_rq___task *older = (void *)queue;
	/* From 6.5 on; from 5.19 on without steal and interrupts, as before. */
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

/* What the next wait of this task is compared with. */
INLINE void note_queue(struct task_books *books, struct task_struct *task, u64 sleeps)
{
	struct cfs_rq *queue = task->se.cfs_rq;
	books->queue = (u64)queue;
	books->throttled = throttled_sum(queue);
	books->sleeps = sleeps;
}

INLINE void describe_series(struct series *series, struct task_struct *task)
{
	series->cgroup = cgroup_of(task);
	u64 *comm = (u64 *)__builtin_preserve_access_index(&task->comm);
	series->comm[0] = comm[0];
	series->comm[1] = comm[1];
}

INLINE void describe_turn(struct turn *turn, struct task_struct *task)
{
	struct rq *rq = task->se.cfs_rq->rq;
	u64 clock = rq->clock;
	turn->clock = clock;
	turn->lost = clock - rq->clock_task;
	turn->steal = FIELD_EXISTS(rq->prev_steal_time_rq) ? rq->prev_steal_time_rq : 0;
	turn->irq = FIELD_EXISTS(rq->prev_irq_time) ? rq->prev_irq_time : 0;
	turn->pid = task->pid;
	/* The idle task belongs to no series. */
	if (!turn->pid)
		return;
	turn->prio = task->prio;
	turn->policy = task->policy;
	describe_series(&turn->whose, task);
}

/*
 * What a quota took of a wait that began then, between `least` and `most`. A task that has slept since it
 * began to run last may have done so while its group was stopped.
 */
INLINE void stopped_by_quota(struct long_wait *wait, struct task_struct *task, struct task_books *books,
			     u64 began)
{
	struct cfs_rq *queue = task->se.cfs_rq;
	u64 sum = throttled_sum(queue), least = 0;
	/* One that came from the queue of another CPU may have been there when this one was stopped. */
	if (books && books->queue == (u64)queue && wait->here == wait->ns) {
		sum -= books->throttled;
		least = sum;
		if (books->sleeps != task->nvcsw) {
			u64 before = began - task->sched_info.last_arrival;
			least = sum > before ? sum - before : 0;
		}
	}
	/* Quotas are for ordinary tasks. A queue that was made anew has been stopped for less. */
	if (task->prio < 100 || (s64)sum < 0)
		sum = least = 0;
	wait->throttled_least = least < wait->ns ? least : wait->ns;
	wait->throttled_most = sum < wait->ns ? sum : wait->ns;
}

/* Keeps the wait that has just ended, of which `here` was in this CPU's queue, if it is among the longest. */
APART int keep_long_wait(struct task_struct *task, struct task_books *books, struct cpu_turns *turns, u64 ns,
			 u64 here)
{
	struct turn *turn = &turns->turns[turns->seen & (TURNS - 1)];
	turns->long_waits++;
	u64 asked = READ_ONCE(turns->asked);
	u32 first = (asked & (BANKS - 1)) * LONGEST, place = 0;
	if (turns->bank != asked) {
		turns->bank = asked;
		turns->floor = 0;
		for (u32 at = 0; at < LONGEST; at++)
			turns->longest[first + at].ns = 0;
	}
	if (ns <= turns->floor)
		return 0;
	for (u32 at = 1; at < LONGEST; at++)
		if (turns->longest[first + at].ns < turns->longest[first + place].ns)
			place = at;
	struct long_wait *wait = &turns->longest[first + place];
	WRITE_ONCE(wait->version, wait->version + 1);
	barrier();
	wait->ns = ns;
	wait->here = here;
	wait->at = bpf_ktime_get_ns();
	stopped_by_quota(wait, task, books, turn->clock - ns);
	wait->seen = turns->seen;
#pragma nounroll
	for (u32 at = 0; at < TURNS; at++) {
		wait->turns[at] = turns->turns[at];
		/* Of a loop without this the compiler makes a call of memcpy(), which programs do not have. */
		barrier();
	}
	barrier();
	WRITE_ONCE(wait->version, wait->version + 1);
	u64 floor = turns->longest[first].ns;
	for (u32 at = 1; at < LONGEST; at++)
		if (turns->longest[first + at].ns < floor)
			floor = turns->longest[first + at].ns;
	turns->floor = floor;
	return 0;
}
