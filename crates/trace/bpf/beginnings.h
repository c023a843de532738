/* SPDX-License-Identifier: GPL-2.0 */
/* How wakeups begin: by a timer, or by a waker. */
#pragma once

#include "endings.h"
#include "quota.h"
#include "sections.h"
#include "stacks.h"
#include "state.h"
#include "steal.h"
#include "waiting.h"

/*
 * How deep preemption is off in programs where nobody but the tracer has it off, and one more. Idle has it off
 * once. Where nothing but sections with preemption off is ever broken into, only idle tells: on 7.2-rt
 * their stacks were not taken, as if their depth were the tracer's own.
 */
INLINE u32 learn_depth(struct counts *all, u32 depth, int is_idle)
{
	u32 own = is_idle && depth ? depth : depth + 1;
	if (!all->least_depth || own < all->least_depth)
		all->least_depth = own;
	return own;
}

/* What this CPU was at when the interrupt came, as far as it may matter. */
INLINE void look_at_interrupted(void *ctx, struct cpu *cpu, struct wakeup *wakeup,
				struct task_struct *task, u64 now)
{
	wakeup->looked = 1;
	wakeup->interrupted.pid = bpf_get_current_pid_tgid();
	struct counts *all = all_counts();
	/* Nothing more is to be said of idle, which is where most wakeups come. */
	if (!wakeup->interrupted.pid && !wakeup->softirq) {
		if (COLD(all && all->least_depth != 1))
			learn_depth(all, preempt_count(cpu) & 0xff, 1);
		return;
	}
	struct task_struct *current = (void *)bpf_get_current_task();
	bpf_get_current_comm(wakeup->interrupted.comm, sizeof(wakeup->interrupted.comm));
	wakeup->interrupted.prio = prio_of(current, READ(current, prio));
	wakeup->interrupted.policy = READ(current, policy);
	wakeup->preempt_count = preempt_count(cpu);
	u32 depth = wakeup->preempt_count & 0xff;
	/* A task that is still awake is woken without the lock of its wakeups, and preemption is off once less. */
	if (all && task != current)
		learn_depth(all, depth, 0);
	if (irq_regs_place.is_known && runqueue(cpu)) {
		void *regs = interrupted_registers(cpu);
		struct pt_regs___x86 *x86 = regs;
		struct pt_regs___arm64 *arm64 = regs;
		if (!regs) {
			wakeup->mode = mode_by_stack(cpu);
		} else if (FIELD_EXISTS(x86->cs)) {
			wakeup->interrupted_ip = READ(x86, ip);
			wakeup->mode = READ(x86, cs) & 3 ? 1 : 2;
		} else if (FIELD_EXISTS(arm64->pstate)) {
			wakeup->interrupted_ip = READ(arm64, pc);
			wakeup->mode = READ(arm64, pstate) & 0xf ? 2 : 1;
		}
	}
	/* Nor of the task itself, still awake: while it catches up, that is all of them. */
	if (wakeup->interrupted.pid == READ(task, pid) && !wakeup->softirq)
		return;
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	u64 look = asked ? asked->look : 0;
	int late = now > wakeup->due && now - wakeup->due > look / 4;
	/* User code need not go where it comes first: then it is the one that holds up. */
	if (wakeup->mode == 1 && wakeup->interrupted.prio <= READ(task, prio))
		take_user_stack(ctx, cpu, wakeup);
	if (wakeup->mode == 1)
		return;
	if (late && wakeup->interrupted_ip)
		bpf_probe_read_kernel(wakeup->code, sizeof(wakeup->code),
				      (void *)(wakeup->interrupted_ip - sizeof(wakeup->code)));
	/*
	 * The stack is not needed where the kernel switches at once, nor yet where it is dear and a
	 * watchdog looks. 0xff00 counts softirqs and places where they are off.
	 */
	u32 least = all ? all->least_depth : 0;
	int held = depth + 1 > least || (wakeup->preempt_count & 0xff00) || !preemptible;
	int watched = asked && asked->watched;
	if (late || (!watched && (held || !wakeup->mode)))
		take_stack(ctx, cpu, wakeup);
}

