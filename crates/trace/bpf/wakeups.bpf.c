/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Follows wakeups from stimulus to response.
 *
 * What is seen is kept per CPU in a ring that forgets; all that is counted is counted here. Only a
 * wakeup that was late leaves the kernel, with the events of its CPU. Programs that run at each
 * switch look at one word and return where no wakeup waits for the CPU.
 */
#include "bpf.h"
#include "interference.h"
#include "shared.h"

/* --- What the loader sets before anything runs --------------------------------------------- */

/* Whose wakeups are followed: threads that the loader names; those of a process, of a name, of a cgroup. */
enum { NAMED = 0, PROCESS = 1, COMM = 2, CGROUP = 3 };
const volatile u32 targets = NAMED;
const volatile u32 target_pid = 0;
const volatile u64 target_comm[2] = {};
const volatile u64 target_cgroup = 0;
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
const volatile struct place steal_time_place = {};
/* Whether a more urgent task takes over anywhere in the kernel where preemption is not off. */
const volatile u32 preemptible = 0;

struct cpu {
	/* Wakeups that wait for this CPU. */
	u32 open;
	u32 irq_depth;
	/* 1 + number */
	u32 softirq;
	u32 idle;
	/* Threads whose wakeups began in the interrupt that goes on. */
	u32 woken[4];
	u32 woken_count;
	u32 pad;
	/* When the outermost interrupt began. */
	u64 irq_entry;
	/* When the timer was due whose function runs; 0 if none does. */
	u64 timer_due;
	u64 sched_entry;
	/* The lock that is spun for. */
	u64 contended;
	/* The kernel's `struct rq` of this CPU. */
	u64 runqueue;
	/* What its interrupts have taken so far: for a bound. */
	u64 in_interrupts;
	u64 seen;
	struct event ring[RING];
};

MAP(MAP_ARRAY, u32, struct cpu, 1, 0) cpus SEC(".maps");
MAP(MAP_HASH, u32, struct wakeup, 1024, 0) wakeups SEC(".maps");
/* All zero: too large for a program's stack. */
MAP(MAP_ARRAY, u32, struct wakeup, 1, 0) blank_wakeup SEC(".maps");
/* Per thread that is named: when it last answered. Written by the thread itself. */
MAP(MAP_ARRAY, u32, u64, 1, MAP_MMAPABLE) responses SEC(".maps");
/* Thread to index in `responses`. */
MAP(MAP_HASH, u32, u32, 1024, 0) slots SEC(".maps");
/*
 * Per thread that is named, or per CPU: COMPONENTS of them. Mapped, since the kernel copies what is
 * looked up with preemption off: 125 virtual us in 6.12, which this is here to find, not to cause.
 */
MAP(MAP_ARRAY, u32, struct figures, 1, MAP_MMAPABLE) figures SEC(".maps");
MAP(MAP_ARRAY, u32, struct control, 1, 0) control SEC(".maps");
MAP(MAP_ARRAY, u32, struct counts, 1, 0) counts SEC(".maps");
struct {
	int(*type)[MAP_RINGBUF];
	int(*max_entries)[1 << 21];
} records SEC(".maps");

INLINE struct cpu *cpu_of(u32 number)
{
	return bpf_map_lookup_elem(&cpus, &number);
}

INLINE struct cpu *this_cpu(void)
{
	return cpu_of(bpf_get_smp_processor_id());
}

INLINE struct counts *all_counts(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&counts, &zero);
}

/* The task that runs has a queue of its group on this CPU, and that knows the CPU's own. */
INLINE u64 runqueue(struct cpu *cpu)
{
	if (HOT(cpu->runqueue))
		return cpu->runqueue;
	struct task_struct *task = (void *)bpf_get_current_task();
	struct cfs_rq *queue = READ(task, se.cfs_rq);
	if (queue && FIELD_EXISTS(queue->rq))
		cpu->runqueue = (u64)READ(queue, rq);
	return cpu->runqueue;
}

