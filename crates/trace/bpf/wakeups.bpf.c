/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Follows wakeups from stimulus to response.
 *
 * What is seen is kept per CPU in a ring that forgets; all that is counted is counted here. Only a
 * wakeup that was late leaves the kernel, with the events of its CPU. Programs that run at each
 * switch look at one word and return where no wakeup waits for the CPU.
 */
#include "beginnings.h"
#include "bpf.h"
#include "endings.h"
#include "interrupts.h"
#include "memory.h"
#include "moves.h"
#include "quota.h"
#include "runners.h"
#include "sections.h"
#include "shared.h"
#include "state.h"
#include "steal.h"
#include "waiting.h"
#include "waits.h"

SEC("tp_btf/sched_migrate_task") int on_migrate(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 pid = task->pid;
	if (targets != NAMED)
		wait_moves(task, ctx[1]);
	struct wakeup *wakeup = wakeup_of(pid);
	if (HOT(!wakeup) || wakeup->state == IDLE)
		return 0;
	if (wakeup->state == RUNNING) {
		/* It was preempted before it answered, and goes on elsewhere. */
		wakeup->events_elsewhere++;
		return 0;
	}
	struct cpu *to = cpu_of(ctx[1]);
	if (!to)
		return 0;
	/* Who wakes it also chooses its CPU: then it has not waited in a queue yet. */
	int has_waited = READ(task, on_rq);
	u64 now = bpf_ktime_get_ns();
	if (has_waited)
		end_quota(wakeup, task, now);
	if (move_wakeup(wakeup, task, ctx[1], to, has_waited)) {
		forget_task(&wakeup->runs);
		look_there(&wakeup->runs, to);
		begin_quota(wakeup, task, queue_on(task, ctx[1]), now);
	}
	struct cpu *here = this_cpu();
	if (here)
		tell_own_time(here, now);
	return 0;
}

APART int keep_sched_entry(void)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	cpu->sched_entry = bpf_ktime_get_ns();
	next_event(cpu, SCHED_ENTRY, cpu->sched_entry);
	return 0;
}

SEC("tp_btf/sched_entry_tp") int on_sched_entry(u64 *ctx)
{
	return HOT(!is_waited_for(bpf_get_smp_processor_id())) ? 0 : keep_sched_entry();
}

/* Of all that RCU tells of, only this begins so: "Start context switch", and not "Start scheduler-tick". */
APART int keep_context_switch(u64 what)
{
	char begin[8] = {};
	bpf_probe_read_kernel(begin, sizeof(begin), (void *)what);
	return begin[0] == 'S' && begin[6] == 'c' && begin[7] == 'o' ? keep_sched_entry() : 0;
}

/*
 * Kernels without that tracepoint (6.12 has none, 6.16 has it) show the scheduler's entry as well: it tells RCU, as
 * soon as it has interrupts off.
 */
SEC("tp_btf/rcu_utilization") int on_rcu_utilization(u64 *ctx)
{
	return HOT(!is_waited_for(bpf_get_smp_processor_id())) ? 0 : keep_context_switch(ctx[0]);
}

INLINE u64 switches(struct task_struct *task)
{
	return READ(task, nvcsw) + READ(task, nivcsw);
}

/* From here on the wakeup is not made much later by it. */
#define LONG_SINCE 250000

/*
 * Who gave the CPU up, and where. Its own program says little of one that had to give way, and idle
 * nothing at all.
 *
 * A stack here is taken while the wakeup waits: 5 to 20 us, 38 where caches are cold (guest of KVM,
 * 6.18). Who had to give way to a named thread goes on when that sleeps, and has the same stack then,
 * when taking it delays nobody. Who slept by itself holds nobody up by how it does so: that is looked
 * at where it costs a tenth of the wakeup at most.
 */