/*
 * A wakeup that still waits here, and is late by now: what runs is what holds it up. Whoever was
 * switched to since is known by that.
 */
INLINE void look_again(void *ctx, struct cpu *cpu, u64 now)
{
	u32 pid = cpu->waiting;
	struct wakeup *wakeup = wakeup_of(pid);
	/* What runs here does not hold up one that has been moved. */
	int is_here = wakeup && wakeup->cpu == bpf_get_smp_processor_id();
	if (!is_here || wakeup->state != WOKEN) {
		cpu->waiting = 0;
		return;
	}
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	if (!asked || now < wakeup->due + asked->look / 4)
		return;
	/*
	 * One look tells all that there is to tell. Of many timers in a row each would pay for another:
	 * 188 of 952 virtual ns (7.2).
	 */
	cpu->waiting = 0;
	if (cpu->switched > wakeup->woken)
		return;
	int is_bare = (!wakeup->interrupted.pid || wakeup->interrupted.pid == pid) && !wakeup->softirq;
	if (wakeup->looked && !wakeup->stack_bytes && !wakeup->copy && wakeup->mode != 1 && !is_bare)
		take_stack(ctx, cpu, wakeup);
	tell_own_time(cpu, now);
}

/* A wakeup whose end was not seen. */
INLINE void give_up(struct wakeup *wakeup)
{
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	struct counts *all = all_counts();
	if (!asked || !all || !close_wakeup(wakeup, all))
		return;
	wakeup->state = IDLE;
	__sync_fetch_and_add(counts_now(asked, wakeup->due) ? &all->broken : &all->uncounted, 1);
}

/* Nobody is known: an idle task has a name. */
INLINE void forget_task(struct task *who)
{
	who->pid = 0;
	who->comm[0] = 0;
}

/* Who runs on the other CPU that a wakeup is to wait for: what is switched from there has no name. */
INLINE void look_there(struct task *who, struct cpu *waits)
{
	struct task_struct *runs = runs_on(waits);
	if (runs)
		describe(who, runs);
}

/* Events that are searched for the interrupt of a timer. */
#define TIMER_LOOK_BACK 64

/*
 * When the interrupt was taken by which the timer wakes that was due then; 0 if that is not known. Soft timers wake in a
 * softirq, and with PREEMPT_RT in a thread: by then others may have come since. An interrupt of timers that went on when
 * it was due may have found it.
 */
INLINE u64 entry_of_timer(struct cpu *cpu, u64 due)
{
	u64 entry = 0;
	if (HOT(cpu->irq_depth))
		return cpu->irq_entry;
#pragma nounroll
	for (u32 back = 1; back <= TIMER_LOOK_BACK; back++) {
		struct event *event = &cpu->ring[(cpu->seen - back) & (RING - 1)];
		if (back > cpu->seen || event->at_ns < due)
			return entry;
		if (event->kind == IRQ_ENTRY)
			entry = event->at_ns;
		else if (event->kind == IRQ_EXIT && event->irq.vector == LOCAL_TIMER)
			entry = due;
	}
	return 0;
}

/* Of preempt_count, from 5.10 to 7.2: how many interrupts go on. */
#define HARDIRQ_MASK 0xf0000

/*
 * What wakes a task without a timer: 2 for the task that runs, 3 for an interrupt that came while it ran. The thread of an
 * interrupt is woken after the event of its handler's end.
 */
INLINE u32 kind_of_waker(struct cpu *cpu)
{
	return cpu->irq_depth || preempt_count(cpu) & HARDIRQ_MASK ? 3 : 2;
}

/* The same of how often preemption is off, and whether a softirq runs. */
#define PREEMPT_MASK 0xff
#define SERVING_SOFTIRQ 0x100

/*
 * Whether a softirq wakes that came at the end of an interrupt, or in the thread of softirqs. Where a task runs its own
 * softirqs, as one does that sends to this machine, the kernel has preemption off once more meanwhile
 * (__local_bh_enable_ip). How often it is off without that is learnt before anything is followed.
 */
