// SPDX-License-Identifier: GPL-2.0
/*
 * Sections of kernel code that hold a CPU up. The function that makes a section
 * is named wakescope_inject_<kind>, so that stack traces show the kind.
 */
#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "injector.h"
#include "spin.h"

/*
 * Stack traces have to show the functions that make sections, so these are
 * neither inlined nor cloned.
 */
static noinline __noclone void wakescope_inject_irqs_off(struct injector *injector)
{
	unsigned long flags;

	local_irq_save(flags);
	wakescope_spin(injector, NULL);
	local_irq_restore(flags);
}

/* Without barrier(), a call at the end would replace the function in the stack. */
static noinline __noclone void wakescope_inject_preempt_off(struct injector *injector)
{
	preempt_disable();
	wakescope_spin(injector, NULL);
	preempt_enable();
	barrier();
}

static noinline __noclone void wakescope_inject_spin_lock(struct injector *injector)
{
	spin_lock(&injector->lock);
	wakescope_spin(injector, NULL);
	spin_unlock(&injector->lock);
	barrier();
}

static noinline __noclone void wakescope_inject_raw_spin_lock(struct injector *injector)
{
	raw_spin_lock(&injector->raw_lock);
	wakescope_spin(injector, NULL);
	raw_spin_unlock(&injector->raw_lock);
	barrier();
}

static noinline __noclone void wakescope_inject_bh_off(struct injector *injector)
{
	local_bh_disable();
	wakescope_spin(injector, NULL);
	local_bh_enable();
	barrier();
}

static noinline __noclone void wakescope_inject_rcu_read(struct injector *injector)
{
	rcu_read_lock();
	wakescope_spin(injector, NULL);
	rcu_read_unlock();
	barrier();
}

static noinline __noclone void wakescope_inject_loop(struct injector *injector)
{
	wakescope_spin(injector, NULL);
}

static bool wakescope_resched(struct injector *injector)
{
	cond_resched();
	return false;
}

static noinline __noclone void wakescope_inject_loop_resched(struct injector *injector)
{
	wakescope_spin(injector, wakescope_resched);
}

static bool wakescope_break_lock(struct injector *injector)
	__must_hold(&injector->lock)
{
	spin_unlock(&injector->lock);
	cond_resched();
	spin_lock(&injector->lock);
	return true;
}

static bool wakescope_break_lock_for_others(struct injector *injector)
	__must_hold(&injector->lock)
{
	return need_resched() && wakescope_break_lock(injector);
}

static noinline __noclone void wakescope_inject_loop_lock_break(struct injector *injector)
{
	spin_lock(&injector->lock);
	wakescope_spin(injector, wakescope_break_lock);
	spin_unlock(&injector->lock);
	barrier();
}

static noinline __noclone void wakescope_inject_loop_restart(struct injector *injector)
{
	spin_lock(&injector->lock);
	wakescope_spin(injector, wakescope_break_lock_for_others);
	spin_unlock(&injector->lock);
	barrier();
}

static noinline __noclone void wakescope_inject_tasklet(struct tasklet_struct *tasklet)
{
	struct injector *injector = container_of(tasklet, struct injector, tasklet);

	wakescope_spin(injector, NULL);
	complete(&injector->done);
	barrier();
}

static void wakescope_start_tasklet(struct injector *injector)
{
	/* The softirq is served at once, and not by a thread. */
	local_bh_disable();
	tasklet_schedule(&injector->tasklet);
	local_bh_enable();
	wait_for_completion(&injector->done);
}

static noinline __noclone void wakescope_inject_timer(struct timer_list *timer)
{
	struct injector *injector = container_of(timer, struct injector, timer);

	wakescope_spin(injector, NULL);
	complete(&injector->done);
	barrier();
}

static void wakescope_start_timer(struct injector *injector)
{
	mod_timer(&injector->timer, jiffies + 1);
	wait_for_completion(&injector->done);
}

static noinline __noclone enum hrtimer_restart
wakescope_inject_hrtimer(struct hrtimer *timer)
{
	struct injector *injector = container_of(timer, struct injector, hrtimer);

	wakescope_spin(injector, NULL);
	complete(&injector->done);
	return HRTIMER_NORESTART;
}

static void wakescope_start_hrtimer(struct injector *injector)
{
	hrtimer_start(&injector->hrtimer, ns_to_ktime(10 * NSEC_PER_USEC),
		      HRTIMER_MODE_REL_PINNED_HARD);
	wait_for_completion(&injector->done);
}

static noinline __noclone void wakescope_inject_irq_work(struct irq_work *work)
{
	struct injector *injector = container_of(work, struct injector, irq_work);

	wakescope_spin(injector, NULL);
	complete(&injector->done);
	barrier();
}

static void wakescope_start_irq_work(struct injector *injector)
{
	irq_work_queue(&injector->irq_work);
	wait_for_completion(&injector->done);
}

static noinline __noclone void wakescope_inject_work(struct work_struct *work)
{
	struct injector *injector = container_of(work, struct injector, work);

	wakescope_spin(injector, NULL);
	complete(&injector->done);
	barrier();
}

static void wakescope_start_work(struct injector *injector)
{
	schedule_work_on(raw_smp_processor_id(), &injector->work);
	wait_for_completion(&injector->done);
}

/* Whether some time is over, or the clock has been read too often for that. */
static bool wakescope_is_over(u64 begin, u64 length, u64 *turns, u64 most)
{
	cpu_relax();
	return ktime_get_ns() - begin >= length || ++*turns >= most;
}

/*
 * Runs on the other CPU. Takes the lock, waits until somebody waits for it, and
 * holds it for the length from then on. If nobody comes, it gives the lock up.
 */
