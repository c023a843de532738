/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Wakeups whose tasks are moved to another CPU while they wait.
 *
 * A record has the events of one CPU. So what the last one did meanwhile leaves the kernel at the move, as a part:
 * the record of a wakeup that still waits, and was answered now. The loader joins it with what follows.
 */
#pragma once

#include "endings.h"
#include "quota.h"
#include "state.h"
#include "steal.h"
#include "waiting.h"

/* Parts of one wakeup at most: an episode must fit into a line of 1 MiB. */
#define MOST_PARTS 8

/* A part is handed over once the wakeup is that share as late as one must be to be kept. */
#define PART_SHARE 8

/* Whether the part until now may be one of a late wakeup. */
INLINE int is_worth_a_part(struct wakeup *wakeup, u64 now)
{
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	if (!asked || !counts_now(asked, wakeup->due) || now < wakeup->due || wakeup->parts >= MOST_PARTS)
		return 0;
	u64 late = now - wakeup->due;
	if (COLD(!asked->keep))
		return eighths_unread() < ROOM_FOR_LATE;
	return late >= asked->keep / PART_SHARE || late >= asked->keep_net / PART_SHARE;
}

/* Hands over what was seen of the wait for the CPU that the task is moved away from. 0 if it does not. */
INLINE int part_with(struct wakeup *wakeup, struct task_struct *task, u64 now)
{
	if (!is_worth_a_part(wakeup, now))
		return 0;
	wakeup->response = now;
	describe_woken(wakeup, task);
	return send(key_of(wakeup->task.pid, wakeup));
}

/*
 * It waits for another CPU, and `has_waited` for the last one. 0 if somebody else ends it.
 *
 * What the new CPU did meanwhile is no reason to have waited until now: 310 us of a more urgent task there were
 * once given for code that held the last one.
 */
INLINE int move_wakeup(struct wakeup *wakeup, struct task_struct *task, u32 number, struct cpu *to, int has_waited)
{
	struct counts *all = all_counts();
	struct cpu *from = cpu_of(wakeup->cpu);
	if (!all || !from || !close_wakeup(wakeup, all))
		return 0;
	u64 now = bpf_ktime_get_ns();
	leave_stolen(wakeup, from, now);
	if (has_waited) {
		/* Timers in a row become one event: there may be one less than before. */
		u64 seen = from->seen;
		if (part_with(wakeup, task, now)) {
			__sync_fetch_and_add(&all->parts, 1);
			wakeup->parts++;
			wakeup->events_elsewhere = 0;
		} else {
			wakeup->events_elsewhere +=
				1 + (seen > wakeup->events_before ? seen - wakeup->events_before : 0);
		}
		wakeup->moved_at = now;
	}
	go_on_stolen(wakeup, number, to);
	wakeup->events_before = to->seen;
	wakeup->switches_before = to->switches;
	wakeup->interrupts_before = to->interrupts;
	taken_until(&wakeup->taken_before, to, now);
	wakeup->cpu = number;
	/* Where it never waited nobody was kept by an idle state. */
	if (!has_waited)
		wakeup->idle = to->idle;
	/* The group's queue of a real-time task is still that of the CPU that it leaves. */
	wakeup->throttled |= throttles_there(to) | (READ(task, prio) < 0 ? deadline_throttled(task) : 0);
	/* A CPU that fetches a task for itself, and not in a softirq, is in its scheduler, or about to enter it. */
	if (has_waited && number == bpf_get_smp_processor_id() && !to->softirq && !to->irq_depth)
		to->sched_entry = now;
	wakeup->moved_softirq = going_softirq(to, 0);
	/* Where somebody looked at what was interrupted, the softirq belongs to that. */
	if (!wakeup->looked)
		wakeup->softirq = wakeup->moved_softirq;
	open_on(wakeup, number);
	return 1;
}
