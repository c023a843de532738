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
 * struct injector - what belongs to an open file
 * @running: only one caller at a time makes sections
 * @asked: which ones
 * @turns_max: when one ends whatever the clock says
 * @hold_turns_max: when a lock is given up that nobody waits for, likewise
 * @section: the one that is being made
 * @made: how many there were
 * @ring: what user space maps
 * @owner: the files of the caller that makes sections
 * @stopping: that caller has closed the file
 * @stop: wakes it
 * @done: what a tasklet, timer, interrupt or thread has made its section
 * @lock: protects nothing: it is held
 * @raw_lock: the same
 * @others_lock: the same, by another CPU
 * @other: which one
 * @hold: makes it do so
 * @held: it does
 * @waits: and this one waits for it
 * @tasklet: makes a section, as all of the following
 * @timer: likewise
 * @hrtimer: likewise
 * @irq_work: likewise
 * @work: likewise
 */
struct injector {
	struct mutex running; /* one caller at a time makes sections */
	struct wakescope_injection asked;
	u64 turns_max;
	u64 hold_turns_max;
	struct wakescope_section section;
	u64 made;
	struct wakescope_ring *ring;
	fl_owner_t owner;
	bool stopping;
	wait_queue_head_t stop;
	struct completion done;
	spinlock_t lock; /* protects nothing: it is held */
	raw_spinlock_t raw_lock; /* the same */
	raw_spinlock_t others_lock; /* the same */
	unsigned int other;
	struct work_struct hold;
	struct completion held;
	bool waits;
	struct tasklet_struct tasklet;
	struct timer_list timer;
	struct hrtimer hrtimer;
	struct irq_work irq_work;
	struct work_struct work;
};

/* Makes the section that is asked for, and tells of it in @section. */
void wakescope_section_make(struct injector *injector);

/* Prepares what sections are made with, and waits until none of it runs. */
void wakescope_section_init(struct injector *injector);
void wakescope_section_exit(struct injector *injector);

#endif /* _WAKESCOPE_INJECTOR_H */
