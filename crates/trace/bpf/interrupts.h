/* SPDX-License-Identifier: GPL-2.0 */
/* Interrupts, softirqs, idle and lock waits: what a CPU does beside tasks. */
#pragma once

#include "interference.h"
#include "sections.h"
#include "state.h"

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

/* The number of an interrupt among all that a bound is composed of. */
INLINE u32 number_of(u32 vector, u32 line)
{
	return vector ? A_VECTOR + vector : line;
}

INLINE struct irq *irq_event(struct cpu *cpu, u32 kind, u32 vector, u32 line, u64 now)
{
	struct irq *irq = &next_event(cpu, kind, now)->irq;
	irq->vector = vector;
	irq->line = line;
	return irq;
}

INLINE void irq_entry(u32 vector, u32 line, struct irqaction *action)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return;
	u64 now = bpf_ktime_get_ns();
	if (cpu->irq_depth == 0) {
		cpu->irq_entry = now;
		/* They were left by an interrupt whose exit was not seen. */
		cpu->woken_count = 0;
		cpu->irq_interrupts = cpu->interrupts;
	}
	cpu->irq_depth++;
	struct irq *irq = irq_event(cpu, IRQ_ENTRY, vector, line, now);
	irq->name[0] = 0;
	if (action)
		bpf_probe_read_kernel_str(irq->name, sizeof(irq->name), action->name);
	if (COLD(wants_bound)) {
		cpu->action = (u64)action;
		struct interference *known =
			comes(cpu, number_of(vector, line), (u64)action, now);
		if (known && action && !known->name[0])
			bpf_probe_read_kernel_str(known->name, sizeof(known->name), action->name);
	}
}

/* The wakeups that began in the outermost interrupt learn that it has ended, unless they ended meanwhile. */
ONCE int tell_woken(u32 number, u64 now)
{
	struct cpu *cpu = cpu_of(number);
	if (!cpu)
		return 0;
	for (u32 i = 0; i < MOST_WOKEN; i++) {
		if (i >= cpu->woken_count)
			break;
		struct wakeup *wakeup = wakeup_of(cpu->woken[i]);
		/* The thread's next one may have begun on another CPU. */
		if (wakeup && wakeup->state == WOKEN && wakeup->stimulus_cpu == number && !wakeup->irq_exit)
			wakeup->irq_exit = now;
	}
	cpu->woken_count = 0;
	return 0;
}

INLINE void irq_exit(u32 vector, u32 line, struct irqaction *action)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return;
	u64 now = bpf_ktime_get_ns();
	irq_event(cpu, IRQ_EXIT, vector, line, now);
	if (COLD(wants_bound))
		goes(cpu, number_of(vector, line), (u64)action, now);
	/* Attached in the middle of one, the end is seen first. */
	if (cpu->irq_depth == 1)
		/* With the NMIs in it. */
		cpu->interrupts = cpu->irq_interrupts + (now - cpu->irq_entry);
	if (cpu->irq_depth > 0)
		cpu->irq_depth--;
	if (HOT(cpu->irq_depth > 0 || !cpu->woken_count))
		return;
	tell_woken(bpf_get_smp_processor_id(), now);
}

