/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long each CPU has interrupts off, and preemption: exactly, between the edges that preemptirq
 * tracepoints show. These come at outermost transitions only, and very often: attached where that is
 * asked for, to a kernel that has them.
 */
#pragma once

#include "bpf.h"
#include "endings.h"
#include "shared.h"
#include "state.h"

/* Whether this kernel shows when interrupts go off and on, and somebody wants to know. */
const volatile u32 sees_irqs_off = 0;

MAP(MAP_ARRAY, u32, struct sections, 1, 0) sections SEC(".maps");
/* Per CPU: SECTION_KINDS of them. Mapped, as `figures` are. */
MAP(MAP_ARRAY, u32, struct figures, 1, MAP_MMAPABLE) section_figures SEC(".maps");
/* Per CPU and kind: SECTION_SLOTS of them, by hash. */
MAP(MAP_ARRAY, u32, struct section, 1, 0) section_places SEC(".maps");

INLINE struct sections *sections_of(u32 cpu)
{
	return bpf_map_lookup_elem(&sections, &cpu);
}

/* What a wakeup by a timer waited for, if its interrupt was held off by a section. */
INLINE void look_at_last_section(struct wakeup *wakeup, u32 cpu)
{
	struct sections *all = sections_of(cpu);
	if (!all)
		return;
	wakeup->irqs_off = all->last_off;
	wakeup->irqs_on = all->last_on;
}

INLINE u64 counts_from(void)
{
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	return asked && asked->start ? asked->start : ~0ULL;
}

INLINE void open(struct edge *edge, struct sections *all, u64 now, u64 ip, u64 parent)
{
	edge->at = now;
	edge->ip = ip;
	edge->parent = parent;
	edge->handlers = all->handlers;
	edge->flags = 0;
}

/* Whether `known` goes from one of these places to the other. */
INLINE int is_between(struct section *known, struct edge *edge, u64 ip, u64 parent)
{
	return known->end == ip && known->begin == edge->ip && known->end_parent == parent &&
	       known->begin_parent == edge->parent;
}

INLINE void add_to(struct section *known, u64 at, u64 ns)
{
	known->count++;
	known->total += ns;
	if (ns > known->worst) {
		known->worst = ns;
		known->worst_at = at;
	}
}

/*
 * Places that begin and end sections are few, but for some there may be no room: then the one whose
 * sections are shortest gives way to a longer one.
 */
INLINE void add_to_place(struct sections *all, u32 index, struct edge *edge, u64 ip, u64 parent,
			 u64 ns)
{
	u64 hash = (edge->ip ^ (edge->parent << 7)) * 0x9e3779b97f4a7c15ULL;
	hash = (hash ^ ip ^ (parent << 7)) * 0x9e3779b97f4a7c15ULL;
	u32 first = hash >> 40;
	struct section *least = 0;
#pragma unroll
	for (u32 i = 0; i < 4; i++) {
		u32 slot = index * SECTION_SLOTS + ((first + i) & (SECTION_SLOTS - 1));
		struct section *known = bpf_map_lookup_elem(&section_places, &slot);
		if (!known)
			return;
		if (HOT(is_between(known, edge, ip, parent) && known->count)) {
			add_to(known, edge->at, ns);
			return;
		}
		if (!known->count) {
			least = known;
			break;
		}
		if (!least || known->worst < least->worst)
			least = known;
	}
	if (!least)
		return;
	if (least->count) {
		all->crowded++;
		if (least->worst >= ns)
			return;
	}
	least->begin = edge->ip;
	least->begin_parent = edge->parent;
	least->end = ip;
	least->end_parent = parent;
	least->count = 0;
	least->total = 0;
	least->worst = 0;
	add_to(least, edge->at, ns);
}

INLINE void count_section(u64 *ctx, struct sections *all, u32 cpu, u32 kind, struct edge *edge,
			  u64 ns)
{
	u32 index = cpu * SECTION_KINDS + kind;
	struct figures *figures = bpf_map_lookup_elem(&section_figures, &index);
	if (!figures)
		return;
	u32 bucket = bucket_of(ns);
	if (bucket < BUCKETS)
		figures->buckets[bucket]++;
	figures->sum += ns;
	if (!figures->count || ns < figures->min)
		figures->min = ns;
	figures->count++;
	add_to_place(all, index, edge, ctx[0], ctx[1], ns);
	if (HOT(ns <= figures->max))
		return;
	figures->max = ns;
	figures->max_due = edge->at;
	struct longest *longest = &all->longest[kind & 3];
	longest->section.begin = edge->ip;
	longest->section.begin_parent = edge->parent;
	longest->section.end = ctx[0];
	longest->section.end_parent = ctx[1];
	longest->section.count = 1;
	longest->section.total = ns;
	longest->section.worst = ns;
	longest->section.worst_at = edge->at;
	describe(&longest->task, (void *)bpf_get_current_task());
	longest->stack_bytes = bpf_get_stack(ctx, longest->stack, sizeof(longest->stack), 0);
}