ONCE int softirq_came(u32 is_idle)
{
	struct cpu *cpu = this_cpu();
	struct counts *all = all_counts();
	if (!cpu || !all)
		return 0;
	u32 count = preempt_count(cpu);
	u32 own = learn_depth(all, count & PREEMPT_MASK, is_idle);
	return (count & SERVING_SOFTIRQ) && own <= all->least_depth;
}

/* While threads of the loader are woken by timers: see learn_depth. */
SEC("tp_btf/sched_waking") int learn_at_waking(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	struct counts *all = all_counts();
	if (cpu && all && ctx[0] != bpf_get_current_task())
		learn_depth(all, preempt_count(cpu) & PREEMPT_MASK, !(u32)bpf_get_current_pid_tgid());
	return 0;
}

INLINE void begin(void *ctx, struct wakeup *last, struct task_struct *task, u32 pid, u64 due, u64 now,
		  u32 stimulus)
{
	u32 here = bpf_get_smp_processor_id();
	struct cpu *cpu = cpu_of(here);
	u32 there = task_cpu(task);
	struct cpu *waits = cpu_of(there);
	if (!cpu || !waits)
		return;
	/*
	 * After a late wakeup the next timer may expire before the thread sleeps: it is not switched
	 * away from, so that this is the first to hear of its answer.
	 */
	struct cpu *was = last->state == IDLE ? 0 : cpu_of(last->cpu);
	if (was && !(targets == NAMED && answered(last, was, pid, task)))
		give_up(last);
	struct wakeup *wakeup = next_wakeup(pid, last);
	if (!wakeup)
		return;
	/* Nobody would know when the interrupt ends. */
	u32 woken = cpu->irq_depth ? cpu->woken_count : 0;
	if (COLD(woken >= MOST_WOKEN)) {
		count_no_room();
		return;
	}
	forget(wakeup);
	forget_task(&wakeup->runs);
	wakeup->due = due;
	wakeup->woken = now;
	wakeup->cpu = there;
	wakeup->stimulus_cpu = here;
	wakeup->stimulus = stimulus;
	wakeup->softirq = going_softirq(waits, here == there);
	wakeup->idle = waits->idle;
	wakeup->events_before = waits->seen;
	wakeup->switches_before = waits->switches;
	wakeup->interrupts_before = waits->interrupts;
	/* The interrupt of its own timer is part of the wait. */
	u64 begun = stimulus == 1 && here == there && cpu->irq_depth ? cpu->irq_entry : now;
	taken_until(&wakeup->taken_before, waits, begun);
	if (COLD(sees_irqs_off) && stimulus == 1 && here == there)
		look_at_last_section(wakeup, here);
	if (stimulus == 1)
		wakeup->irq_entry = entry_of_timer(cpu, due);
	else if (stimulus == 2 && here != there &&
		 softirq_came(!(u32)bpf_get_current_pid_tgid()))
		/* The softirq of another CPU is no work of the task that it broke into, and nobody is known. */
		wakeup->waker = (struct task){};
	else
		describe(&wakeup->waker, (void *)bpf_get_current_task());
	if (cpu->irq_depth) {
		cpu->woken[woken & (MOST_WOKEN - 1)] = pid;
		cpu->woken_count = woken + 1;
	}
	begin_stolen(wakeup, waits, now);
	begin_quota(wakeup, task, READ(task, se.cfs_rq), due);
	open_wakeup(wakeup, there);
	wakeup->state = WOKEN;
	wakeup->throttled =
		here == there ? throttles(cpu, (void *)bpf_get_current_task()) : throttles_there(waits);
	wakeup->throttled |= stopped_by_its_own(waits, task);
	if (here == there)
		look_at_interrupted(ctx, cpu, wakeup, task, now);
	else
		look_there(&wakeup->interrupted, waits);
	if (targets == NAMED && here == there) {
		u32 zero = 0;
		struct control *asked = bpf_map_lookup_elem(&control, &zero);
		cpu->waiting = pid;
		cpu->look_at = due + (asked ? asked->look / 4 : 0);
	}
	begins(pid);
}