#define VECTOR(name, number)                                                                       \
	SEC("tp_btf/" #name "_entry") int on_##name##_entry(u64 *ctx)                              \
	{                                                                                          \
		irq_entry(number, 0, 0);                                                            \
		return 0;                                                                          \
	}                                                                                          \
	SEC("tp_btf/" #name "_exit") int on_##name##_exit(u64 *ctx)                                \
	{                                                                                          \
		irq_exit(number, 0, 0);                                                             \
		return 0;                                                                          \
	}

VECTOR(local_timer, LOCAL_TIMER)
VECTOR(reschedule, RESCHEDULE)
VECTOR(call_function, CALL_FUNCTION)
VECTOR(call_function_single, CALL_FUNCTION_SINGLE)
VECTOR(irq_work, IRQ_WORK)
/* Seldom ones: for a bound. */
VECTOR(thermal_apic, THERMAL)
VECTOR(threshold_apic, THRESHOLD)
VECTOR(deferred_error_apic, DEFERRED_ERROR)
VECTOR(error_apic, ERROR)
VECTOR(spurious_apic, SPURIOUS)
VECTOR(x86_platform_ipi, PLATFORM_IPI)

/*
 * arm64's from another CPU, each with its reason in words. They have lines, one for each reason and
 * all called IPI, so that the handler's entry was seen just before; in older kernels it is not.
 */
SEC("tp_btf/ipi_entry") int on_ipi_entry(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	struct event *last = &cpu->ring[(cpu->seen - 1) & (RING - 1)];
	cpu->ipi_has_line = cpu->irq_depth && last->kind == IRQ_ENTRY && !last->irq.vector;
	if (!cpu->ipi_has_line)
		irq_entry(IPI, 0, 0);
	struct irq *entry = &cpu->ring[(cpu->seen - 1) & (RING - 1)].irq;
	bpf_probe_read_kernel_str(entry->name, sizeof(entry->name), (void *)ctx[0]);
	if (COLD(wants_bound) && cpu->ipi_has_line) {
		struct interference *known = counted_interference(entry->line, cpu->action);
		if (known)
			__builtin_memcpy(known->name, entry->name, sizeof(known->name));
	}
	return 0;
}

SEC("tp_btf/ipi_exit") int on_ipi_exit(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	if (!cpu->ipi_has_line)
		irq_exit(IPI, 0, 0);
	cpu->ipi_has_line = 0;
	return 0;
}

SEC("tp_btf/irq_handler_entry") int on_irq_handler_entry(u64 *ctx)
{
	irq_entry(NO_VECTOR, ctx[0], (void *)ctx[1]);
	return 0;
}

SEC("tp_btf/irq_handler_exit") int on_irq_handler_exit(u64 *ctx)
{
	irq_exit(NO_VECTOR, ctx[0], (void *)ctx[1]);
	return 0;
}

SEC("tp_btf/softirq_entry") int on_softirq_entry(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return 0;
	cpu->softirq = ctx[0] + 1;
	u32 number = bpf_get_smp_processor_id();
	if (COLD(is_waited_for_at_all(number))) {
		cpu->softirq_entry = bpf_ktime_get_ns();
		cpu->softirq_interrupts = cpu->interrupts;
		if (is_waited_for(number))
			next_event(cpu, SOFTIRQ_ENTRY, cpu->softirq_entry)->softirq.number = ctx[0];
	}
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
	u32 number = bpf_get_smp_processor_id();
	if (COLD(is_waited_for_at_all(number))) {
		/*
		 * Interrupts are on. What comes between the reading of the clock and the event is before it and seems
		 * to be later, so what takes long is done before.
		 */
		int is_told = is_waited_for(number);
		u32 pending = is_told && pending_softirqs(cpu) && ksoftirqd_sleeps(cpu);
		u64 now = bpf_ktime_get_ns();
		if (is_told) {
			struct softirq *softirq = &next_event(cpu, SOFTIRQ_EXIT, now)->softirq;
			softirq->number = ctx[0];
			softirq->pending = pending;
		}
		if (cpu->softirq_entry) {
			/* With what interrupted it. */
			u64 all = cpu->softirq_interrupts + (now - cpu->softirq_entry);
			cpu->softirqs += grown(all, cpu->interrupts);
			cpu->interrupts = all;
		}
	}
	cpu->softirq_entry = 0;
	if (COLD(wants_bound == SOFTIRQS_TOO))
		goes(cpu, A_SOFTIRQ + ctx[0], 0, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/nmi_handler") int on_nmi_handler(u64 *ctx)
{
	u32 number = bpf_get_smp_processor_id();
	struct cpu *cpu = cpu_of(number);
	if (COLD(also_followed & ALL_SECTIONS))
		nmi_in_section(number);
	if (!cpu)
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct nmi *nmi = &next_event(cpu, NMI, now)->nmi;
	nmi->handler = ctx[0];
	nmi->duration_ns = ctx[1];
	cpu->interrupts += ctx[1];
	cpu->nmis += ctx[1];
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
	/* 0 when idle ends. */
	if (cpu)
		cpu->idle = (u32)ctx[0] + 1;
	if (COLD(also_followed & ALL_SECTIONS))
		idle_in_section(ctx[1], ctx[0]);
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