INLINE void look_at_last(void *ctx, struct cpu *cpu, struct wakeup *wakeup, struct task_struct *prev,
			 struct task_struct *next, u64 now)
{
	int slept = sleeps(prev);
	if (!prev->pid || (slept && now - wakeup->due < LONG_SINCE))
		return;
	wakeup->away_pid = prev->pid;
	int own_program = prev->prio <= next->prio;
	int later = targets == NAMED && !slept;
	if (own_program || !later)
		cpu->traces = 1;
	if (later)
		wakeup->away_switches = switches(prev);
	else
		wakeup->away_bytes = bpf_get_stack(ctx, wakeup->away, sizeof(wakeup->away), 0);
	if (own_program)
		wakeup->away_user_bytes = bpf_get_stack(ctx, wakeup->away_user,
							sizeof(wakeup->away_user), USER_STACK);
}

/* The same now that the named thread sleeps, if `next` is who it was and has not run since. */
INLINE void look_back(struct wakeup *wakeup, struct task_struct *next)
{
	if (HOT(!wakeup->away_switches))
		return;
	if (next->pid == wakeup->away_pid && switches(next) == wakeup->away_switches)
		wakeup->away_bytes =
			bpf_get_task_stack(next, wakeup->away, sizeof(wakeup->away), 0);
	wakeup->away_switches = 0;
}

INLINE void switch_in(void *ctx, struct cpu *cpu, u32 number, struct task_struct *prev,
		      struct task_struct *next, u64 now)
{
	u32 pid = next->pid;
	struct wakeup *wakeup = wakeup_of(pid);
	if (wakeup && wakeup->state == RUNNING)
		end_quota(wakeup, next, now);
	if (!wakeup || wakeup->state != WOKEN)
		return;
	/*
	 * Who had to give way since it was woken, without having gone to sleep, was awake then: that this
	 * is over now says nothing of the wakeup.
	 */
	if (targets != NAMED && wakeup->preempted != next->nivcsw) {
		give_up(wakeup);
		return;
	}
	if (wakeup->cpu != number) {
		/* Moved without a word. */
		if (!move_wakeup(wakeup, next, number, cpu, 1))
			return;
		describe(&wakeup->runs, prev);
	}
	wakeup->switch_in = now;
	add_stolen(wakeup, stolen(cpu), now);
	end_quota(wakeup, next, now);
	wakeup->sched_entry = cpu->sched_entry >= wakeup->woken ? cpu->sched_entry : 0;
	wakeup->faults_before = next->min_flt + next->maj_flt;
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	if (asked && asked->look && now - wakeup->due >= asked->look)
		look_at_last(ctx, cpu, wakeup, prev, next, now);
	if (targets == NAMED)
		wakeup->state = RUNNING;
	else
		end(wakeup, cpu, next, number, now);
}

INLINE void switch_out(struct task_struct *prev, struct task_struct *next, u64 now)
{
	u32 pid = prev->pid;
	struct wakeup *wakeup = wakeup_of(pid);
	if (!wakeup || wakeup->state == IDLE)
		return;
	/*
	 * One that is only preempted is looked at until it sleeps: before that its next timer is not
	 * there to expire, and who keeps it from that is to be seen.
	 */
	if (!sleeps(prev)) {
		begin_quota(wakeup, prev, READ(prev, se.cfs_rq), now);
		return;
	}
	look_back(wakeup, next);
	/* Where it waited: it may have been moved since it ran, and it is there that it counts as open. */
	struct cpu *waited = cpu_of(wakeup->cpu);
	if (waited)
		answered(wakeup, waited, pid, prev);
}

INLINE void describe_thread(struct switched *to, struct task_struct *task)
{
	to->pid = task->pid;
	to->prio = prio_of(task, task->prio);
	to->policy = task->policy;
}

/*
 * A thread is lent a priority, or gives one back. If it gives it back before it is switched away from, nothing else
 * tells that it was lent one. Other CPUs' lending is not told: only this CPU's programs write to its ring.
 */
SEC("tp_btf/sched_pi_setprio") int on_pi_setprio(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct task_struct *donor = (void *)ctx[1];
	struct cpu *cpu = this_cpu();
	if (also_followed & ALL_WAITS)
		rank_changes(task);
	if (!cpu || HOT(!is_waited_for(bpf_get_smp_processor_id())) || bpf_get_current_task() != (u64)task)
		return 0;
	s32 next = READ(task, normal_prio);
	if (donor && READ(donor, prio) < next)
		next = READ(donor, prio);
	if (next > READ(task, prio))
		describe_thread(&next_event(cpu, DEBOOST, bpf_ktime_get_ns())->lent_to, task);
	return 0;
}

