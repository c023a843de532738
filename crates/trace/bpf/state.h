/* SPDX-License-Identifier: GPL-2.0 */
/* What the loader sets, what is kept, and how it is reached. */
#pragma once

#include "bpf.h"
#include "shared.h"

/*
 * The tracer follows the wakeups of these threads: those that the loader names, those of a process, those with a
 * name (in one cgroup, if the loader gives one), those of a cgroup, or a single one.
 */
enum { NAMED = 0, PROCESS = 1, COMM = 2, CGROUP = 3, THREAD = 4 };
const volatile u32 targets = NAMED;
const volatile u32 target_pid = 0;
const volatile u64 target_comm[2] = {};
/* The bits of the first word of a name that tell: those of its text, and of the zero behind it. */
const volatile u64 target_comm_mask = 0;
const volatile u64 target_cgroup = 0;
/*
 * Whether named threads announce when a wakeup is due, since it does not follow from a timer that wakes
 * a sleeping task.
 */
const volatile u32 announced = 0;
/*
 * What else than wakeups is followed: ALL_WAITS, ALL_SECTIONS. One word, because every switch reads it:
 * the verifier removes what is never reached, and not the read before that.
 */
const volatile u32 also_followed = 0;
/* Where hrtimers of sleeping tasks call back; 0 if that is not known. */
const volatile u64 hrtimer_wakeup = 0;
/*
 * Variables that each CPU has: how far from its run queue they lie, and whether the kernel has them.
 * `extern … __ksym` would be the usual way, but kernels without KALLSYMS_ALL do not give the
 * addresses of data (6.18), while their type information has all places.
 */
struct place {
	s64 from_runqueue;
	u64 is_known;
};
const volatile struct place preempt_count_place = {};
const volatile struct place pcpu_hot_place = {};
const volatile struct place irq_regs_place = {};
const volatile struct place irq_stack_place = {};
const volatile struct place irq_stack_used_place = {};
const volatile struct place steal_time_place = {};
const volatile struct place softirq_pending_place = {};
const volatile struct place irq_stat_place = {};
const volatile struct place ksoftirqd_place = {};
/* Whether a more urgent task takes over anywhere in the kernel where preemption is not off. */
const volatile u32 preemptible = 0;

/* A task that ran on a CPU: see runners.h. */
struct runner {
	struct task task;
	/* How long it ran since it has this place, by the run queue's clock, and how often a place was given by then. */
	u64 ran;
	u64 given;
	/* How long it ran lately, with what those before it in this place did. */
	u64 weight;
};

struct kept_switch {
	/* Its number among all events. */
	u64 number;
	/* What `interrupts` was then. */
	u64 interrupts;
	struct event event;
};

/* A timer whose function runs. */
struct running_timer {
	/* When it was due; 0 if none runs. */
	u64 due;
	u32 pid;
	u32 pad;
};

/* Wakeups that begin in one interrupt and are followed, at most. A power of two. */
#define MOST_WOKEN 64

struct cpu {
	u32 irq_depth;
	/* 1 + number */
	u32 softirq;
	u32 idle;
	/* Threads whose wakeups began in the interrupt that goes on. */
	u32 woken[MOST_WOKEN];
	u32 woken_count;
	/* Whether the program that runs does what takes long. */
	u32 traces;
	/* The named thread whose wakeup came last here; 0 if none waits. */
	u32 waiting;
	/* Whether the interrupt from another CPU that goes on is one of a line. */
	u32 ipi_has_line;
	u32 pad;
	/* From when on that wakeup is late enough to look at what holds it up. */
	u64 look_at;
	/* The last switch while a wakeup waited. */
	u64 switched;
	/* When the outermost interrupt began, and what `interrupts` was then. */
	u64 irq_entry;
	u64 irq_interrupts;
	/* When the timer was due whose function runs, and the thread that runs it: see `timer_runs`. */
	struct running_timer timers[2];
	u64 sched_entry;
	/* The lock that is spun for. */
	u64 contended;
	/* The kernel's `struct rq` of this CPU. */
	u64 runqueue;
	/* That of the line whose interrupt came last: for a bound. */
	u64 action;
	/* What its interrupts have taken so far: for a bound. */
	u64 in_interrupts;
	u64 seen;
	/* Stacks that were copied here so far. */
	u64 copied;
	struct stack_copy copies[COPIES];
	struct event ring[RING];
	/* What interrupts, softirqs and NMIs took so far; softirqs only while somebody waits. Parts of it: `taken_until`. */
	u64 interrupts;
	u64 softirqs;
	u64 nmis;
	/* When the softirq that goes on began, and what `interrupts` was then; 0 if none does, or nobody waited then. */
	u64 softirq_entry;
	u64 softirq_interrupts;
	/* Switches so far, and the last of these. */
	u64 switches;
	struct kept_switch last_switches[SWITCHES];
	/* Who ran while threads of others waited: until when is known, and up to which of `interrupts`. */
	u64 ran_until;
	u64 ran_interrupts;
	/* How long the last one did with its last priority, as far as that is known, and that priority. */
	u64 ran_last;
	s64 ran_as;
	/* How often a place was given, and what was weighed. */
	u64 given;
	u64 weighed;
	struct runner runners[RUNNERS];
	/* All that ran, by their rank. */
	u64 all_ran[RANKS];
	/* How long real-time tasks had to give way to others so far, and whether they do now: see `throttles`. */
	u64 held_back;
	u64 holds_back;
};