/* Where `place` is on this CPU; 0 if the kernel lacks it. */
INLINE void *per_cpu(struct cpu *cpu, const volatile struct place *place)
{
	if (!place->is_known)
		return 0;
	u64 base = runqueue(cpu);
	return base ? (void *)(base + place->from_runqueue) : 0;
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

INLINE void describe(struct task *to, struct task_struct *task)
{
	bpf_probe_read_kernel(&to->pid, sizeof(to->pid), &task->pid);
	bpf_probe_read_kernel(&to->prio, sizeof(to->prio), &task->prio);
	bpf_probe_read_kernel(&to->policy, sizeof(to->policy), &task->policy);
	bpf_probe_read_kernel(to->comm, sizeof(to->comm), &task->comm);
}

INLINE struct event *next_event(struct cpu *cpu, u32 kind, u64 at)
{
	struct event *event = &cpu->ring[cpu->seen & (RING - 1)];
	cpu->seen++;
	event->at = at;
	event->steal = stolen(cpu);
	event->kind = kind;
	return event;
}

/* --- Interference: for a bound -------------------------------------------------------------- */

/* What is known of an interrupt, or 0: nothing counts before the run, nor where there is no room. */
INLINE struct interference *counted_interference(u32 number, u64 who)
{
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	if (!asked || !asked->start || bpf_ktime_get_ns() < asked->start)
		return 0;
	struct interference *known = interference_of(bpf_get_smp_processor_id(), number, who);
	struct counts *all = all_counts();
	if (!known && all)
		__sync_fetch_and_add(&all->no_room_interrupts, 1);
	return known;
}

INLINE struct interference *comes(struct cpu *cpu, u32 number, u64 who, u64 now)
{
	struct interference *known = counted_interference(number, who);
	if (known)
		interference_begins(known, now, own_time(now, stolen(cpu)), &cpu->in_interrupts);
	return known;
}

INLINE void goes(struct cpu *cpu, u32 number, u64 who, u64 now)
{
	struct interference *known = counted_interference(number, who);
	if (known)
		interference_ends(known, own_time(now, stolen(cpu)), &cpu->in_interrupts);
}

/* --- Interrupts ------------------------------------------------------------------------------ */

INLINE void irq_entry(u32 number, struct irqaction *action)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return;
	u64 now = bpf_ktime_get_ns();
	if (cpu->irq_depth == 0)
		cpu->irq_entry = now;
	cpu->irq_depth++;
	struct event *event = next_event(cpu, IRQ_ENTRY, now);
	event->number = number;
	event->name[0] = 0;
	if (action)
		bpf_probe_read_kernel_str(event->name, sizeof(event->name), action->name);
	if (COLD(wants_bound)) {
		struct interference *known = comes(cpu, number, (u64)action, now);
		if (known && action && !known->name[0])
			bpf_probe_read_kernel_str(known->name, sizeof(known->name), action->name);
	}
}

INLINE void irq_exit(u32 number, struct irqaction *action)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return;
	u64 now = bpf_ktime_get_ns();
	next_event(cpu, IRQ_EXIT, now)->number = number;
	if (COLD(wants_bound))
		goes(cpu, number, (u64)action, now);
	/* Attached in the middle of one, the end is seen first. */
	if (cpu->irq_depth > 0)
		cpu->irq_depth--;
	if (cpu->irq_depth > 0)
		return;
	for (u32 i = 0; i < 4; i++) {
		if (i >= cpu->woken_count)
			break;
		u32 pid = cpu->woken[i];
		struct wakeup *wakeup = bpf_map_lookup_elem(&wakeups, &pid);
		if (wakeup && wakeup->state == WOKEN && !wakeup->irq_exit)
			wakeup->irq_exit = now;
	}
	cpu->woken_count = 0;
}

