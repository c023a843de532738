// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/wakescope-inject: sections of kernel code that hold a CPU up in a known
 * way for a known time, so that what explains late wakeups can be held against
 * the truth.
 *
 * The caller of the ioctl makes them itself, or waits for each interrupt, timer
 * or thread that does. So nothing goes on once it has returned, and a caller
 * that is killed ends it. Only the caller writes to the ring.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/prandom.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "inject.h"

/* Each has a ring of its own. */
#define FILES_MAX 64

/* How long it is watched how fast the clock is read, and how often. */
#define CALIBRATION_NS 100000
#define CALIBRATIONS 3
#define CALIBRATION_TURNS_MAX 1000000

/*
 * A section ends after so many times as many turns as its length should take:
 * a CPU may since have become that much faster.
 */
#define TURNS_MARGIN 8

/* How long a lock is held at most for a CPU that does not come to take it. */
#define HOLD_NS (10 * NSEC_PER_MSEC)

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

static atomic_t files = ATOMIC_INIT(0);

/* How often the clock can be read in a microsecond, at least. */
static u64 turns_per_us;

/* Until when a CPU is left alone. */
static DEFINE_PER_CPU(atomic64_t, left_alone_until);

/*
 * Takes the length by the clock, but not for ever if that stands still. Calls
 * @point every so many turns, which says whether others may have changed what
 * the loop goes through.
 */
static __always_inline void
wakescope_spin(struct injector *injector, bool (*point)(struct injector *))
{
	struct wakescope_section *section = &injector->section;
	u64 length = injector->asked.length_ns, most = injector->turns_max;
	u32 every = injector->asked.every, left = every, again = 0;
	u64 begin, now, turns = 0, work = 0;

	section->cpu = raw_smp_processor_id();
	begin = ktime_get_ns();
	do {
		cpu_relax();
		if (point && !--left) {
			left = every;
			if (point(injector))
				again = injector->asked.again;
		}
		turns++;
		if (again)
			again--;
		else
			work++;
		now = ktime_get_ns();
	} while (now - begin < length && turns < most);
	section->end_cpu = raw_smp_processor_id();
	section->begin_ns = begin;
	section->end_ns = now;
	section->turns = turns;
	section->work = work;
	if (now - begin < length)
		section->flags |= WAKESCOPE_SECTION_CUT;
}

/*
 * Names of functions that make sections are what a stack tells: they are
 * neither inlined nor cloned.
 */
static noinline __noclone void wakescope_inject_irqs_off(struct injector *injector)
{
	unsigned long flags;

	local_irq_save(flags);
	wakescope_spin(injector, NULL);
	local_irq_restore(flags);
}

/* A last call would take the place of the function in the stack: barrier(). */
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

/* On the other CPU: takes the lock, and holds it from when it is waited for. */
static void wakescope_hold_lock(struct work_struct *work)
{
	struct injector *injector = container_of(work, struct injector, hold);
	u64 length = injector->asked.length_ns, begin, turns = 0;

	raw_spin_lock(&injector->others_lock);
	complete(&injector->held);
	begin = ktime_get_ns();
	while (!READ_ONCE(injector->waits) &&
	       !wakescope_is_over(begin, HOLD_NS, &turns, injector->hold_turns_max))
		;
	begin = ktime_get_ns();
	turns = 0;
	while (READ_ONCE(injector->waits) &&
	       !wakescope_is_over(begin, length, &turns, injector->turns_max))
		;
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
	raw_spin_unlock(&injector->others_lock);
	section->begin_ns = begin;
	section->end_cpu = raw_smp_processor_id();
	/* The other CPU may have given up, if this one was held up itself. */
	if (section->end_ns - begin < injector->asked.length_ns)
		section->flags |= WAKESCOPE_SECTION_CUT;
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
};

static bool wakescope_has_points(u32 kind)
{
	return kind == WAKESCOPE_LOOP_RESCHED ||
	       kind == WAKESCOPE_LOOP_LOCK_BREAK || kind == WAKESCOPE_LOOP_RESTART;
}

static bool wakescope_needs_other(u32 kind)
{
	return kind == WAKESCOPE_LOCK_WAIT || kind == WAKESCOPE_LOCK_WAIT_IRQS_OFF;
}

