/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All waits of threads of others: from when a thread could run until it does, whatever made it wait.
 *
 * The kernel's own account of the same is `sched_info.run_delay`, field 2 of /proc/TID/schedstat. A
 * wait here begins and ends where it does there, so that both can be compared. All of this happens
 * under the lock of the thread's run queue, or in the thread itself: no two programs change the
 * waits of a thread at once.
 *
 * From 6.12 on a thread that falls asleep may stay in the queue for a while (`sched_delayed`). If it is moved to
 * another one meanwhile, the kernel counts that it waits from then on. That is no wait here, and a sum of its own.
 */
#pragma once

#include "beginnings.h"
#include "bpf.h"
#include "quota.h"
#include "runners.h"
#include "shared.h"
#include "state.h"

/* All zero: too large for a program's stack. */
MAP(MAP_ARRAY, u32, struct waits, 1, 0) blank_waits SEC(".maps");
MAP(MAP_ARRAY, u32, struct wait_counts, 1, 0) wait_counts SEC(".maps");
/*
 * When a thread came back last to the name or the cgroup that is followed; with this bit, a process. Those that came
 * back long ago make room.
 */
#define OF_PROCESS (1U << 31)
MAP(MAP_LRU_HASH, u32, u64, 1, 0) came_back SEC(".maps");

INLINE struct wait_counts *all_waits(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&wait_counts, &zero);
}

/* The thread waits since then, for the CPU that is known; since 0 it does not. */
INLINE void waits_since(struct waits *waits, u64 since)
{
	if (!waits->since != !since)
		__sync_fetch_and_add(&word_of(waits->cpu)->threads, since ? 1 : -1);
	waits->since = since;
}

/* How long this queue has been throttled so far, itself or with a group above it. */
INLINE u64 throttled_time(struct cfs_rq *queue)
{
	struct throttle seen = throttle_of(queue);
	return seen.since && seen.now > seen.since ? seen.sum + (seen.now - seen.since) : seen.sum;
}

INLINE u64 steal_clock(struct cpu *cpu)
{
	return cpu && cpu->runqueue && steal_time_place.is_known ? stolen(cpu) : UNKNOWN;
}

/* Whether no other thread waits for this one's CPU. */
INLINE int is_first(struct waits *waits)
{
	return READ_ONCE(word_of(waits->cpu)->threads) == 1;
}

INLINE u64 counted_run_delay(struct task_struct *task)
{
	return FIELD_EXISTS(task->sched_info.run_delay) ? READ(task, sched_info.run_delay) : 0;
}

/*
 * The waits that are kept for the number of this thread; 0 if there are none, or they are another's. A thread that
 * calls exec takes over the number of its process and when that began: only its address tells that it is another.
 */
INLINE struct waits *known_waits(struct task_struct *task)
{
	u32 pid = task->pid;
	struct waits *waits = bpf_map_lookup_elem(&waits_of, &pid);
	return waits && waits->thread == (u64)task ? waits : 0;
}

/* Another thread has this number from now on. What those before it waited stays. */
INLINE void hand_number_over(struct waits *waits, struct wait_counts *all, struct task_struct *task)
{
	if (waits->since)
		__sync_fetch_and_add(&all->broken, 1);
	waits_since(waits, 0);
	waits->thread = (u64)task;
	waits->moved_asleep = 0;
	waits->run_delay_earlier = waits->run_delay;
	waits->run_delay_base = task ? counted_run_delay(task) : 0;
}

/* The waits of a thread; makes room for them if there is any. */
INLINE struct waits *waits_of_thread(struct task_struct *task, struct wait_counts *all)
{
	u32 pid = task->pid;
	struct waits *waits = bpf_map_lookup_elem(&waits_of, &pid);
	if (COLD(!waits)) {
		u32 zero = 0;
		void *blank = bpf_map_lookup_elem(&blank_waits, &zero);
		if (blank)
			bpf_map_update_elem(&waits_of, &pid, blank, IF_ABSENT);
		waits = bpf_map_lookup_elem(&waits_of, &pid);
	}
	if (!waits)
		__sync_fetch_and_add(&all->no_room, 1);
	else if (COLD(waits->thread != (u64)task))
		hand_number_over(waits, all, task);
	return waits;
}

/* The thread waits in this queue. */
INLINE void waits_in(struct waits *waits, struct task_struct *task, struct cfs_rq *queue)
{
	waits->queue = may_be_stopped(task) ? (u64)queue : 0;
	waits->throttled_since = waits->queue ? throttled_time(queue) : 0;
}