#define VECTOR(name, number)                                                                       \
	SEC("tp_btf/" #name "_entry") int on_##name##_entry(u64 *ctx)                              \
	{                                                                                          \
		irq_entry(NO_LINE + number, 0);                                                    \
		return 0;                                                                          \
	}                                                                                          \
	SEC("tp_btf/" #name "_exit") int on_##name##_exit(u64 *ctx)                                \
	{                                                                                          \
		irq_exit(NO_LINE + number, 0);                                                     \
		return 0;                                                                          \
	}

VECTOR(local_timer, LOCAL_TIMER)
VECTOR(reschedule, RESCHEDULE)
VECTOR(call_function, CALL_FUNCTION)
VECTOR(call_function_single, CALL_FUNCTION_SINGLE)
VECTOR(irq_work, IRQ_WORK)
/* arm64 */
VECTOR(ipi, IPI)
/* Seldom ones: for a bound. */
VECTOR(thermal_apic, THERMAL)
VECTOR(threshold_apic, THRESHOLD)
VECTOR(deferred_error_apic, DEFERRED_ERROR)
VECTOR(error_apic, ERROR)
VECTOR(spurious_apic, SPURIOUS)
VECTOR(x86_platform_ipi, PLATFORM_IPI)

SEC("tp_btf/irq_handler_entry") int on_irq_handler_entry(u64 *ctx)
{
	irq_entry(ctx[0], (void *)ctx[1]);
	return 0;
}

SEC("tp_btf/irq_handler_exit") int on_irq_handler_exit(u64 *ctx)
{
	irq_exit(ctx[0], (void *)ctx[1]);
	return 0;
}

SEC("tp_btf/softirq_entry") int on_softirq_entry(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	cpu->softirq = ctx[0] + 1;
	if (COLD(cpu->open))
		next_event(cpu, SOFTIRQ_ENTRY, bpf_ktime_get_ns())->number = ctx[0];
	if (COLD(wants_bound == SOFTIRQS_TOO))
		comes(cpu, A_SOFTIRQ + ctx[0], 0, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/softirq_exit") int on_softirq_exit(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	cpu->softirq = 0;
	if (COLD(cpu->open))
		next_event(cpu, SOFTIRQ_EXIT, bpf_ktime_get_ns())->number = ctx[0];
	if (COLD(wants_bound == SOFTIRQS_TOO))
		goes(cpu, A_SOFTIRQ + ctx[0], 0, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/nmi_handler") int on_nmi_handler(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct event *event = next_event(cpu, NMI, now);
	event->address = ctx[0];
	event->value = ctx[1];
	if (COLD(wants_bound)) {
		struct interference *known = counted_interference(AN_NMI, ctx[0]);
		if (known) {
			arrives(known, now - ctx[1]);
			has_taken(known, &cpu->in_interrupts, now - ctx[1], ctx[1]);
		}
	}
	return 0;
}

SEC("tp_btf/cpu_idle") int on_cpu_idle(u64 *ctx)
{
	struct cpu *cpu = cpu_of(ctx[1]);
	/* The state is (u32)-1 when idle ends. */
	if (cpu)
		cpu->idle = (u32)ctx[0] + 1;
	return 0;
}

/* A lock that is waited for asleep gives the CPU away: only those that spin hold it up. */
#define SPINS 1

SEC("tp_btf/contention_begin") int on_contention_begin(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (!cpu || !(ctx[1] & SPINS))
		return 0;
	cpu->contended = ctx[0];
	next_event(cpu, CONTENTION_BEGIN, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/contention_end") int on_contention_end(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (!cpu || cpu->contended != ctx[0])
		return 0;
	cpu->contended = 0;
	next_event(cpu, CONTENTION_END, bpf_ktime_get_ns());
	return 0;
}

/* --- Wakeups end ------------------------------------------------------------------------------ */

INLINE u32 bucket_of(u64 value)
{
	u32 shift = 0;
	u64 rest = value >> (KEPT_BITS + 1);
#pragma unroll
	for (u32 step = 16; step; step /= 2) {
		if (rest >> step) {
			rest >>= step;
			shift += step;
		}
	}
	if (rest)
		shift++;
	u32 bucket = (shift << KEPT_BITS) + (u32)(value >> shift);
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

INLINE void count(u32 place, u32 component, u64 value, u64 due)
{
	u32 index = place * COMPONENTS + component;
	struct figures *all = bpf_map_lookup_elem(&figures, &index);
	if (!all)
		return;
	u32 bucket = bucket_of(value);
	if (bucket < BUCKETS)
		all->buckets[bucket]++;
	if (!all->count || value < all->min)
		all->min = value;
	if (!all->count || value > all->max) {
		all->max = value;
		all->max_due = due;
	}
	all->sum += value;
	all->count++;
}

/* What must hold for points to part a wakeup: they are there, and follow one another. */
INLINE u64 point(u64 at, u64 least, u64 most)
{
	return at < least ? least : at > most ? most : at;
}

INLINE void count_components(struct wakeup *wakeup, u32 place)
{
	u64 due = wakeup->due;
	u64 end = wakeup->response;
	u64 entry = wakeup->irq_entry ? point(wakeup->irq_entry, due, end) : due;
	u64 exit = wakeup->irq_exit ? point(wakeup->irq_exit, entry, end) : entry;
	u64 sched = wakeup->sched_entry ? point(wakeup->sched_entry, exit, end) : end;
	count(place, IRQ_LATENCY, entry - due, due);
	count(place, HANDLER_DURATION, exit - entry, due);
	count(place, SCHED_LATENCY, sched - exit, due);
	if (wakeup->sched_entry)
		count(place, SCHED_DURATION, end - sched, due);
	count(place, WAKEUP_LATENCY, end - due, due);
}

INLINE void send(struct wakeup *wakeup, struct cpu *cpu, struct task_struct *task)
{
	describe(&wakeup->task, task);
	struct counts *all = all_counts();
	struct record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!all) {
		if (record)
			bpf_ringbuf_submit(record, 0);
		return;
	}
	if (!record) {
		__sync_fetch_and_add(&all->lost_records, 1);
		return;
	}
	__sync_fetch_and_add(&all->records, 1);
	bpf_probe_read_kernel(&record->wakeup, sizeof(record->wakeup), wakeup);
	/* A few from before it began: the interrupt that it began in, and what was held up by. */
	u64 last = cpu->seen;
	u64 first = last > EVENTS ? last - EVENTS : 0;
	record->events_lost = 0;
	if (first > wakeup->events_before)
		record->events_lost = first - wakeup->events_before;
	u32 taken = 0;
#pragma nounroll
	for (u32 i = 0; i < EVENTS; i++) {
		u64 index = first + i;
		if (index >= last)
			break;
		bpf_probe_read_kernel(&record->event[i & (EVENTS - 1)], sizeof(struct event),
				      &cpu->ring[index & (RING - 1)]);
		taken++;
	}
	record->events = taken;
	bpf_ringbuf_submit(record, 0);
}

/*
 * What is late, as long as the loader has too few wakeups to say: an eighth of the worst so far, but
 * no more of these than a fraction of what there is room for; then the worst.
 */
INLINE u64 late_so_far(u32 place, struct counts *all)
{
	u32 index = place * COMPONENTS + WAKEUP_LATENCY;
	struct figures *seen = bpf_map_lookup_elem(&figures, &index);
	if (!seen || !all)
		return 0;
	return all->records < FIRST_RECORDS ? seen->max / 8 : seen->max;
}

INLINE void end(struct wakeup *wakeup, struct cpu *cpu, struct task_struct *task, u32 place,
		u64 response)
{
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	wakeup->response = response;
	wakeup->steal_after = stolen(cpu);
	wakeup->state = IDLE;
	if (cpu->open)
		__sync_fetch_and_add(&cpu->open, -1);
	if (!asked || !asked->start || wakeup->due < asked->start)
		return;
	if (response < wakeup->due)
		wakeup->response = response = wakeup->due;
	struct counts *all = all_counts();
	if (all)
		__sync_fetch_and_add(&all->wakeups, 1);
	u64 late = response - wakeup->due;
	u64 keep = asked->keep ? asked->keep : late_so_far(place, all);
	count_components(wakeup, place);
	if (late >= keep)
		send(wakeup, cpu, task);
}

/*
 * A thread that is named has answered if it says so by a time after it was switched to. One that was
 * woken before it had gone to sleep was never switched to. Whether it has.
 */
INLINE int answered(struct wakeup *wakeup, struct cpu *cpu, u32 pid, struct task_struct *task)
{
	u64 least = wakeup->state == RUNNING ? wakeup->switch_in : wakeup->woken;
	u32 *slot = bpf_map_lookup_elem(&slots, &pid);
	u64 *response = slot ? bpf_map_lookup_elem(&responses, slot) : 0;
	if (!slot || !response || *response < least)
		return 0;
	wakeup->faults_after = READ(task, min_flt) + READ(task, maj_flt);
	end(wakeup, cpu, task, *slot, *response);
	return 1;
}

/* --- Wakeups begin --------------------------------------------------------------------------- */

/* What this CPU was at when the interrupt came, as far as it may matter. */
INLINE void look_at_interrupted(void *ctx, struct cpu *cpu, struct wakeup *wakeup, u64 now)
{
	wakeup->looked = 1;
	wakeup->interrupted.pid = bpf_get_current_pid_tgid();
	/* Nothing more is to be said of idle, which is where most wakeups come. */
	if (!wakeup->interrupted.pid && !wakeup->softirq)
		return;
	struct task_struct *current = (void *)bpf_get_current_task();
	bpf_get_current_comm(wakeup->interrupted.comm, sizeof(wakeup->interrupted.comm));
	wakeup->interrupted.prio = READ(current, prio);
	wakeup->interrupted.policy = READ(current, policy);
	wakeup->preempt_count = preempt_count(cpu);
	struct counts *all = all_counts();
	u32 depth = wakeup->preempt_count & 0xff;
	if (all && (!all->least_depth || depth + 1 < all->least_depth))
		all->least_depth = depth + 1;
	void **where = per_cpu(cpu, &irq_regs_place);
	if (where) {
		void *regs = 0;
		bpf_probe_read_kernel(&regs, sizeof(regs), where);
		struct pt_regs___x86 *x86 = regs;
		struct pt_regs___arm64 *arm64 = regs;
		if (!regs) {
			/* No interrupt: a waker in its own context, which is the kernel's. */
			wakeup->mode = 2;
		} else if (FIELD_EXISTS(x86->cs)) {
			wakeup->interrupted_ip = READ(x86, ip);
			wakeup->mode = READ(x86, cs) & 3 ? 1 : 2;
		} else if (FIELD_EXISTS(arm64->pstate)) {
			wakeup->interrupted_ip = READ(arm64, pc);
			wakeup->mode = READ(arm64, pstate) & 0xf ? 2 : 1;
		}
	}
	/*
	 * A stack takes about a microsecond, which the wakeup is then later. It is not needed of
	 * user code, nor where the kernel switches at once. 0xff00 counts softirqs and places where
	 * they are off.
	 */
	if (wakeup->mode == 1)
		return;
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	u64 keep = asked ? asked->keep : 0;
	int late = now > wakeup->due && now - wakeup->due > keep / 4;
	u32 least = all ? all->least_depth : 0;
	int held = depth + 1 > least || (wakeup->preempt_count & 0xff00) || !preemptible;
	if (late || held || !wakeup->mode)
		wakeup->stack_bytes = bpf_get_stack(ctx, wakeup->stack, sizeof(wakeup->stack), 0);
}

/* A wakeup whose end was not seen. */
INLINE void give_up(struct wakeup *wakeup)
{
	struct cpu *cpu = cpu_of(wakeup->cpu);
	struct counts *all = all_counts();
	wakeup->state = IDLE;
	if (all)
		__sync_fetch_and_add(&all->broken, 1);
	if (cpu && cpu->open)
		__sync_fetch_and_add(&cpu->open, -1);
}

INLINE void begin(void *ctx, struct wakeup *wakeup, struct task_struct *task, u32 pid, u64 due,
		  u64 now, u32 stimulus)
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
	struct cpu *was = wakeup->state == IDLE ? 0 : cpu_of(wakeup->cpu);
	if (was && !(targets == NAMED && answered(wakeup, was, pid, task)))
		give_up(wakeup);
	wakeup->due = due;
	wakeup->woken = now;
	wakeup->irq_entry = 0;
	wakeup->irq_exit = 0;
	wakeup->sched_entry = 0;
	wakeup->switch_in = 0;
	wakeup->response = 0;
	wakeup->interrupted_ip = 0;
	wakeup->cpu = there;
	wakeup->stimulus_cpu = here;
	wakeup->stimulus = stimulus;
	wakeup->mode = 0;
	wakeup->looked = 0;
	wakeup->softirq = waits->softirq;
	wakeup->idle = waits->idle;
	wakeup->throttled = 0;
	wakeup->stack_bytes = 0;
	wakeup->away_bytes = 0;
	wakeup->user_bytes = 0;
	wakeup->events_before = waits->seen;
	wakeup->faults_before = 0;
	wakeup->faults_after = 0;
	wakeup->preempt_count = 0;
	if (stimulus == 1)
		wakeup->irq_entry = cpu->irq_entry;
	else
		describe(&wakeup->waker, (void *)bpf_get_current_task());
	if (cpu->irq_depth && cpu->woken_count < 4) {
		cpu->woken[cpu->woken_count & 3] = pid;
		cpu->woken_count++;
	}
	wakeup->state = WOKEN;
	__sync_fetch_and_add(&waits->open, 1);
	if (here == there)
		look_at_interrupted(ctx, cpu, wakeup, now);
}

/* When a timer is due on the monotonic clock. */
INLINE u64 due_of(struct hrtimer *timer, s64 expires)
{
	struct hrtimer_clock_base *base = timer->base;
	s64 offset = FIELD_EXISTS(base->offset) ? base->offset : 0;
	return expires - offset;
}

/* The threads that the loader named sleep by a timer of their own: which task it wakes tells who. */
SEC("tp_btf/hrtimer_expire_entry") int on_timer_entry(u64 *ctx)
{
	struct hrtimer *timer = (void *)ctx[0];
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	u64 now = bpf_ktime_get_ns();
	u64 function = (u64)timer->function;
	next_event(cpu, TIMER_ENTRY, now)->value = function;
	if (targets != NAMED) {
		cpu->timer_due = due_of(timer, timer->node.expires);
		return 0;
	}
	if (hrtimer_wakeup && function != hrtimer_wakeup)
		return 0;
	struct hrtimer_sleeper *sleeper = (void *)timer;
	struct task_struct *task = READ(sleeper, task);
	if (!task)
		return 0;
	u32 pid = READ(task, pid);
	struct wakeup *wakeup = bpf_map_lookup_elem(&wakeups, &pid);
	if (!wakeup)
		return 0;
	begin(ctx, wakeup, task, pid, due_of(timer, timer->_softexpires), now, 1);
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit") int on_timer_exit(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	cpu->timer_due = 0;
	next_event(cpu, TIMER_EXIT, bpf_ktime_get_ns());
	return 0;
}

INLINE int is_target(struct task_struct *task)
{
	if (targets == PROCESS)
		return task->tgid == target_pid || task->pid == target_pid;
	if (targets == COMM) {
		u64 comm[2];
		bpf_probe_read_kernel(comm, sizeof(comm), &task->comm);
		return comm[0] == target_comm[0] && comm[1] == target_comm[1];
	}
	if (targets == CGROUP)
		return task->cgroups->dfl_cgrp->kn->id == target_cgroup;
	return 0;
}

SEC("tp_btf/sched_waking") int on_waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	if (HOT(!is_target(task)))
		return 0;
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	u32 pid = task->pid;
	struct wakeup *wakeup = bpf_map_lookup_elem(&wakeups, &pid);
	if (!wakeup) {
		u32 zero = 0;
		void *blank = bpf_map_lookup_elem(&blank_wakeup, &zero);
		if (blank)
			bpf_map_update_elem(&wakeups, &pid, blank, 0);
		wakeup = bpf_map_lookup_elem(&wakeups, &pid);
	}
	if (!wakeup) {
		struct counts *all = all_counts();
		if (all)
			__sync_fetch_and_add(&all->no_room, 1);
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
	u64 now = bpf_ktime_get_ns();
	u64 due = cpu->timer_due;
	if (due && due <= now)
		begin(ctx, wakeup, task, pid, due, now, 1);
	else
		begin(ctx, wakeup, task, pid, now, now, cpu->irq_depth ? 3 : 2);
	return 0;
}

SEC("tp_btf/sched_process_exit") int on_exit(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	if (HOT(!is_target(task)))
		return 0;
	u32 pid = task->pid;
	struct wakeup *wakeup = bpf_map_lookup_elem(&wakeups, &pid);
	if (!wakeup)
		return 0;
	if (wakeup->state != IDLE) {
		struct cpu *cpu = cpu_of(wakeup->cpu);
		if (cpu && cpu->open)
			__sync_fetch_and_add(&cpu->open, -1);
	}
	bpf_map_delete_elem(&wakeups, &pid);
	return 0;
}

/* --- Wakeups go on -------------------------------------------------------------------- */

SEC("tp_btf/sched_migrate_task") int on_migrate(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 pid = task->pid;
	struct wakeup *wakeup = bpf_map_lookup_elem(&wakeups, &pid);
	if (HOT(!wakeup) || wakeup->state != WOKEN)
		return 0;
	struct cpu *from = cpu_of(wakeup->cpu);
	struct cpu *to = cpu_of(ctx[1]);
	if (!from || !to)
		return 0;
	if (from->open)
		__sync_fetch_and_add(&from->open, -1);
	__sync_fetch_and_add(&to->open, 1);
	wakeup->cpu = ctx[1];
	wakeup->events_before = to->seen;
	return 0;
}

SEC("tp_btf/sched_entry_tp") int on_sched_entry(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (HOT(!cpu || !cpu->open))
		return 0;
	cpu->sched_entry = bpf_ktime_get_ns();
	next_event(cpu, SCHED_ENTRY, cpu->sched_entry);
	return 0;
}

INLINE void switch_in(void *ctx, struct cpu *cpu, u32 number, struct task_struct *next, u64 now)
{
	u32 pid = next->pid;
	struct wakeup *wakeup = bpf_map_lookup_elem(&wakeups, &pid);
	if (!wakeup || wakeup->state != WOKEN)
		return;
	if (wakeup->cpu != number) {
		/* Moved without a word. */
		struct cpu *was = cpu_of(wakeup->cpu);
		if (was && was->open)
			__sync_fetch_and_add(&was->open, -1);
		__sync_fetch_and_add(&cpu->open, 1);
		wakeup->cpu = number;
	}
	wakeup->switch_in = now;
	wakeup->sched_entry = cpu->sched_entry >= wakeup->woken ? cpu->sched_entry : 0;
	wakeup->faults_before = next->min_flt + next->maj_flt;
	/* Its stack is where the CPU was given up. About a microsecond, so only where that is little. */
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	if (asked && asked->keep && now - wakeup->due >= asked->keep)
		wakeup->away_bytes = bpf_get_stack(ctx, wakeup->away, sizeof(wakeup->away), 0);
	if (targets == NAMED)
		wakeup->state = RUNNING;
	else
		end(wakeup, cpu, next, number, now);
}

INLINE void switch_out(struct cpu *cpu, struct task_struct *prev)
{
	u32 pid = prev->pid;
	struct wakeup *wakeup = bpf_map_lookup_elem(&wakeups, &pid);
	if (wakeup && wakeup->state != IDLE)
		answered(wakeup, cpu, pid, prev);
}

SEC("tp_btf/sched_switch") int on_switch(u64 *ctx)
{
	u32 number = bpf_get_smp_processor_id();
	struct cpu *cpu = cpu_of(number);
	if (HOT(!cpu || !cpu->open))
		return 0;
	struct task_struct *prev = (void *)ctx[1];
	struct task_struct *next = (void *)ctx[2];
	u64 now = bpf_ktime_get_ns();
	/* Nobody is switched to in an interrupt: an exit that was not seen is made up for here. */
	cpu->irq_depth = 0;
	if (targets == NAMED)
		switch_out(cpu, prev);
	struct event *event = next_event(cpu, SWITCH, now);
	event->number = next->pid;
	event->prio = next->prio;
	event->policy = next->policy;
	bpf_probe_read_kernel(event->name, sizeof(event->name), &next->comm);
	switch_in(ctx, cpu, number, next, now);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
