/* SPDX-License-Identifier: GPL-2.0 */
/* The programs that follow wakeups, in contexts that the test makes up. */
#include "bpf.h"

static u64 submitted_with;
#define bpf_ringbuf_submit(data, flags) (submitted_with = (flags), bpf_ringbuf_submit(data, flags))
static u64 current_thread;
#define bpf_get_current_pid_tgid() current_thread
#include "beginnings.h"
#include "moves.h"

/* What the test says, and what a program makes of it: each has its own structure of words. */
struct words {
	u64 of[64];
};

MAP(MAP_ARRAY, u32, struct words, 1, MAP_MMAPABLE) words SEC(".maps");

INLINE void *all_words(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&words, &zero);
}

INLINE struct wakeup *a_wakeup(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&blank_wakeup, &zero);
}

/* A wakeup begins. */
struct look {
	/* The registers that the kernel keeps of what was interrupted, and whether the stack of interrupts is used. */
	u64 registers;
	u64 is_stack_used;
	u64 irq_depth;
	u64 mode;
	u64 has_stack;
};

SEC("raw_tp/sched_switch") int look(u64 *ctx)
{
	struct look *all = all_words();
	struct wakeup *wakeup = a_wakeup();
	struct cpu *cpu = this_cpu();
	if (!all || !wakeup || !cpu)
		return -1;
	/* The first words are where the kernel has these variables. */
	cpu->runqueue = (u64)all;
	cpu->irq_depth = all->irq_depth;
	/* The stack is of use also where the task itself was interrupted. */
	wakeup->softirq = 1;
	wakeup->stack_bytes = 0;
	look_at_interrupted(ctx, cpu, wakeup, (void *)bpf_get_current_task(), 1);
	all->mode = wakeup->mode;
	all->has_stack = wakeup->stack_bytes > 0;
	return 0;
}

/* The run queue of this CPU, and that of another one. */
struct find_runqueues {
	u64 here;
	u64 there;
};

SEC("raw_tp/sched_switch") int find_runqueues(u64 *ctx)
{
	struct find_runqueues *all = all_words();
	struct cpu *here = this_cpu();
	struct cpu *there = cpu_of(bpf_get_smp_processor_id() + 1);
	if (!all || !here || !there)
		return -1;
	here->runqueue = there->runqueue = 0;
	all->here = runqueue(here);
	all->there = runqueue(there);
	return 0;
}

/* A task is woken without a timer. */
struct wake {
	/* What the kernel counts. */
	u64 preempt_count;
	u64 irq_depth;
	u64 is_idle;
	u64 kind;
	u64 by_softirq;
};

SEC("raw_tp/sched_switch") int wake(u64 *ctx)
{
	struct wake *all = all_words();
	struct cpu *cpu = this_cpu();
	if (!all || !cpu)
		return -1;
	cpu->runqueue = (u64)all;
	cpu->irq_depth = all->irq_depth;
	all->kind = kind_of_waker(cpu);
	all->by_softirq = softirq_came(all->is_idle);
	return 0;
}

/* The waker chooses another CPU than the one that the task ran on last, or the task is moved while it waits. */
struct choose {
	u64 has_waited;
	u64 idle_there;
	u64 idle;
};

SEC("raw_tp/sched_switch") int choose(u64 *ctx)
{
	struct choose *all = all_words();
	struct wakeup *wakeup = a_wakeup();
	u32 number = bpf_get_smp_processor_id();
	struct cpu *there = cpu_of(number + 1);
	if (!all || !wakeup || !there)
		return -1;
	wakeup->cpu = number;
	wakeup->idle = 0;
	there->idle = all->idle_there;
	open_wakeup(wakeup, number);
	move_wakeup(wakeup, (void *)bpf_get_current_task(), number + 1, there, all->has_waited);
	all->idle = wakeup->idle;
	return wakeup->cpu == number + 1 ? 0 : -1;
}

/* A late wakeup leaves the kernel. */
struct hand_over {
	u64 is_sent;
	u64 submitted_with;
	/* Whether that counts as the tracer's time on the CPU of the wakeup, and on this one. */
	u64 traces_there;
	u64 traces_here;
};

