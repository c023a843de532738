/* SPDX-License-Identifier: GPL-2.0 */
/* What the two parts of the injector share: requests (inject.c) and sections. */
#ifndef _WAKESCOPE_INJECTOR_H
#define _WAKESCOPE_INJECTOR_H

#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "inject.h"

/**
 * struct injector - the state of an open file
 * @running: held by the caller that makes sections: one at a time
 * @asked: its request
 * @turns_max: a section ends after so many turns, whatever the clock says
 * @hold_turns_max: the same for a lock that is held before anybody waits for it
 * @section: the section that is being made
 * @second: the second one of a pair
 * @spins: that of the two which passes its time next: see spin.h
 * @made: the number of sections that were made
 * @ring: the memory that user space maps
 * @owner: the files of the caller that makes sections
 * @stopping: the caller has closed the file, and is to stop
 * @stop: wakes the caller if it is to stop
 * @done: a tasklet, timer, interrupt or thread has made the section
 * @lock: held in sections; protects nothing
 * @raw_lock: held in sections; protects nothing
 * @others_lock: held by another CPU while this one waits; protects nothing
 * @other: the CPU that holds @others_lock
 * @hold: the work item that holds @others_lock
 * @held: @hold has taken @others_lock
 * @waits: this CPU waits for @others_lock
 * @held_long: @hold has held @others_lock for the length while this CPU waited
 * @tasklet: makes a section in the softirq TASKLET
 * @timer: makes a section in the softirq TIMER
 * @hrtimer: makes a section in the timer interrupt
 * @irq_work: makes a section in an interrupt that the CPU sends itself
 * @work: makes a section in a thread of the system's workqueue
 */
struct injector {
	struct mutex running;
	struct wakescope_injection asked;
	u64 turns_max;
	u64 hold_turns_max;
	struct wakescope_section section;
	struct wakescope_section second;
	struct wakescope_section *spins;
	u64 made;
	struct wakescope_ring *ring;
	fl_owner_t owner;
	bool stopping;
	wait_queue_head_t stop;
	struct completion done;
	spinlock_t lock;
	raw_spinlock_t raw_lock;
	raw_spinlock_t others_lock;
	unsigned int other;
	struct work_struct hold;
	struct completion held;
	bool waits;
	bool held_long;
	struct tasklet_struct tasklet;
	struct timer_list timer;
	struct hrtimer hrtimer;
	struct irq_work irq_work;
	struct work_struct work;
};

/* Makes a section as @asked, or two, and writes to @section and @second when they were. */
void wakescope_section_make(struct injector *injector);

/* Initializes tasklet, timers and work items; waits until none of them runs. */
void wakescope_section_init(struct injector *injector);
void wakescope_section_exit(struct injector *injector);

/* Makes two sections as @asked. */
void wakescope_pair_make(struct injector *injector);

/* Whether the machine has an NMI that a CPU can send itself. */
bool wakescope_has_nmi(void);

/* Makes a section in an NMI; only if there is one. */
void wakescope_start_nmi(struct injector *injector);

/* The handler of NMIs. None of them is ours after the exit. */
int wakescope_nmi_init(void);
void wakescope_nmi_exit(void);

#endif /* _WAKESCOPE_INJECTOR_H */