/* How long that queue was throttled since the thread waits in it. */
INLINE u64 stopped_in_queue(struct waits *waits)
{
	if (!waits->queue)
		return 0;
	u64 now = throttled_time((void *)waits->queue);
	return now > waits->throttled_since ? now - waits->throttled_since : 0;
}

/*
 * How long a real-time thread had to give way to all others since it waits, because real-time tasks had used up their
 * time. Of one that was moved that is not known.
 */
INLINE u64 held_back(struct waits *waits, struct task_struct *task)
{
	struct cpu *cpu = cpu_of(waits->cpu);
	if (!cpu || waits->moved || task->prio < 0 || task->prio >= 100)
		return 0;
	return cpu->held_back - waits->held_back_before;
}

/* How long of this wait the thread was stopped by a quota or a throttle. Sets `unsure` if nobody knows. */
INLINE u64 stopped_time(struct waits *waits, struct task_struct *task, u64 ns, u32 *unsure)
{
	if (waits->stopped)
		return ns;
	u64 time = waits->stopped_before + held_back(waits, task);
	/* In another group than it waited in: how long it was stopped in that is not known. */
	if (waits->queue && (u64)READ(task, se.cfs_rq) != waits->queue)
		*unsure = 1;
	else
		time += stopped_in_queue(waits);
	return time < ns ? time : ns;
}

/*
 * Who ran on this CPU longest while the thread waited for it, and for how long; `last` is who has just made room. If
 * the thread was moved, nobody has looked who ran when it came, and only what `last` did is known.
 */
INLINE void name_runner(struct waits *waits, struct waits_of_kind *of, struct cpu *cpu, struct task_struct *last, u64 ns)
{
	of->worst_ran = of->worst_all_ran[ORDINARY] = of->worst_all_ran[URGENT] = 0;
	of->runner.pid = 0;
	if (!cpu)
		return;
	if (waits->moved) {
		u64 here = waits->since + ns - waits->moved_at;
		of->worst_ran = cpu->ran_last < here ? cpu->ran_last : here;
		describe(&of->runner, last);
		return;
	}
	u32 most = 0;
	for (u32 at = 0; at < RUNNERS; at++) {
		u64 ran = ran_meanwhile(waits, &cpu->runners[at], at);
		if (ran > of->worst_ran) {
			of->worst_ran = ran;
			most = at;
		}
	}
	if (of->worst_ran)
		of->runner = cpu->runners[most & (RUNNERS - 1)].task;
	if (of->worst_ran > ns)
		of->worst_ran = ns;
	for (u32 rank = 0; rank < RANKS; rank++)
		of->worst_all_ran[rank] = cpu->all_ran[rank] - waits->all_ran_before[rank];
}

/*
 * Counts the open wait, which was that long. `other` is who had the CPU last; 0 if its end was not seen:
 * then it may be several waits, and is not the longest of any.
 */
INLINE void wait_is_over(struct waits *waits, struct wait_counts *all, struct task_struct *task,
			 struct task_struct *other, u32 number, u64 ns, u64 steal)
{
	u32 unsure = 0;
	u64 stopped = stopped_time(waits, task, ns, &unsure);
	u32 kind = waits->moved ? WAIT_MIGRATED : waits->kind;
	/* What took most of the time names the wait. */
	if (stopped && stopped >= ns - stopped)
		kind = WAIT_THROTTLED;
	struct waits_of_kind *of = &waits->of[kind & (WAIT_KINDS - 1)];
	of->count++;
	of->sum += ns;
	of->stopped += stopped;
	of->steal += steal;
	if (other && (!of->worst || ns > of->worst)) {
		of->worst = ns;
		of->worst_at = waits->since;
		of->worst_stopped = stopped;
		of->worst_steal = steal;
		of->worst_cpu = number;
		of->worst_unsure = unsure;
		of->worst_prio = prio_of(task, READ(task, prio));
		of->worst_normal_prio = prio_of(task, READ(task, normal_prio));
		name_runner(waits, of, cpu_of(number), other, ns);
		/* Its name may have changed. */
		describe(&waits->task, task);
	}
	waits_since(waits, 0);
	__sync_fetch_and_add(&all->ended, 1);
}

/* What the kernel has counted of these waits, when it has counted so much of the thread. */
INLINE u64 run_delay_of(struct waits *waits, u64 counted)
{
	return waits->run_delay_earlier + grown(counted, waits->run_delay_base);
}