/* When a timer is due on the monotonic clock. */
INLINE u64 due_of(struct hrtimer *timer, s64 expires)
{
	struct hrtimer_clock_base *base = timer->base;
	s64 offset = FIELD_EXISTS(base->offset) ? base->offset : 0;
	return expires - offset;
}

/* From the end of one timer's function to the next one's in the same interrupt the kernel takes far less than this, ns. */
#define BETWEEN_TIMERS 10000

/*
 * Many timers of one kind at one expiry are one event, or they would push all else out of the ring:
 * the first one begins, the last one ends. Not all interrupts of timers have events that part them: Hyper-V's have none.
 */
INLINE void timer_event(struct cpu *cpu, u64 function, u64 now)
{
	struct event *last = &cpu->ring[(cpu->seen - 1) & (RING - 1)];
	struct event *first = &cpu->ring[(cpu->seen - 2) & (RING - 1)];
	if (cpu->seen >= 2 && last->kind == TIMER_EXIT && first->kind == TIMER_ENTRY &&
	    first->timer.function == function && now - last->at_ns < BETWEEN_TIMERS) {
		first->timer.count++;
		cpu->seen--;
		return;
	}
	struct timer *timer = &next_event(cpu, TIMER_ENTRY, now)->timer;
	timer->function = function;
	timer->count = 1;
}

/*
 * Threads that the loader named and that announce nothing sleep by a timer of their own: which task it
 * wakes tells who. All others are known once they are woken.
 */
SEC("tp_btf/hrtimer_expire_entry") int on_timer_entry(u64 *ctx)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	u64 now = bpf_ktime_get_ns();
	u64 function = (u64)timer->function;
	timer_event(cpu, function, now);
	if (cpu->waiting && now >= cpu->look_at)
		look_again(ctx, cpu, now);
	if (targets != NAMED || announced) {
		timer_runs(cpu, due_of(timer, timer->node.expires));
		return 0;
	}
	if (hrtimer_wakeup && function != hrtimer_wakeup)
		return 0;
	struct hrtimer_sleeper *sleeper = (void *)timer;
	struct task_struct *task = READ(sleeper, task);
	if (!task)
		return 0;
	u32 pid = READ(task, pid);
	struct wakeup *wakeup = wakeup_of(pid);
	if (!wakeup)
		return 0;
	begin(ctx, wakeup, task, pid, due_of(timer, timer->_softexpires), now, 1);
	tell_own_time(cpu, now);
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit") int on_timer_exit(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	timer_of(cpu)->due = 0;
	next_event(cpu, TIMER_EXIT, bpf_ktime_get_ns());
	return 0;
}

/* Whether it is no target, where a process is followed. */
INLINE int is_of_another_process(struct task_struct *task)
{
	return task->tgid != (s32)target_pid;
}

/*
 * Whether it is no target, as far as a number tells: what each switch and each wakeup asks first. Names and
 * cgroups take more than that to compare.
 */
INLINE int is_stranger(struct task_struct *task)
{
	u32 kind = targets;
	if (kind == PROCESS)
		return is_of_another_process(task);
	if (kind == THREAD)
		return task->pid != target_pid;
	return 0;
}

/* The same where threads of a name are followed: whether the name begins otherwise. */
INLINE int begins_otherwise(struct task_struct *task)
{
	u64 *comm = (u64 *)__builtin_preserve_access_index(&task->comm);
	return ((comm[0] ^ target_comm[0]) & target_comm_mask) != 0;
}

/* The same where a cgroup is followed. */
INLINE int is_elsewhere(struct task_struct *task)
{
	return task->cgroups->dfl_cgrp->kn->id != target_cgroup;
}