MAP(MAP_ARRAY, u32, struct cpu, 1, 0) cpus SEC(".maps");
MAP(MAP_HASH, u32, struct wakeup, 1024, 0) wakeups SEC(".maps");
/* All zero: too large for a program's stack. */
MAP(MAP_ARRAY, u32, struct wakeup, 1, 0) blank_wakeup SEC(".maps");
/* Per thread that is named: its last answers. Written by the thread itself. */
MAP(MAP_ARRAY, u32, struct answers, 1, MAP_MMAPABLE) responses SEC(".maps");
/* Per thread of others that is followed: its waits. */
MAP(MAP_HASH, u32, struct waits, 1, 0) waits_of SEC(".maps");
/* Thread to index in `responses`. */
MAP(MAP_HASH, u32, u32, 1024, 0) slots SEC(".maps");
/*
 * Per thread that is named, or per CPU: COMPONENTS of them. Mapped, since the kernel copies what is
 * looked up with preemption off: 125 virtual us in 6.12, which this is here to find, not to cause.
 */
MAP(MAP_ARRAY, u32, struct figures, 1, MAP_MMAPABLE) figures SEC(".maps");
MAP(MAP_ARRAY, u32, struct control, 1, 0) control SEC(".maps");
MAP(MAP_ARRAY, u32, struct counts, 1, 0) counts SEC(".maps");
/* The loader makes it as large as CPUs ask for. */
struct {
	int(*type)[MAP_RINGBUF];
	int(*max_entries)[RECORDS_PER_CPU];
} records SEC(".maps");

/*
 * How many wakeups (see waiting.h) and threads of others (see waits.h) wait for a CPU. Apart from what else is known
 * of it, because each switch reads it, most of them nothing else, and instructions are what that costs. CPUs whose
 * numbers are alike in their last bits have one word, so that no limit has to be checked: they look at more than they
 * need.
 */
#define CPU_WORDS 256
union cpu_word {
	struct {
		u32 wakeups;
		u32 threads;
	};
	/* Both at once. */
	u64 any;
	/* A line of the cache is one CPU's. */
	u64 pad[8];
};
union cpu_word cpu_words[CPU_WORDS];

INLINE union cpu_word *word_of(u32 number)
{
	return &cpu_words[number & (CPU_WORDS - 1)];
}

/* Whether a wakeup waits for the CPU, or for one that it shares its word with. */
INLINE int is_waited_for(u32 number)
{
	return READ_ONCE(word_of(number)->wakeups) != 0;
}

/* The same of wakeups and threads of others. */
INLINE int is_waited_for_at_all(u32 number)
{
	return READ_ONCE(word_of(number)->any) != 0;
}

INLINE struct cpu *cpu_of(u32 number)
{
	return bpf_map_lookup_elem(&cpus, &number);
}

/* The current wakeup of a thread, or its last one; 0 if nobody follows it. */
INLINE struct wakeup *wakeup_of(u32 pid)
{
	struct wakeup *first = bpf_map_lookup_elem(&wakeups, &pid);
	if (!announced || !first || !READ_ONCE(first->is_second))
		return first;
	u32 second = pid | SECOND;
	return bpf_map_lookup_elem(&wakeups, &second);
}

/* Where `wakeup` of a thread is kept. */
INLINE u32 key_of(u32 pid, struct wakeup *wakeup)
{
	if (!announced || bpf_map_lookup_elem(&wakeups, &pid) == wakeup)
		return pid;
	return pid | SECOND;
}

/*
 * Where the next wakeup of a thread begins after `last`. What is announced may come from another CPU
 * while the thread's own still ends the last one, which must not change meanwhile: so there are two,
 * in turn.
 */
INLINE struct wakeup *next_wakeup(u32 pid, struct wakeup *last)
{
	if (!announced)
		return last;
	struct wakeup *first = bpf_map_lookup_elem(&wakeups, &pid);
	u32 second = pid | SECOND;
	return first && first->is_second ? first : bpf_map_lookup_elem(&wakeups, &second);
}