SEC("raw_tp/sched_switch") int hand_over(u64 *ctx)
{
	struct hand_over *all = all_words();
	u32 key = 0;
	struct wakeup *wakeup = a_wakeup();
	struct cpu *here = this_cpu();
	struct cpu *there = cpu_of(bpf_get_smp_processor_id() + 1);
	if (!all || !wakeup || !here || !there)
		return -1;
	wakeup->cpu = bpf_get_smp_processor_id() + 1;
	if (bpf_map_update_elem(&wakeups, &key, wakeup, 0))
		return -1;
	here->traces = there->traces = 0;
	submitted_with = ~0ULL;
	all->is_sent = send(key);
	all->submitted_with = submitted_with;
	all->traces_there = there->traces;
	all->traces_here = here->traces;
	return 0;
}

/* A timer wakes, after these events. */
struct find_entry {
	u64 irq_depth;
	u64 last_entry;
	u64 due;
	u64 entry;
	u64 count;
	struct {
		u64 kind;
		u64 at;
		u64 vector;
	} event[8];
};

SEC("raw_tp/sched_switch") int find_entry(u64 *ctx)
{
	struct find_entry *all = all_words();
	struct cpu *cpu = this_cpu();
	if (!all || !cpu)
		return -1;
	cpu->irq_depth = all->irq_depth;
	cpu->irq_entry = all->last_entry;
	cpu->seen = 0;
#pragma nounroll
	for (u32 i = 0; i < 8; i++)
		if (i < all->count)
			next_event(cpu, all->event[i].kind, all->event[i].at)->irq.vector = all->event[i].vector;
	all->entry = entry_of_timer(cpu, all->due);
	return 0;
}

/* Timers' functions begin and end, each at its time. */
struct tell_timers {
	u64 at[4][2];
	u64 events;
	u64 count;
};

SEC("raw_tp/sched_switch") int tell_timers(u64 *ctx)
{
	struct tell_timers *all = all_words();
	struct cpu *cpu = this_cpu();
	if (!all || !cpu)
		return -1;
	cpu->seen = 0;
#pragma nounroll
	for (u32 i = 0; i < 4; i++) {
		timer_event(cpu, 1, all->at[i][0]);
		next_event(cpu, TIMER_EXIT, all->at[i][1]);
	}
	all->events = cpu->seen;
	all->count = cpu->ring[0].timer.count;
	return 0;
}

/* Timers' functions begin and end. */
struct run_timers {
	struct {
		/* 0: asks only, 1: a timer's function begins, 2: it ends. */
		u64 what;
		u64 irq_depth;
		u64 thread;
		u64 due;
		/* What is known then. */
		u64 runs;
	} step[10];
};

SEC("raw_tp/sched_switch") int run_timers(u64 *ctx)
{
	struct run_timers *all = all_words();
	struct cpu *cpu = this_cpu();
	if (!all || !cpu)
		return -1;
#pragma nounroll
	for (u32 i = 0; i < 10; i++) {
		cpu->irq_depth = all->step[i].irq_depth;
		current_thread = all->step[i].thread;
		if (all->step[i].what == 1)
			timer_runs(cpu, all->step[i].due);
		if (all->step[i].what == 2)
			timer_of(cpu)->due = 0;
		all->step[i].runs = timer_due(cpu);
	}
	return 0;
}

/* A part of a wakeup is handed over. */
struct fill_part {
	u64 response;
	u64 irq_depth;
	u64 irq_entry;
	u64 softirq_entry;
	/* What had been taken by interrupts and by softirqs when the one that goes on came. */
	u64 interrupts;
	u64 softirqs;
	u64 in_interrupts;
	struct taken taken;
};

MAP(MAP_ARRAY, u32, struct record, 1, 0) filled SEC(".maps");

SEC("raw_tp/sched_switch") int fill_part(u64 *ctx)
{
	u32 zero = 0;
	struct fill_part *all = all_words();
	struct record *record = bpf_map_lookup_elem(&filled, &zero);
	struct wakeup *wakeup = a_wakeup();
	struct cpu *cpu = this_cpu();
	if (!all || !record || !wakeup || !cpu)
		return -1;
	wakeup->response = all->response;
	cpu->seen = 0;
	cpu->irq_depth = all->irq_depth;
	cpu->irq_entry = all->irq_entry;
	cpu->softirq_entry = all->softirq_entry;
	cpu->interrupts = cpu->irq_interrupts = cpu->softirq_interrupts = all->interrupts;
	cpu->softirqs = all->softirqs;
	fill((struct long_record *)record, EVENTS, wakeup, cpu);
	all->in_interrupts = record->head.in_interrupts;
	all->taken = record->head.taken;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