/* What the kernel counts as a part of this wait, which is over, although the thread slept. */
INLINE u64 sleep_of_this_wait(struct waits *waits)
{
	u64 ns = waits->asleep_before;
	waits->asleep += ns;
	waits->asleep_before = 0;
	return ns;
}

/* Whether the thread had another name, or was in another cgroup, for a while since its last wait began. */
INLINE int was_away(struct waits *waits, struct task_struct *task)
{
	if (targets != COMM && targets != CGROUP)
		return 0;
	u32 own = task->pid, process = task->tgid | OF_PROCESS;
	u64 *back = bpf_map_lookup_elem(&came_back, &own);
	if (back && *back > waits->began)
		return 1;
	back = bpf_map_lookup_elem(&came_back, &process);
	return back && *back > waits->began;
}

/*
 * What the kernel has counted of the thread beyond all that is known here. While it was away it was not followed: these
 * are not its waits. Otherwise they were missed.
 */
INLINE void has_counted_more(struct waits *waits, struct wait_counts *all, struct task_struct *task, u64 ns)
{
	if (was_away(waits, task)) {
		waits->away += ns;
		waits->run_delay_base += ns;
		return;
	}
	waits->unseen += ns;
	waits->run_delay += ns;
	__sync_fetch_and_add(&all->begins_missed, 1);
}

/* A thread is moved that waits for nothing. What the kernel has counted since it was moved last is sleep. */
INLINE void sleeper_moves(struct waits *waits, struct task_struct *task)
{
	if (!FIELD_EXISTS(task->se.sched_delayed) || !READ(task, se.sched_delayed) || !is_target(task))
		return;
	u64 counted = run_delay_of(waits, READ(task, sched_info.run_delay));
	if (waits->moved_asleep && counted > waits->run_delay && !was_away(waits, task)) {
		waits->asleep += counted - waits->run_delay;
		waits->run_delay = counted;
	}
	waits->moved_asleep = 1;
}

/*
 * A thread begins to wait. If it waits already here, or if the kernel has counted more than was seen
 * here, a switch was not seen. The kernel's own account tells how long it waited then. A host may keep
 * a CPU from its tracers for a moment (KVM, 6.18).
 */
INLINE void make_up(struct waits *waits, struct wait_counts *all, struct task_struct *task)
{
	if (!FIELD_EXISTS(task->sched_info.run_delay)) {
		if (waits->since)
			__sync_fetch_and_add(&all->broken, 1);
		return;
	}
	u64 counted = READ(task, sched_info.run_delay);
	u64 ns = grown(counted, waits->run_delay_since);
	if (waits->since && ns) {
		ns = grown(ns, sleep_of_this_wait(waits));
		waits->by_clock += ns;
		waits->run_delay = run_delay_of(waits, counted);
		waits->compared++;
		wait_is_over(waits, all, task, 0, waits->cpu, ns, 0);
		__sync_fetch_and_add(&all->ends_missed, 1);
	} else if (waits->since) {
		__sync_fetch_and_add(&all->broken, 1);
	} else {
		u64 more = grown(run_delay_of(waits, counted), waits->run_delay);
		if (COLD(more))
			has_counted_more(waits, all, task, more);
	}
}

/* Whether a thread that is queued since then, with so much counted, still waits as it is known here. */
INLINE int is_same_wait(struct waits *waits, u64 queued, u64 counted)
{
	if (!waits->since)
		return 0;
	/* Moved, it is queued anew, and what it waited before is counted. */
	if (waits->moved)
		return counted == waits->run_delay_moved;
	return counted == waits->run_delay_since && (!queued || queued == waits->clock_since);
}

/* A wait begins. `clock` is the run queue's, as the kernel's own account has it; 0 if that has none. */
INLINE struct waits *wait_begins(struct task_struct *task, u32 kind, u64 now, u64 clock)
{
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	struct wait_counts *all = all_waits();
	if (!asked || !all || !counts_now(asked, now))
		return 0;
	struct waits *waits = waits_of_thread(task, all);
	if (!waits)
		return 0;
	make_up(waits, all, task);
	__sync_fetch_and_add(&all->begun, 1);
	waits->cpu = task_cpu(task);
	waits_since(waits, now);
	waits->began = now;
	waits->clock_since = clock;
	waits->asleep_before = 0;
	waits->moved_asleep = 0;
	waits->kind = kind;
	waits->moved = 0;
	waits->stopped = 0;
	waits->steal_since = steal_clock(cpu_of(waits->cpu));
	waits->run_delay_since = counted_run_delay(task);
	waits->stopped_before = 0;
	waits_in(waits, task, READ(task, se.cfs_rq));
	return waits;
}