/* What `next_wakeup` told is the current one from now on. */
INLINE void begins(u32 pid)
{
	struct wakeup *first = announced ? bpf_map_lookup_elem(&wakeups, &pid) : 0;
	if (first)
		WRITE_ONCE(first->is_second, !first->is_second);
}

INLINE struct cpu *this_cpu(void)
{
	return cpu_of(bpf_get_smp_processor_id());
}

/*
 * The timer whose function runs: one in an interrupt, and one in none. Interrupts come also while a soft timer's function
 * runs, and with PREEMPT_RT other tasks.
 */
INLINE struct running_timer *timer_of(struct cpu *cpu)
{
	return &cpu->timers[cpu->irq_depth != 0];
}

INLINE void timer_runs(struct cpu *cpu, u64 due)
{
	struct running_timer *timer = timer_of(cpu);
	timer->due = due;
	timer->pid = bpf_get_current_pid_tgid();
}

/* When the timer was due whose function does what is done now; 0 if no timer's does. */
INLINE u64 timer_due(struct cpu *cpu)
{
	struct running_timer *timer = timer_of(cpu);
	return timer->due && timer->pid == (u32)bpf_get_current_pid_tgid() ? timer->due : 0;
}

INLINE struct counts *all_counts(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&counts, &zero);
}

/* There is no room to follow a wakeup. */
INLINE void count_no_room(void)
{
	struct counts *all = all_counts();
	if (all)
		__sync_fetch_and_add(&all->no_room, 1);
}

/*
 * The kernel's `struct rq` of the CPU that this task is on: the task has a queue of its group there, and that knows the
 * CPU's own.
 */
INLINE u64 runqueue_with(struct cpu *cpu, struct task_struct *task)
{
	if (HOT(cpu->runqueue))
		return cpu->runqueue;
	struct cfs_rq *queue = READ(task, se.cfs_rq);
	if (queue && FIELD_EXISTS(queue->rq))
		cpu->runqueue = (u64)READ(queue, rq);
	return cpu->runqueue;
}

/* That of this CPU; of another one 0 as long as it is not known. */
INLINE u64 runqueue(struct cpu *cpu)
{
	if (HOT(cpu->runqueue))
		return cpu->runqueue;
	return cpu == this_cpu() ? runqueue_with(cpu, (void *)bpf_get_current_task()) : 0;
}

/* Where `place` is on this CPU; 0 if the kernel lacks it. */
INLINE void *per_cpu(struct cpu *cpu, const volatile struct place *place)
{
	if (!place->is_known)
		return 0;
	u64 base = runqueue(cpu);
	return base ? (void *)(base + place->from_runqueue) : 0;
}

/*
 * Whether this CPU's real-time tasks have used up their time, or have to give way to the task that runs:
 * what the fair server lets run comes before them, until the server's time is used up.
 */
INLINE u32 throttles(struct cpu *cpu, struct task_struct *runs)
{
	if (FIELD_EXISTS(runs->dl_server) && READ(runs, dl_server))
		return 1;
	struct rq *rq = (void *)runqueue(cpu);
	if (!rq || !FIELD_EXISTS(rq->rt.rt_throttled))
		return 0;
	return READ(rq, rt.rt_throttled) != 0;
}

/* Who runs on a CPU that may be another one; 0 if that is not known. */
INLINE struct task_struct *runs_on(struct cpu *cpu)
{
	struct rq *rq = (void *)cpu->runqueue;
	return rq && FIELD_EXISTS(rq->curr) ? READ(rq, curr) : 0;
}

/* The same of another CPU, as far as it is known who runs there. */
INLINE u32 throttles_there(struct cpu *cpu)
{
	struct task_struct *runs = runs_on(cpu);
	return runs ? throttles(cpu, runs) : 0;
}

INLINE u64 stolen(struct cpu *cpu)
{
	struct kvm_steal_time *time = per_cpu(cpu, &steal_time_place);
	return time ? READ(time, steal) : 0;
}

INLINE u32 preempt_count(struct cpu *cpu)
{
	u32 count = 0;
	void *plain = per_cpu(cpu, &preempt_count_place);
	struct pcpu_hot *hot = per_cpu(cpu, &pcpu_hot_place);
	struct task_struct *task = (void *)bpf_get_current_task();
	struct thread_info___arm64 *info = (void *)task;
	if (FIELD_EXISTS(info->preempt.count))
		return READ(info, preempt.count);
	if (plain)
		bpf_probe_read_kernel(&count, sizeof(count), plain);
	else if (hot)
		count = READ(hot, preempt_count);
	return count;
}

INLINE u32 task_cpu(struct task_struct *task)
{
	struct task_struct___cpu *older = (void *)task;
	if (FIELD_EXISTS(task->thread_info.cpu))
		return READ(task, thread_info.cpu);
	return READ(older, cpu);
}

