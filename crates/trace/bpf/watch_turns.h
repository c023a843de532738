/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whose turns there were on a CPU while a task waited for it, for the longest waits.
 *
 * At each switch 40 bytes are written to a ring of that CPU, and no clock is read: the run queue has all of them.
 * The row of a task stands for its name and cgroup. Only a wait that is longer than those that are kept already is
 * kept, with a copy of the last turns. The loader reads those before them from the ring.
 */
#pragma once

#include "bpf.h"
#include "watch.h"
#include "watch_quota.h"
#include "watch_tasks.h"

/* Turns that the ring of each CPU has room for, less one: they are a power of 2, and more than KEPT_TURNS. */
const volatile u32 turn_mask = 0;

/* The rings of all CPUs, one after the other. */
MAP(MAP_ARRAY, u32, struct turn, 1, MAP_MMAPABLE) turns SEC(".maps");

#define barrier() asm volatile("" ::: "memory")

/* Shorter waits are only counted: src/watch/layout.rs has the same, ns. */
#define LEAST_LONG 1000000

/* The cgroup in the unified hierarchy: 0 without one. */
INLINE u64 cgroup_of(struct task_struct *task)
{
	return FIELD_EXISTS(task->cgroups) ? task->cgroups->dfl_cgrp->kn->id : 0;
}

INLINE void describe_series(struct series *series, struct task_struct *task)
{
	series->cgroup = cgroup_of(task);
	u64 *comm = (u64 *)__builtin_preserve_access_index(&task->comm);
	series->comm[0] = comm[0];
	series->comm[1] = comm[1];
}

/* Where the turn with this number is, of the last ones of that CPU. */
INLINE struct turn *turn_at(u32 cpu, u64 number)
{
	u32 mask = turn_mask, at = cpu * (mask + 1) + ((u32)number & mask);
	return bpf_map_lookup_elem(&turns, &at);
}

/* All but whose it is. */
INLINE void begin_turn(struct turn *turn, struct task_struct *task, struct cpu_row *cpu)
{
	struct rq *rq = task->se.cfs_rq->rq;
	u64 clock = rq->clock;
	turn->clock = clock;
	turn->lost = clock - rq->clock_task;
	turn->steal = FIELD_EXISTS(rq->prev_steal_time_rq) ? rq->prev_steal_time_rq : 0;
	turn->pid = task->pid;
	turn->prio = prio_of(task, task->prio);
	turn->policy = task->policy;
	cpu->irq = FIELD_EXISTS(rq->prev_irq_time) ? rq->prev_irq_time : 0;
}

/* Begins anew in the bank that is asked for. */
INLINE void change_bank(struct cpu_row *cpu, u64 asked, u32 first)
{
	cpu->bank = asked;
	cpu->floor = 0;
	for (u32 at = 0; at < LONGEST; at++)
		cpu->longest[first + at].ns = 0;
}

INLINE void keep_turns(struct long_wait *wait, u32 cpu)
{
#pragma nounroll
	for (u32 at = 0; at < KEPT_TURNS; at++) {
		struct turn *turn = turn_at(cpu, wait->turn - at);
		if (!turn)
			return;
		wait->turns[at] = *turn;
		/* Of a loop without this the compiler makes a call of memcpy(), which programs do not have. */
		barrier();
	}
}

/* Keeps where the task was before, if it was moved during this wait. The books are up to date with it. */
INLINE void keep_stays(struct long_wait *wait, u32 pid, struct task_books *books)
{
	struct stays *stays = known_stays(pid);
	/* The task was not moved since the wait began, or nobody saw it. */
	if (stays && books && stays->run_delay <= books->run_delay - wait->ns)
		stays = 0;
#pragma unroll
	for (u32 at = 0; at < STAYS; at++) {
		wait->stays[at].ns = 0;
		if (stays && books)
			wait->stays[at] = stays->each[at];
	}
}

/* Keeps the wait that has just ended, of which `here` was in this CPU's queue, if it is among the longest. */
APART int keep_long_wait(struct task_struct *task, struct task_books *books, struct cpu_row *cpu, u64 ns, u64 here)
{
	u64 asked = READ_ONCE(cpu->asked);
	u32 bank = asked & (BANKS - 1), first = bank * LONGEST, place = 0;
	cpu->long_waits[bank]++;
	if (cpu->bank != asked)
		change_bank(cpu, asked, first);
	if (ns <= cpu->floor)
		return 0;
	for (u32 at = 1; at < LONGEST; at++)
		if (cpu->longest[first + at].ns < cpu->longest[first + place].ns)
			place = at;
	struct long_wait *wait = &cpu->longest[first + place];
	WRITE_ONCE(wait->version, wait->version + 1);
	barrier();
	wait->asked = asked;
	wait->ns = ns;
	wait->here = here;
	wait->at = bpf_ktime_get_ns();
	u64 began = task->se.cfs_rq->rq->clock - here;
	wait->quota = taken_by_quota(task, books, began, here, here == ns);
	describe_series(&wait->whose, task);
	keep_stays(wait, task->pid, books);
	wait->turn = cpu->switches - 1;
	keep_turns(wait, switching_cpu(task));
	barrier();
	WRITE_ONCE(wait->version, wait->version + 1);
	u64 floor = cpu->longest[first].ns;
	for (u32 at = 1; at < LONGEST; at++)
		if (cpu->longest[first + at].ns < floor)
			floor = cpu->longest[first + at].ns;
	cpu->floor = floor;
	return 0;
}