INLINE int is_target(struct task_struct *task)
{
	if (targets == PROCESS)
		return task->tgid == target_pid;
	if (targets == THREAD)
		return task->pid == target_pid;
	if (targets == COMM) {
		/* Up to 5.16, what a longer name left behind follows the end of the text. */
		u64 comm[2] = {};
		bpf_probe_read_kernel_str(comm, sizeof(comm), &task->comm);
		if (comm[0] != target_comm[0] || comm[1] != target_comm[1])
			return 0;
		return !target_cgroup || task->cgroups->dfl_cgrp->kn->id == target_cgroup;
	}
	if (targets == CGROUP)
		return task->cgroups->dfl_cgrp->kn->id == target_cgroup;
	return 0;
}

/*
 * A named thread is woken at the time that was announced: by a waker of ours, which read the clock just
 * before, or in the function of a timer, whatever lies between that and the thread. An announcement is
 * taken once: with none, the thread is woken by something else, as by the timer of a sleep after it has
 * measured.
 */
INLINE void begin_announced(void *ctx, struct task_struct *task)
{
	u32 pid = task->pid;
	u32 *slot = bpf_map_lookup_elem(&slots, &pid);
	struct answers *answers = slot ? bpf_map_lookup_elem(&responses, slot) : 0;
	struct wakeup *wakeup = wakeup_of(pid);
	struct cpu *cpu = this_cpu();
	if (HOT(!answers) || !wakeup || !cpu)
		return;
	u64 due = READ_ONCE(answers->announced);
	u64 now = bpf_ktime_get_ns();
	if (!due || due > now)
		return;
	/*
	 * With PREEMPT_RT the thread may wait for a spinlock, awake: to set its timer it takes that of softirqs. Whoever
	 * releases it wakes it for no expiry, unless it is the function of the thread's own timer.
	 */
	if (waits_for_spinlock(task) && timer_due(cpu) != due)
		return;
	WRITE_ONCE(answers->announced, 0);
	begin(ctx, wakeup, task, pid, due, now, timer_due(cpu) ? 1 : kind_of_waker(cpu));
	tell_own_time(cpu, now);
}

APART int named_is_woken(u64 *ctx)
{
	begin_announced(ctx, (void *)ctx[0]);
	return 0;
}

APART int target_is_woken(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	if (!is_target(task))
		return 0;
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	u32 pid = task->pid;
	struct wakeup *wakeup = wakeup_of(pid);
	if (!wakeup) {
		u32 zero = 0;
		void *blank = bpf_map_lookup_elem(&blank_wakeup, &zero);
		if (blank)
			bpf_map_update_elem(&wakeups, &pid, blank, IF_ABSENT);
		wakeup = wakeup_of(pid);
	}
	if (!wakeup) {
		count_no_room();
		return 0;
	}
	/*
	 * A task is only woken if it sleeps, or is about to. If the last wakeup still waits for its
	 * switch there was none: it came before the task had gone to sleep, and how late it was nobody
	 * knows. Whoever runs here and now is awake, and nothing is late.
	 */
	int runs = bpf_get_current_task() == (u64)task;
	if (runs && wakeup->state == WOKEN)
		give_up(wakeup);
	if (runs)
		return 0;
	wakeup->preempted = task->nivcsw;
	u64 now = bpf_ktime_get_ns();
	u64 due = timer_due(cpu);
	if (due && due <= now)
		begin(ctx, wakeup, task, pid, due, now, 1);
	else
		begin(ctx, wakeup, task, pid, now, now, kind_of_waker(cpu));
	tell_own_time(cpu, now);
	return 0;
}

SEC("tp_btf/sched_waking") int on_waking(u64 *ctx)
{
	if (targets == NAMED)
		return named_is_woken(ctx);
	return HOT(is_stranger((void *)ctx[0])) ? 0 : target_is_woken(ctx);
}

/* The same where a process, threads of a name, or a cgroup is followed. */
#define ON_WAKING(of, is_other)                                                                    \
	SEC("tp_btf/sched_waking") int on_waking_of_##of(u64 *ctx)                                 \
	{                                                                                          \
		return HOT(is_other((void *)ctx[0])) ? 0 : target_is_woken(ctx);                   \
	}

ON_WAKING(process, is_of_another_process)
ON_WAKING(comm, begins_otherwise)
ON_WAKING(cgroup, is_elsewhere)