APART int follow_switch(u64 *ctx)
{
	u32 number = bpf_get_smp_processor_id();
	struct cpu *cpu = cpu_of(number);
	if (COLD(also_followed & ALL_SECTIONS))
		switch_in_section(number);
	if ((also_followed & ALL_WAITS) && cpu)
		follow_waits(ctx, cpu, number);
	struct task_struct *prev = (void *)ctx[1];
	struct task_struct *next = (void *)ctx[2];
	/* RT: a softirq that is switched away from has the time of other tasks in it. */
	if (cpu && FIELD_EXISTS(next->softirq_disable_cnt))
		cpu->softirq_entry = 0;
	if (!cpu || !is_waited_for(number))
		return 0;
	u64 now = bpf_ktime_get_ns();
	/* Nobody is switched to in an interrupt: an exit that was not seen is made up for here. */
	cpu->irq_depth = 0;
	if (targets == NAMED)
		switch_out(prev, next, now);
	struct cpu_switch *cpu_switch = &next_event(cpu, SWITCH, now)->cpu_switch;
	describe_thread(&cpu_switch->prev, prev);
	describe_thread(&cpu_switch->next, next);
	cpu_switch->throttled = throttles(cpu, next);
	bpf_probe_read_kernel(cpu_switch->comm, sizeof(cpu_switch->comm), &next->comm);
	keep_switch(cpu);
	cpu->switched = now;
	switch_in(ctx, cpu, number, prev, next, now);
	tell_own_time(cpu, now);
	return 0;
}

/*
 * What each switch runs through. The loader attaches the one of these that has least to ask: what the
 * others ask in vain is as much as a call of a program again.
 */
SEC("tp_btf/sched_switch") int on_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];
	struct task_struct *next = (void *)ctx[2];
	int is_asked = is_waited_for_at_all(switching_cpu(prev)) || (also_followed & ALL_SECTIONS);
	if (also_followed & ALL_WAITS)
		is_asked = is_asked || !is_stranger(prev) || !is_stranger(next);
	return HOT(!is_asked) ? 0 : follow_switch(ctx);
}

/* Of probes, and without sections. */
SEC("tp_btf/sched_switch") int on_switch_for_probes(u64 *ctx)
{
	return HOT(!is_waited_for(switching_cpu((void *)ctx[1]))) ? 0 : follow_switch(ctx);
}

/* Of a process, and without sections. Each read of what the loader sets is an instruction: it is read once. */
SEC("tp_btf/sched_switch") int on_switch_of_process(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];
	struct task_struct *next = (void *)ctx[2];
	s32 process = target_pid;
	if (HOT(prev->tgid != process && next->tgid != process &&
		!is_waited_for_at_all(switching_cpu(prev))))
		return 0;
	return follow_switch(ctx);
}

/*
 * Of threads of a name or a cgroup, and without sections. A thread that waits may be renamed meanwhile, by another
 * thread of its process, or be moved to another cgroup.
 */
#define ON_SWITCH(of, is_other)                                                                    \
	SEC("tp_btf/sched_switch") int on_switch_of_##of(u64 *ctx)                                 \
	{                                                                                          \
		struct task_struct *prev = (void *)ctx[1];                                         \
		struct task_struct *next = (void *)ctx[2];                                         \
		if (HOT(is_other(prev) && is_other(next) &&                                        \
			!is_waited_for_at_all(switching_cpu(prev))))                               \
			return 0;                                                                  \
		return follow_switch(ctx);                                                         \
	}

ON_SWITCH(comm, begins_otherwise)
ON_SWITCH(cgroup, is_elsewhere)

/* Not at its exit, which it may sleep in after that was told: only what is freed is woken no more. */
SEC("tp_btf/sched_process_free") int on_free(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 pid = task->pid;
	end_of_waits(task);
	struct wakeup *wakeup = wakeup_of(pid);
	if (!wakeup)
		return 0;
	if (wakeup->state != IDLE)
		give_up(wakeup);
	bpf_map_delete_elem(&wakeups, &pid);
	u32 second = pid | SECOND;
	if (announced)
		bpf_map_delete_elem(&wakeups, &second);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