INLINE u64 state_of(struct task_struct *task)
{
	struct task_struct___state *older = (void *)task;
	return FIELD_EXISTS(task->__state) ? READ(task, __state) : READ(older, state);
}

INLINE int sleeps(struct task_struct *task)
{
	return state_of(task) != 0;
}

/* The state of a thread that waits for a spinlock of PREEMPT_RT, whatever it was about to sleep for (since 5.15). */
#define TASK_RTLOCK_WAIT 0x1000

INLINE int waits_for_spinlock(struct task_struct *task)
{
	return state_of(task) == TASK_RTLOCK_WAIT;
}

/* The softirqs that this CPU has yet to do, a bit each; 0 also where that is not known. */
INLINE u16 pending_softirqs(struct cpu *cpu)
{
	u16 pending = 0;
	void *plain = per_cpu(cpu, &softirq_pending_place);
	struct pcpu_hot *hot = per_cpu(cpu, &pcpu_hot_place);
	irq_cpustat_t *stat = per_cpu(cpu, &irq_stat_place);
	if (plain)
		bpf_probe_read_kernel(&pending, sizeof(pending), plain);
	else if (hot && FIELD_EXISTS(hot->softirq_pending))
		pending = READ(hot, softirq_pending);
	else if (stat && FIELD_EXISTS(stat->__softirq_pending))
		pending = READ(stat, __softirq_pending);
	return pending;
}

/* Whether the thread for softirqs that interrupts leave to it is asleep. */
INLINE int ksoftirqd_sleeps(struct cpu *cpu)
{
	struct task_struct *thread = 0;
	void *where = per_cpu(cpu, &ksoftirqd_place);
	if (where)
		bpf_probe_read_kernel(&thread, sizeof(thread), where);
	return thread && sleeps(thread);
}

INLINE void describe(struct task *to, struct task_struct *task)
{
	bpf_probe_read_kernel(&to->pid, sizeof(to->pid), &task->pid);
	to->prio = prio_of(task, READ(task, prio));
	bpf_probe_read_kernel(&to->policy, sizeof(to->policy), &task->policy);
	bpf_probe_read_kernel(to->comm, sizeof(to->comm), &task->comm);
}

/* Whose wakeup it is, at the end of it or of a part. */
INLINE void describe_woken(struct wakeup *wakeup, struct task_struct *task)
{
	describe(&wakeup->task, task);
	wakeup->task.normal_prio = prio_of(task, READ(task, normal_prio));
}

INLINE struct event *next_event(struct cpu *cpu, u32 kind, u64 at)
{
	struct event *event = &cpu->ring[cpu->seen & (RING - 1)];
	cpu->seen++;
	event->at_ns = at;
	event->steal_ns = stolen(cpu);
	event->kind = kind;
	return event;
}

/* What a sum has grown by. One that went on when it was read has less in the end if its end is not seen. */
INLINE u64 grown(u64 now, u64 before)
{
	return now > before ? now - before : 0;
}

/*
 * What took this CPU from its tasks up to now, with what goes on. It may be another CPU, which goes on meanwhile: what
 * is begun there after `now` is none of it.
 */
INLINE void taken_until(struct taken *taken, struct cpu *cpu, u64 now)
{
	u64 all = cpu->interrupts;
	u64 softirqs = cpu->softirqs;
	if (COLD(cpu->irq_depth && now > cpu->irq_entry))
		all = cpu->irq_interrupts + (now - cpu->irq_entry);
	u64 began = cpu->softirq_entry;
	if (COLD(began && now > began)) {
		u64 own = grown(now - began, grown(all, cpu->softirq_interrupts));
		softirqs += own;
		all += own;
	}
	taken->all = all;
	taken->softirqs = softirqs;
	taken->nmis = cpu->nmis;
}

/* The last event is a switch: it is kept although others follow. */
INLINE void keep_switch(struct cpu *cpu)
{
	struct kept_switch *kept = &cpu->last_switches[cpu->switches & (SWITCHES - 1)];
	kept->number = cpu->seen - 1;
	kept->interrupts = cpu->interrupts;
	kept->event = cpu->ring[kept->number & (RING - 1)];
	cpu->switches++;
}

/*
 * Tells of the time since this program began, where it took stacks or handed a wakeup over: that is
 * the tracer's own doing, and nobody else's. The rest takes too little to be told each time.
 */
INLINE void tell_own_time(struct cpu *cpu, u64 began)
{
	if (HOT(!cpu->traces))
		return;
	cpu->traces = 0;
	u64 now = bpf_ktime_get_ns();
	next_event(cpu, TRACER, now)->own_time.duration_ns = now - began;
}
