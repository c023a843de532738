/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In which queues a task waited before it was moved to the one where its wait ended.
 *
 * The kernel takes a task that waits out of its queue before it moves it, and adds to the task's sum what it waited
 * there. The run queue is still locked then. So by the clock of that queue the stay has just ended, and it began as
 * long before as the sum has grown since the last move or, without one, since the task ran. The loader looks in the
 * ring of that CPU for who ran meanwhile.
 *
 * A stay is noted only if that is certain, and what a quota took of it. The time of any other is nobody's.
 */
#pragma once

#include "bpf.h"
#include "watch.h"
#include "watch_quota.h"
#include "watch_tasks.h"
#include "watch_turns.h"

/* Notes a stay of so many ns that ends now, if there is room. */
INLINE void note_stay(struct stays *stays, struct rq *rq, struct cpu_row *cpu, u32 number, u64 ns,
		      u64 throttled)
{
#pragma unroll
	for (u32 at = 0; at < STAYS; at++) {
		struct stay *stay = &stays->each[at];
		if (stay->ns)
			continue;
		u64 clock = rq->clock;
		stay->ns = ns;
		stay->clock = clock;
		stay->lost = clock - rq->clock_task;
		stay->steal = FIELD_EXISTS(rq->prev_steal_time_rq) ? rq->prev_steal_time_rq : 0;
		stay->throttled = throttled;
		stay->turns = cpu->switches;
		stay->cpu = number;
		return;
	}
}

/* The task is moved away from this CPU. If it wakes it was in no queue, and its sum has not grown. */
APART int leave_queue(struct task_struct *task, struct task_books *books, struct cpu_row *cpu, u32 number)
{
	struct stays *stays = known_stays(task->pid);
	if (!stays)
		return 0;
	u64 counted = task->sched_info.run_delay, moves = task->se.nr_migrations;
	/* Of a move that was not seen it is not known from which queue it was, nor when. */
	int is_certain = stays->moves == moves && task->sched_info.pcount == books->arrivals;
	stays->moves = moves + 1;
	u64 before = stays->run_delay;
	int is_first = before <= books->run_delay;
	if (is_first) {
		before = books->run_delay;
		for (u32 at = 0; at < STAYS; at++)
			stays->each[at].ns = 0;
	}
	if (counted <= before)
		return 0;
	stays->run_delay = counted;
	struct rq *rq = task->se.cfs_rq->rq;
	u64 ns = counted - before;
	struct bounds quota = taken_by_quota(task, books, rq->clock - ns, ns, is_first);
	/* Another task runs than was switched to last, if the kernel did not report that switch. */
	if (is_certain && cpu && cpu->switches && (u32)rq->curr->pid == (u32)cpu->runs && quota.least == quota.most)
		note_stay(stays, rq, cpu, number, ns, quota.least);
	return 0;
}
