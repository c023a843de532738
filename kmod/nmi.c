// SPDX-License-Identifier: GPL-2.0
/*
 * Sections in an NMI that the CPU sends itself. NMIs come while interrupts are
 * off as well, so nothing holds this one up but another NMI.
 */
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/smp.h>

#include "injector.h"
#include "spin.h"

#ifdef CONFIG_X86_LOCAL_APIC
#include <asm/apic.h>
#include <asm/cpufeature.h>
#include <asm/nmi.h>

#define NAME "wakescope"

/* NMIs that were sent to a CPU and have not come yet, and who waits for the last. */
static DEFINE_PER_CPU(unsigned int, nmis_sent);
static DEFINE_PER_CPU(struct injector *, waits_for_nmi);

/*
 * Without ktime_get_ns(): the NMI may have come in the middle of an update that
 * it would wait for.
 */
static int wakescope_inject_nmi(unsigned int type, struct pt_regs *regs)
{
	struct injector *injector;

	if (!this_cpu_read(nmis_sent))
		return NMI_DONE;
	this_cpu_dec(nmis_sent);
	injector = this_cpu_read(waits_for_nmi);
	if (injector) {
		wakescope_spin_by(ktime_get_mono_fast_ns, injector, NULL);
		this_cpu_write(waits_for_nmi, NULL);
	}
	return NMI_HANDLED;
}

bool wakescope_has_nmi(void)
{
	return boot_cpu_has(X86_FEATURE_APIC) && apic && apic->send_IPI;
}

/*
 * Waits with preemption off, so that nothing else is made on this CPU meanwhile.
 * What counts as a turn is not the same as in a section, but takes less time, and
 * no turns are made while the NMI has the CPU.
 */
void wakescope_start_nmi(struct injector *injector)
{
	struct wakescope_section *section = injector->spins;
	u64 turns = 0;

	preempt_disable();
	section->begin_ns = ktime_get_ns();
	this_cpu_write(waits_for_nmi, injector);
	this_cpu_inc(nmis_sent);
	apic->send_IPI(smp_processor_id(), NMI_VECTOR);
	while (this_cpu_read(waits_for_nmi) && turns++ < injector->hold_turns_max)
		cpu_relax();
	/* It did not come. If it does later, nobody waits for it. */
	if (this_cpu_xchg(waits_for_nmi, NULL)) {
		section->cpu = smp_processor_id();
		section->end_cpu = section->cpu;
		section->end_ns = ktime_get_ns();
		section->flags |= WAKESCOPE_SECTION_CUT;
	}
	preempt_enable();
}

int wakescope_nmi_init(void)
{
	return register_nmi_handler(NMI_LOCAL, wakescope_inject_nmi, 0, NAME);
}

void wakescope_nmi_exit(void)
{
	unregister_nmi_handler(NMI_LOCAL, NAME);
}
#else
bool wakescope_has_nmi(void)
{
	return false;
}

void wakescope_start_nmi(struct injector *injector)
{
}

int wakescope_nmi_init(void)
{
	return 0;
}

void wakescope_nmi_exit(void)
{
}
#endif