/* Without the interrupts that came meanwhile. */
INLINE u64 own_length(struct sections *all, struct edge *edge, u64 now)
{
	u64 whole = now - edge->at;
	u64 handlers = all->handlers > edge->handlers ? all->handlers - edge->handlers : 0;
	return whole > handlers ? whole - handlers : 0;
}

/* Both are on again, at last: neither was a moment before. */
INLINE void end_either(struct sections *all, u64 now)
{
	struct edge *either = &all->either;
	if (!either->at)
		return;
	u64 ns = own_length(all, either, now);
	u32 to_schedule = either->flags & SWITCHED ? 1 : 0;
	if (either->at >= counts_from() && ns > all->either_worst[to_schedule])
		all->either_worst[to_schedule] = ns;
	either->at = 0;
}

INLINE int is_lost(struct sections *all, u64 now)
{
	if (!all->asleep && now >= counts_from())
		all->unpaired++;
	return 0;
}

SEC("tp_btf/irq_enable") int on_irq_enable(u64 *ctx)
{
	u32 number = bpf_get_smp_processor_id();
	struct sections *all = sections_of(number);
	struct cpu *cpu = cpu_of(number);
	if (!all || !cpu)
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct edge *edge = &all->irq;
	all->edges++;
	if (!edge->at)
		return is_lost(all, now);
	u64 ns = now - edge->at;
	/* It can only have come as the section began, which is then its own. */
	int is_handler = cpu->irq_entry >= edge->at;
	if (edge->flags & HAD_NMI)
		all->nmis++;
	else if (edge->at >= counts_from())
		count_section(ctx, all, number, is_handler ? HANDLER : IRQ_OFF, edge, ns);
	if (is_handler) {
		all->handlers += ns;
	} else {
		all->last_off = edge->at;
		all->last_on = now;
	}
	edge->at = 0;
	if (!all->preempt.at)
		end_either(all, now);
	return 0;
}

SEC("tp_btf/irq_disable") int on_irq_disable(u64 *ctx)
{
	struct sections *all = sections_of(bpf_get_smp_processor_id());
	if (!all)
		return 0;
	u64 now = bpf_ktime_get_ns();
	all->edges++;
	if (all->irq.at)
		is_lost(all, now);
	open(&all->irq, all, now, ctx[0], ctx[1]);
	if (!all->either.at)
		open(&all->either, all, now, ctx[0], ctx[1]);
	return 0;
}

SEC("tp_btf/preempt_enable") int on_preempt_enable(u64 *ctx)
{
	u32 number = bpf_get_smp_processor_id();
	struct sections *all = sections_of(number);
	struct cpu *cpu = cpu_of(number);
	if (!all || !cpu)
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct edge *edge = &all->preempt;
	all->edges++;
	if (!edge->at)
		return is_lost(all, now);
	/* An interrupt's own: it is within the time that interrupts are off for it. */
	int is_handler = all->irq.at && all->irq.at <= edge->at && cpu->irq_entry >= edge->at;
	if (!is_handler && edge->at >= counts_from())
		count_section(ctx, all, number, edge->flags & SWITCHED ? SCHEDULING : PREEMPT_OFF,
			      edge, own_length(all, edge, now));
	edge->at = 0;
	if (!all->irq.at)
		end_either(all, now);
	return 0;
}

SEC("tp_btf/preempt_disable") int on_preempt_disable(u64 *ctx)
{
	u32 number = bpf_get_smp_processor_id();
	struct sections *all = sections_of(number);
	struct cpu *cpu = cpu_of(number);
	if (!all || !cpu)
		return 0;
	u64 now = bpf_ktime_get_ns();
	all->edges++;
	if (all->preempt.at)
		is_lost(all, now);
	open(&all->preempt, all, now, ctx[0], ctx[1]);
	/* What an interrupt took that is about to end, as before its softirqs, came before this. */
	if (COLD(all->irq.at && cpu->irq_entry >= all->irq.at))
		all->preempt.handlers += now - all->irq.at;
	if (!all->either.at)
		open(&all->either, all, now, ctx[0], ctx[1]);
	return 0;
}

INLINE void switch_in_section(u32 cpu)
{
	struct sections *all = sections_of(cpu);
	if (!all)
		return;
	all->preempt.flags |= SWITCHED;
	all->either.flags |= SWITCHED;
}

/* The state that cpu_idle tells when idle ends. */
#define NOT_IDLE (~0U)

/* The idle task has preemption off at all times: what counts of it is from where it wakes. */
INLINE void idle_in_section(u32 cpu, u32 state)
{
	struct sections *all = sections_of(cpu);
	if (!all)
		return;
	u64 now = bpf_ktime_get_ns();
	all->irq.at = 0;
	all->asleep = state != NOT_IDLE;
	if (all->asleep) {
		all->preempt.at = 0;
		all->either.at = 0;
	} else {
		open(&all->preempt, all, now, 0, 0);
		open(&all->either, all, now, 0, 0);
	}
}

/*
 * Not every kernel tells that interrupts are on again when an NMI returns: what began with one has no
 * end of its own.
 */
INLINE void nmi_in_section(u32 cpu)
{
	struct sections *all = sections_of(cpu);
	if (all && all->irq.at)
		all->irq.flags |= HAD_NMI;
}