static bool wakescope_is_sane(const struct wakescope_injection *asked)
{
	u64 length = asked->length_ns, interval = asked->interval_ns;

	if (asked->version != WAKESCOPE_INJECT_VERSION)
		return false;
	if (!asked->kind || asked->kind >= WAKESCOPE_KINDS)
		return false;
	if (length < WAKESCOPE_SECTION_MIN_NS || length > WAKESCOPE_SECTION_MAX_NS)
		return false;
	if (!asked->count || asked->count > WAKESCOPE_COUNT_MAX)
		return false;
	if (asked->every > WAKESCOPE_EVERY_MAX ||
	    wakescope_has_points(asked->kind) != !!asked->every)
		return false;
	if (asked->again > WAKESCOPE_AGAIN_MAX || asked->reserved ||
	    (asked->again && asked->kind != WAKESCOPE_LOOP_RESTART))
		return false;
	if (asked->count == 1)
		return !interval;
	return interval >= WAKESCOPE_INJECT_SHARE * length &&
	       interval <= WAKESCOPE_INTERVAL_MAX_NS;
}

/* Adds what was made to the ring. */
static void wakescope_publish(struct injector *injector)
{
	struct wakescope_section *section = &injector->section;
	struct wakescope_ring *ring = injector->ring;
	u64 number = ++injector->made;
	struct wakescope_section *entry;

	entry = &ring->sections[(number - 1) % WAKESCOPE_RING_SECTIONS];
	section->sequence = 0;
	WRITE_ONCE(entry->sequence, 0);
	/* A reader that sees any of the new entry sees that it is written. */
	smp_wmb();
	*entry = *section;
	/* One that sees its number sees all of it. */
	smp_wmb();
	WRITE_ONCE(entry->sequence, number);
	if (number > WAKESCOPE_RING_SECTIONS)
		WRITE_ONCE(ring->overwritten, number - WAKESCOPE_RING_SECTIONS);
	/* One that sees how many there are sees the last of them. */
	smp_wmb();
	WRITE_ONCE(ring->written, number);
}

/* Whether the section may begin on a CPU now; if not, when to try again. */
static bool wakescope_may_begin(unsigned int cpu, u64 length, u64 *retry)
{
	atomic64_t *until = per_cpu_ptr(&left_alone_until, cpu);
	s64 seen = atomic64_read(until), now = ktime_get_ns();

	*retry = seen;
	if (seen > now)
		return false;
	/* If somebody else was faster, the next try says until when. */
	return atomic64_try_cmpxchg(until, &seen,
				    now + WAKESCOPE_INJECT_SHARE * length);
}

/* Sleeps until @when, or less long if it is to stop. */
static bool wakescope_sleep_until(struct injector *injector, u64 when)
{
	s64 left = when - ktime_get_ns();

	if (left > 0)
		wait_event_interruptible_hrtimeout(injector->stop,
						   READ_ONCE(injector->stopping),
						   ns_to_ktime(left));
	return !READ_ONCE(injector->stopping) && !signal_pending(current);
}

/* Chooses a CPU to hold a lock that this one waits for, if there is another. */
static bool wakescope_find_other(struct injector *injector)
{
	injector->other = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	return injector->other < nr_cpu_ids;
}

static void wakescope_make_section(struct injector *injector)
{
	const struct wakescope_injection *asked = &injector->asked;

	injector->section = (struct wakescope_section){
		.kind = asked->kind,
		.length_ns = asked->length_ns,
	};
	reinit_completion(&injector->done);
	reinit_completion(&injector->held);
	kinds[asked->kind](injector);
	wakescope_publish(injector);
}

/* Makes the sections that are asked for; how many. */
static int wakescope_make_sections(struct injector *injector)
{
	const struct wakescope_injection *asked = &injector->asked;
	struct rnd_state chance;
	u64 next = 0, retry;
	int made = 0;

	prandom_seed_state(&chance, asked->seed);
	while (made < (int)asked->count && wakescope_sleep_until(injector, next)) {
		if (!wakescope_may_begin(raw_smp_processor_id(), asked->length_ns, &retry)) {
			next = retry;
			continue;
		}
		if (wakescope_needs_other(asked->kind)) {
			if (!wakescope_find_other(injector))
				break;
			if (!wakescope_may_begin(injector->other, asked->length_ns, &retry)) {
				next = retry;
				continue;
			}
		}
		next = ktime_get_ns() + asked->interval_ns / 2 +
		       mul_u64_u32_shr(asked->interval_ns,
				       prandom_u32_state(&chance), 32);
		wakescope_make_section(injector);
		made++;
	}
	return made;
}