/*
 * A thread is switched to. Compares with the kernel's own account, which is about to add this wait. 0 if
 * that shows that it waits since another time than is known here.
 */
INLINE int compare_run_delay(struct waits *waits, struct wait_counts *all, struct cpu *cpu,
			     struct task_struct *task, u64 ns)
{
	struct rq *rq = (void *)runqueue(cpu);
	if (!FIELD_EXISTS(task->sched_info.run_delay) || !rq)
		return waits->since != 0;
	u64 clock = READ(rq, clock);
	u64 queued = READ(task, sched_info.last_queued);
	u64 counted = READ(task, sched_info.run_delay);
	u64 last = queued && clock > queued ? clock - queued : 0;
	waits->moved_asleep = 0;
	if (!is_same_wait(waits, queued, counted)) {
		if (waits->since) {
			make_up(waits, all, task);
			waits_since(waits, 0);
		}
		u64 more = grown(run_delay_of(waits, counted), waits->run_delay) + last;
		if (more)
			has_counted_more(waits, all, task, more);
		return 0;
	}
	waits->run_delay = run_delay_of(waits, counted) + last;
	waits->compared++;
	if (!queued)
		/* Preempted when it was about to sleep: the kernel does not count that. */
		waits->not_in_run_delay += ns;
	else if (waits->moved)
		/* The kernel leaves out the time between two queues. */
		waits->by_clock += grown(grown(counted, waits->run_delay_since) + last, sleep_of_this_wait(waits));
	else if (clock > waits->clock_since)
		waits->by_clock += grown(clock - waits->clock_since, sleep_of_this_wait(waits));
	return 1;
}

INLINE void wait_ends(struct waits *waits, struct cpu *cpu, u32 number, struct task_struct *prev,
		      struct task_struct *task, u64 now)
{
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	struct wait_counts *all = all_waits();
	/* What still waits at the end of the run is open. */
	if (!asked || !all || !asked->start)
		return;
	u64 ns = now - waits->since;
	if (!compare_run_delay(waits, all, cpu, task, ns))
		return;
	u64 steal = steal_clock(cpu);
	int is_known = waits->cpu == number && waits->steal_since != UNKNOWN && steal != UNKNOWN;
	steal = is_known && steal > waits->steal_since ? steal - waits->steal_since : 0;
	wait_is_over(waits, all, task, prev, number, ns, steal < ns ? steal : ns);
}

/*
 * The waits of the thread that is switched to, if it is one of ours: it is followed, or was when it began
 * to wait. Then somebody waits for this CPU.
 */
INLINE struct waits *waits_of_next(struct task_struct *next, int is_waited)
{
	int is_followed = is_target(next);
	int may_have_been = (targets == COMM || targets == CGROUP) && is_waited;
	if (!next->pid || !(is_followed || may_have_been))
		return 0;
	struct waits *waits = known_waits(next);
	return waits && (is_followed || waits->since) ? waits : 0;
}

/* What the clock of the run queue says that this task leaves; 0 if that is not known. */
INLINE u64 clock_of(struct task_struct *prev)
{
	struct cfs_rq *queue = prev->se.cfs_rq;
	return FIELD_EXISTS(queue->rq) ? queue->rq->clock : 0;
}

/* `prev` makes room for `next`. */
INLINE void follow_waits(u64 *ctx, struct cpu *cpu, u32 number)
{
	struct task_struct *prev = (void *)ctx[1];
	struct task_struct *next = (void *)ctx[2];
	int is_waited = READ_ONCE(word_of(number)->threads) != 0;
	struct waits *waits = waits_of_next(next, is_waited);
	int is_left = prev->pid && is_target(prev) && (ctx[0] || !sleeps(prev));
	u64 clock = clock_of(prev);
	if (is_waited)
		has_run_until(cpu, prev, clock);
	if (is_waited || is_left)
		cpu->holds_back = holds_back(prev, next);
	if (HOT(!is_left && !waits))
		return;
	u64 now = bpf_ktime_get_ns();
	if (waits)
		wait_ends(waits, cpu, number, prev, next, now);
	if (!is_left)
		return;
	waits = wait_begins(prev, WAIT_PREEMPTED, now, clock);
	if (!waits)
		return;
	waits->stopped = stopped_by_its_own(cpu, prev);
	describe(&waits->task, prev);
	remember_runners(waits, cpu, 0, clock, is_first(waits));
}