static void wakescope_hold_lock(struct work_struct *work)
{
	struct injector *injector = container_of(work, struct injector, hold);
	u64 length = injector->asked.length_ns, begin, turns = 0;

	raw_spin_lock(&injector->others_lock);
	complete(&injector->held);
	begin = ktime_get_ns();
	while (!READ_ONCE(injector->waits) &&
	       !wakescope_is_over(begin, WAKESCOPE_HOLD_MAX_NS, &turns, injector->hold_turns_max))
		;
	if (READ_ONCE(injector->waits)) {
		begin = ktime_get_ns();
		turns = 0;
		while (!wakescope_is_over(begin, length, &turns, injector->turns_max))
			;
		injector->held_long = ktime_get_ns() - begin >= length;
	}
	raw_spin_unlock(&injector->others_lock);
}

static __always_inline void wakescope_wait_for_lock(struct injector *injector)
{
	struct wakescope_section *section = &injector->section;
	u64 begin;

	section->cpu = raw_smp_processor_id();
	begin = ktime_get_ns();
	WRITE_ONCE(injector->waits, true);
	raw_spin_lock(&injector->others_lock);
	section->end_ns = ktime_get_ns();
	/*
	 * The other CPU may have given up. The time does not tell: an interrupt
	 * may have come between the two readings of the clock.
	 */
	if (!injector->held_long)
		section->flags |= WAKESCOPE_SECTION_CUT;
	raw_spin_unlock(&injector->others_lock);
	section->begin_ns = begin;
	section->end_cpu = raw_smp_processor_id();
}

static noinline __noclone void
wakescope_inject_lock_wait(struct injector *injector)
{
	preempt_disable();
	wakescope_wait_for_lock(injector);
	preempt_enable();
	barrier();
}

static noinline __noclone void
wakescope_inject_lock_wait_irqs_off(struct injector *injector)
{
	unsigned long flags;

	local_irq_save(flags);
	wakescope_wait_for_lock(injector);
	local_irq_restore(flags);
}

static void wakescope_start_lock_wait(struct injector *injector)
{
	injector->waits = false;
	injector->held_long = false;
	schedule_work_on(injector->other, &injector->hold);
	wait_for_completion(&injector->held);
	if (injector->asked.kind == WAKESCOPE_LOCK_WAIT)
		wakescope_inject_lock_wait(injector);
	else
		wakescope_inject_lock_wait_irqs_off(injector);
	flush_work(&injector->hold);
}

static void (*const kinds[WAKESCOPE_KINDS])(struct injector *) = {
	[WAKESCOPE_IRQS_OFF] = wakescope_inject_irqs_off,
	[WAKESCOPE_PREEMPT_OFF] = wakescope_inject_preempt_off,
	[WAKESCOPE_SPIN_LOCK] = wakescope_inject_spin_lock,
	[WAKESCOPE_RAW_SPIN_LOCK] = wakescope_inject_raw_spin_lock,
	[WAKESCOPE_BH_OFF] = wakescope_inject_bh_off,
	[WAKESCOPE_RCU_READ] = wakescope_inject_rcu_read,
	[WAKESCOPE_TASKLET] = wakescope_start_tasklet,
	[WAKESCOPE_TIMER] = wakescope_start_timer,
	[WAKESCOPE_HRTIMER] = wakescope_start_hrtimer,
	[WAKESCOPE_IRQ_WORK] = wakescope_start_irq_work,
	[WAKESCOPE_WORK] = wakescope_start_work,
	[WAKESCOPE_LOOP] = wakescope_inject_loop,
	[WAKESCOPE_LOOP_RESCHED] = wakescope_inject_loop_resched,
	[WAKESCOPE_LOOP_LOCK_BREAK] = wakescope_inject_loop_lock_break,
	[WAKESCOPE_LOOP_RESTART] = wakescope_inject_loop_restart,
	[WAKESCOPE_LOCK_WAIT] = wakescope_start_lock_wait,
	[WAKESCOPE_LOCK_WAIT_IRQS_OFF] = wakescope_start_lock_wait,
	[WAKESCOPE_NMI] = wakescope_start_nmi,
};

void wakescope_section_make(struct injector *injector)
{
	reinit_completion(&injector->done);
	reinit_completion(&injector->held);
	injector->spins = &injector->section;
	if (injector->asked.pairing)
		wakescope_pair_make(injector);
	else
		kinds[injector->asked.kind](injector);
}

void wakescope_section_init(struct injector *injector)
{
	init_completion(&injector->done);
	init_completion(&injector->held);
	spin_lock_init(&injector->lock);
	raw_spin_lock_init(&injector->raw_lock);
	raw_spin_lock_init(&injector->others_lock);
	tasklet_setup(&injector->tasklet, wakescope_inject_tasklet);
	timer_setup(&injector->timer, wakescope_inject_timer, TIMER_PINNED);
	hrtimer_setup(&injector->hrtimer, wakescope_inject_hrtimer,
		      CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	injector->irq_work = IRQ_WORK_INIT_HARD(wakescope_inject_irq_work);
	INIT_WORK(&injector->work, wakescope_inject_work);
	INIT_WORK(&injector->hold, wakescope_hold_lock);
}

/* All sections are over, but what made the last one may still be returning. */
void wakescope_section_exit(struct injector *injector)
{
	tasklet_kill(&injector->tasklet);
	timer_delete_sync(&injector->timer);
	hrtimer_cancel(&injector->hrtimer);
	irq_work_sync(&injector->irq_work);
	cancel_work_sync(&injector->work);
	cancel_work_sync(&injector->hold);
}
