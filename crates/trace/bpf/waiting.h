/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which wakeups wait for a CPU. Programs look there at nothing while none does.
 *
 * A wakeup is counted as open by one CPU at a time, and this is the only place that changes the
 * number. It becomes less only for who claims the wakeup, so it is never below zero. Ends are seen on
 * several CPUs at once: a task may be woken on one while another switches to it or moves it. If all of
 * them miss the claim, the number stays too large by one: that CPU's programs look at more than they
 * need, and the wakeup counts as one that was not followed.
 */
#pragma once

#include "claim.h"
#include "state.h"
#include "steal.h"

/* The wakeup waits for the CPU of that number from now on. */
INLINE void open_on(struct wakeup *wakeup, u32 number)
{
	__sync_fetch_and_add(&word_of(number)->wakeups, 1);
	make_claimable(&wakeup->waits, number);
}

/* The same of a wakeup that begins. */
INLINE void open_wakeup(struct wakeup *wakeup, u32 number)
{
	struct counts *all = all_counts();
	if (all)
		__sync_fetch_and_add(&all->begun, 1);
	open_on(wakeup, number);
}

/* It waits no more. 1 for the one caller that is to end it. */
INLINE int close_wakeup(struct wakeup *wakeup, struct counts *all)
{
	u32 owner = claim(&wakeup->waits);
	if (!owner) {
		__sync_fetch_and_add(&all->contended, 1);
		return 0;
	}
	__sync_fetch_and_add(&word_of(owner - 1)->wakeups, -1);
	return 1;
}

/*
 * The softirq that goes on where the wakeup waits. With PREEMPT_RT its thread may have had to give
 * way, and another runs: those that run one count it.
 */
INLINE u32 going_softirq(struct cpu *waits, int is_here)
{
	struct task_struct *current = (void *)bpf_get_current_task();
	if (HOT(!waits->softirq) || !FIELD_EXISTS(current->softirq_disable_cnt))
		return waits->softirq;
	return is_here && READ(current, softirq_disable_cnt) ? waits->softirq : 0;
}
