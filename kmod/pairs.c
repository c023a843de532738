// SPDX-License-Identifier: GPL-2.0
/*
 * Two sections at once, or one after the other. The function that makes a pair is
 * named wakescope_inject_<pairing>. A section that is an interrupt has the function
 * that makes it alone.
 */
#include <linux/completion.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/preempt.h>
#include <linux/smp.h>

#include "injector.h"

static __always_inline bool wakescope_is_interrupt(u32 kind)
{
	return kind == WAKESCOPE_IRQ_WORK || kind == WAKESCOPE_NMI;
}

static __always_inline void wakescope_begin(struct wakescope_section *section)
{
	if (section->kind == WAKESCOPE_IRQS_OFF)
		local_irq_disable();
	else
		preempt_disable();
	section->cpu = raw_smp_processor_id();
	section->begin_ns = ktime_get_ns();
}

static __always_inline void wakescope_end(struct wakescope_section *section)
{
	section->end_cpu = raw_smp_processor_id();
	section->end_ns = ktime_get_ns();
	if (section->end_ns - section->begin_ns < section->length_ns)
		section->flags |= WAKESCOPE_SECTION_CUT;
	if (section->kind == WAKESCOPE_IRQS_OFF)
		local_irq_enable();
	else
		preempt_enable();
}

/*
 * Passes the time until so long after the begin of a section, or until there were
 * too many turns. They count for both of @section and @beside.
 */
static __always_inline void
wakescope_pass(struct injector *injector, u64 until, struct wakescope_section *section,
	       struct wakescope_section *beside)
{
	u64 begin = section->begin_ns, turns = 0;

	do {
		cpu_relax();
		turns++;
	} while (ktime_get_ns() - begin < until && turns < injector->turns_max);
	section->turns += turns;
	if (beside)
		beside->turns += turns;
}

static void wakescope_interrupt(struct injector *injector)
{
	u64 turns = 0;

	injector->spins = &injector->second;
	if (injector->second.kind == WAKESCOPE_NMI) {
		wakescope_start_nmi(injector);
		return;
	}
	irq_work_queue(&injector->irq_work);
	while (!completion_done(&injector->done) && turns++ < injector->hold_turns_max)
		cpu_relax();
}

static noinline __noclone void wakescope_inject_nested(struct injector *injector)
{
	struct wakescope_section *first = &injector->section, *second = &injector->second;
	u64 length = injector->asked.length_ns;

	first->length_ns = length;
	second->length_ns = length / 2;
	wakescope_begin(first);
	wakescope_pass(injector, length / 4, first, NULL);
	if (wakescope_is_interrupt(second->kind)) {
		wakescope_interrupt(injector);
	} else {
		wakescope_begin(second);
		wakescope_pass(injector, length / 2, second, first);
		wakescope_end(second);
	}
	wakescope_pass(injector, length, first, NULL);
	wakescope_end(first);
	/* It may come late, but it does. */
	if (second->kind == WAKESCOPE_IRQ_WORK)
		wait_for_completion(&injector->done);
	barrier();
}

static noinline __noclone void wakescope_inject_overlapping(struct injector *injector)
{
	struct wakescope_section *first = &injector->section, *second = &injector->second;
	u64 third = injector->asked.length_ns / 3;

	first->length_ns = 2 * third;
	second->length_ns = 2 * third;
	wakescope_begin(first);
	wakescope_pass(injector, third, first, NULL);
	wakescope_begin(second);
	wakescope_pass(injector, third, second, first);
	wakescope_end(first);
	wakescope_pass(injector, 2 * third, second, NULL);
	wakescope_end(second);
	barrier();
}

static noinline __noclone void wakescope_inject_back_to_back(struct injector *injector)
{
	struct wakescope_section *first = &injector->section, *second = &injector->second;
	u64 half = injector->asked.length_ns / 2;

	first->length_ns = half;
	second->length_ns = half;
	wakescope_begin(first);
	wakescope_pass(injector, half, first, NULL);
	wakescope_end(first);
	wakescope_begin(second);
	wakescope_pass(injector, half, second, NULL);
	wakescope_end(second);
	barrier();
}

void wakescope_pair_make(struct injector *injector)
{
	switch (injector->asked.pairing) {
	case WAKESCOPE_NESTED:
		wakescope_inject_nested(injector);
		break;
	case WAKESCOPE_OVERLAPPING:
		wakescope_inject_overlapping(injector);
		break;
	default:
		wakescope_inject_back_to_back(injector);
	}
	injector->section.work = injector->section.turns;
	injector->second.work = injector->second.turns;
}
