/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who ran on a CPU while threads waited for it, and for how long in all, without what interrupted it: a task has a
 * place, and whoever ran least lately makes room for another. A thread that begins to wait remembers how long they had
 * run by then. A task with a priority that it was lent has another place than the same task without.
 *
 * All of this is done under the lock of that CPU's run queue, and times are by its clock.
 */
#pragma once

#include "bpf.h"
#include "shared.h"
#include "state.h"

/* Run time, ns: what ran before as much of it weighs half, so that those who ran long ago make room. */
#define LATELY (1ULL << 29)

/* Whether this is the place of this task, with this priority. */
INLINE int is_place_of(struct runner *runner, struct task *task)
{
	return runner->task.pid == task->pid && runner->task.prio == task->prio;
}

/* The place of this task, or the one that makes room for it. Nearly all have one: that is looked for first. */
INLINE u32 place_of_runner(struct cpu *cpu, struct task *task)
{
	u32 least = 0;
#pragma unroll
	for (u32 at = 0; at < RUNNERS; at++)
		if (is_place_of(&cpu->runners[at], task))
			return at;
#pragma nounroll
	for (u32 at = 1; at < RUNNERS; at++)
		if (cpu->runners[at].weight < cpu->runners[least & (RUNNERS - 1)].weight)
			least = at;
	return least;
}

/* What runs from now on, and interrupts from now on, are counted. */
INLINE void look_from_here(struct cpu *cpu, u64 clock)
{
	if (cpu->holds_back && clock > cpu->ran_until)
		cpu->held_back += clock - cpu->ran_until;
	cpu->ran_until = clock;
	cpu->ran_interrupts = cpu->interrupts;
}

/* A task that was switched to then has run until now, with this priority since it was looked at last. */
APART int has_run(struct cpu *cpu, struct task *task, u64 since, u64 clock)
{
	int goes_on = since < cpu->ran_until;
	if (goes_on)
		since = cpu->ran_until;
	u64 most = clock > since ? clock - since : 0;
	u64 interrupts = cpu->interrupts - cpu->ran_interrupts;
	/* That a CPU was idle says nothing of why somebody waited. */
	u64 ran = task->pid && most > interrupts ? most - interrupts : 0;
	look_from_here(cpu, clock);
	cpu->ran_last = goes_on && task->pid && cpu->ran_as == task->prio ? cpu->ran_last + ran : ran;
	cpu->ran_as = task->prio;
	if (!task->pid)
		return 0;
	cpu->all_ran[task->prio < 100 ? URGENT : ORDINARY] += ran;
	struct runner *runner = &cpu->runners[place_of_runner(cpu, task) & (RUNNERS - 1)];
	if (!is_place_of(runner, task)) {
		runner->ran = 0;
		runner->given = ++cpu->given;
	}
	runner->task = *task;
	runner->ran += ran;
	/* Beside that of whom it replaces: otherwise many that ran shortly would replace each other only. */
	runner->weight += ran;
	cpu->weighed += ran;
	if (HOT(cpu->weighed < LATELY))
		return 0;
	cpu->weighed = 0;
	for (u32 at = 0; at < RUNNERS; at++)
		cpu->runners[at].weight /= 2;
	return 0;
}

/* This task makes room for another one, or gets another priority, and threads wait for its CPU. */
INLINE void has_run_until(struct cpu *cpu, struct task_struct *task, u64 clock)
{
	/* What the verifier knows the type of is read without a call: each switch comes here while a thread waits. */
	struct task who = { .pid = task->pid, .prio = prio_of(task, task->prio), .policy = task->policy };
	u64 *comm = (u64 *)__builtin_preserve_access_index(&task->comm);
	((u64 *)who.comm)[0] = comm[0];
	((u64 *)who.comm)[1] = comm[1];
	u64 since = clock;
	if (FIELD_EXISTS(task->sched_info.last_arrival))
		since = task->sched_info.last_arrival;
	has_run(cpu, &who, since, clock);
}

/* A task is about to get another priority. Its run queue is locked, also if it is that of another CPU. */
INLINE void rank_changes(struct task_struct *task)
{
	u32 number = task_cpu(task);
	struct cpu *cpu = cpu_of(number);
	if (!cpu || !READ_ONCE(word_of(number)->threads) || runs_on(cpu) != task)
		return;
	struct rq *rq = (void *)cpu->runqueue;
	has_run_until(cpu, task, READ(rq, clock));
}

/* The same as `throttles`, of a task that is switched to from `prev`, without a call. */
INLINE u32 holds_back(struct task_struct *prev, struct task_struct *next)
{
	if (FIELD_EXISTS(next->dl_server) && next->dl_server)
		return 1;
	struct cfs_rq *queue = prev->se.cfs_rq;
	if (!FIELD_EXISTS(queue->rq))
		return 0;
	struct rq *rq = queue->rq;
	return FIELD_EXISTS(rq->rt.rt_throttled) && rq->rt.rt_throttled;
}

/* A thread begins to wait for this CPU, where `runs` goes on; 0 if a task is just switched to. */
INLINE void remember_runners(struct waits *waits, struct cpu *cpu, struct task_struct *runs, u64 clock, int is_first)
{
	if (runs) {
		struct task who = {};
		describe(&who, runs);
		u64 since = clock;
		if (FIELD_EXISTS(runs->sched_info.last_arrival))
			since = READ(runs, sched_info.last_arrival);
		has_run(cpu, &who, since, clock);
	} else {
		look_from_here(cpu, clock);
	}
	waits->given = cpu->given;
	waits->held_back_before = cpu->held_back;
	waits->all_ran_before[ORDINARY] = cpu->all_ran[ORDINARY];
	waits->all_ran_before[URGENT] = cpu->all_ran[URGENT];
	for (u32 at = 0; at < RUNNERS; at++) {
		waits->ran_before[at] = cpu->runners[at].ran;
		/* Nobody else waits: who ran before is of no use any more. */
		if (is_first)
			cpu->runners[at].weight = 0;
	}
}

/* How long the task in that place has run since the thread began to wait, at least. */
INLINE u64 ran_meanwhile(struct waits *waits, struct runner *runner, u32 at)
{
	u64 before = runner->given > waits->given ? 0 : waits->ran_before[at];
	return runner->ran - before;
}