/* A thread was made ready, and is in the queue of its CPU. */
APART int is_queued(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	if (!is_target(task))
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct waits *waits = known_waits(task);
	/* One that runs, or waits already, had only been about to sleep. */
	if (bpf_get_current_task() == (u64)task || (FIELD_EXISTS(task->on_cpu) && READ(task, on_cpu)))
		return 0;
	u64 queued = 0, counted = 0;
	if (FIELD_EXISTS(task->sched_info.last_queued)) {
		queued = READ(task, sched_info.last_queued);
		counted = READ(task, sched_info.run_delay);
		if (!queued)
			return 0;
	}
	if (waits && is_same_wait(waits, queued, counted))
		return 0;
	waits = wait_begins(task, WAIT_WOKEN, now, queued);
	if (!waits)
		return 0;
	describe(&waits->task, task);
	struct cpu *cpu = cpu_of(waits->cpu);
	struct rq *rq = cpu ? (void *)runqueue_with(cpu, task) : 0;
	if (cpu)
		waits->stopped = stopped_by_its_own(cpu, task);
	/* A thread that is put into a queue is stamped with this clock. An older stamp is from when it was moved. */
	u64 clock = rq ? READ(rq, clock) : 0;
	if (queued && clock > queued)
		waits->asleep_before = clock - queued;
	if (!rq)
		return 0;
	struct task_struct *runs = READ(rq, curr);
	remember_runners(waits, cpu, runs, clock, is_first(waits));
	cpu->holds_back = throttles(cpu, runs);
	return 0;
}

SEC("tp_btf/sched_wakeup") int on_wakeup_of_others(u64 *ctx)
{
	return HOT(is_stranger((void *)ctx[0])) ? 0 : is_queued(ctx);
}

/* The same where a process, threads of a name, or a cgroup is followed. */
#define ON_WAKEUP(of, is_other)                                                                    \
	SEC("tp_btf/sched_wakeup") int on_wakeup_of_##of(u64 *ctx)                                 \
	{                                                                                          \
		return HOT(is_other((void *)ctx[0])) ? 0 : is_queued(ctx);                         \
	}

ON_WAKEUP(process, is_of_another_process)
ON_WAKEUP(comm, begins_otherwise)
ON_WAKEUP(cgroup, is_elsewhere)

SEC("tp_btf/sched_wakeup_new") int on_first_wakeup_of_others(u64 *ctx)
{
	return HOT(is_stranger((void *)ctx[0])) ? 0 : is_queued(ctx);
}

APART int comes_back(u32 key)
{
	u64 now = bpf_ktime_get_ns();
	bpf_map_update_elem(&came_back, &key, &now, 0);
	return 0;
}

/* A thread that was followed before is given a name. Up to here it had another than that which is followed. */
SEC("tp_btf/task_rename") int on_rename(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	return is_target(task) || !known_waits(task) ? 0 : comes_back(task->pid);
}

/* A thread, or all of its process, was moved to a cgroup: of the unified hierarchy, if it is in it now. */
SEC("tp_btf/cgroup_attach_task") int on_cgroup_attach(u64 *ctx)
{
	struct cgroup *to = (void *)ctx[0];
	struct task_struct *task = (void *)ctx[2];
	if (HOT(to->kn->id != target_cgroup || is_elsewhere(task)))
		return 0;
	return comes_back((u8)ctx[3] ? task->tgid | OF_PROCESS : task->pid);
}

/* A thread is moved to the queue of that CPU. */
INLINE void wait_moves(struct task_struct *task, u32 number)
{
	struct waits *waits = known_waits(task);
	if (!waits)
		return;
	if (!waits->since) {
		sleeper_moves(waits, task);
		return;
	}
	__sync_fetch_and_add(&word_of(waits->cpu)->threads, -1);
	__sync_fetch_and_add(&word_of(number)->threads, 1);
	waits->steal_since = UNKNOWN;
	/* Up to the last switch there. */
	waits->stopped_before += stopped_in_queue(waits) + held_back(waits, task);
	waits->cpu = number;
	waits->moved = 1;
	waits->moved_at = bpf_ktime_get_ns();
	waits->run_delay_moved = counted_run_delay(task);
	waits_in(waits, task, queue_on(task, number));
}

/*
 * A thread is gone. Its number may be another's from now on, and so may its address. After the end of the run neither
 * matters: what still waited then is open, even if it has run and ended since.
 */
INLINE void end_of_waits(struct task_struct *task)
{
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	struct waits *waits = known_waits(task);
	struct wait_counts *all = all_waits();
	if (waits && all && asked && asked->start)
		hand_number_over(waits, all, 0);
}