static long wakescope_ioctl(struct file *file, unsigned int request,
			    unsigned long argument)
{
	struct injector *injector = file->private_data;
	struct wakescope_injection asked;
	int made;

	if (request != WAKESCOPE_IOC_INJECT)
		return -ENOTTY;
	/* The file may have been handed to somebody else. */
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (copy_from_user(&asked, (void __user *)argument, sizeof(asked)))
		return -EFAULT;
	if (!wakescope_is_sane(&asked))
		return -EINVAL;
	if (wakescope_needs_other(asked.kind) && num_online_cpus() < 2)
		return -ENODEV;
	if (!mutex_trylock(&injector->running))
		return -EBUSY;
	injector->asked = asked;
	injector->turns_max = TURNS_MARGIN * turns_per_us *
			      DIV_ROUND_UP_ULL(asked.length_ns, NSEC_PER_USEC);
	injector->hold_turns_max = TURNS_MARGIN * turns_per_us * (HOLD_NS / NSEC_PER_USEC);
	WRITE_ONCE(injector->stopping, false);
	WRITE_ONCE(injector->owner, current->files);
	made = wakescope_make_sections(injector);
	WRITE_ONCE(injector->owner, NULL);
	mutex_unlock(&injector->running);
	return made ?: -EINTR;
}

/* A process closes the file, or dies. Others may still have it open. */
static int wakescope_flush(struct file *file, fl_owner_t id)
{
	struct injector *injector = file->private_data;

	if (READ_ONCE(injector->owner) == id) {
		WRITE_ONCE(injector->stopping, true);
		wake_up(&injector->stop);
	}
	return 0;
}

static int wakescope_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct injector *injector = file->private_data;

	if (vma->vm_flags & VM_WRITE)
		return -EPERM;
	vm_flags_clear(vma, VM_MAYWRITE);
	return remap_vmalloc_range(vma, injector->ring, vma->vm_pgoff);
}

static int wakescope_open(struct inode *inode, struct file *file)
{
	struct injector *injector;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (atomic_inc_return(&files) > FILES_MAX) {
		atomic_dec(&files);
		return -EMFILE;
	}
	injector = kzalloc(sizeof(*injector), GFP_KERNEL);
	if (injector)
		injector->ring = vmalloc_user(PAGE_ALIGN(sizeof(*injector->ring)));
	if (!injector || !injector->ring) {
		kfree(injector);
		atomic_dec(&files);
		return -ENOMEM;
	}
	mutex_init(&injector->running);
	init_waitqueue_head(&injector->stop);
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
	file->private_data = injector;
	return nonseekable_open(inode, file);
}

/* All sections are over, but what made the last one may still be returning. */
static int wakescope_release(struct inode *inode, struct file *file)
{
	struct injector *injector = file->private_data;

	tasklet_kill(&injector->tasklet);
	timer_delete_sync(&injector->timer);
	hrtimer_cancel(&injector->hrtimer);
	irq_work_sync(&injector->irq_work);
	cancel_work_sync(&injector->work);
	cancel_work_sync(&injector->hold);
	vfree(injector->ring);
	kfree(injector);
	atomic_dec(&files);
	return 0;
}

static const struct file_operations wakescope_operations = {
	.owner = THIS_MODULE,
	.open = wakescope_open,
	.flush = wakescope_flush,
	.release = wakescope_release,
	.mmap = wakescope_mmap,
	.unlocked_ioctl = wakescope_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice wakescope_inject_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "wakescope-inject",
	.fops = &wakescope_operations,
	.mode = 0600,
};

/* The most turns of several tries: others may have been held up. */
static u64 wakescope_calibrate(void)
{
	u64 most = 0, begin, turns;
	int i;

	for (i = 0; i < CALIBRATIONS; i++) {
		begin = ktime_get_ns();
		for (turns = 0; turns < CALIBRATION_TURNS_MAX; turns++) {
			cpu_relax();
			if (ktime_get_ns() - begin >= CALIBRATION_NS)
				break;
		}
		most = max(most, turns);
	}
	return div_u64(most, CALIBRATION_NS / NSEC_PER_USEC) + 1;
}

int wakescope_inject_init(void)
{
	turns_per_us = wakescope_calibrate();
	return misc_register(&wakescope_inject_device);
}

void wakescope_inject_exit(void)
{
	misc_deregister(&wakescope_inject_device);
}
