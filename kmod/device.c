// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/wakescope: a timer per open file that wakes whoever reads the file, and
 * tells the reader when the timer was due, when its function ran, and when the
 * reader ran.
 *
 * The timer expires in hard interrupt context, also with PREEMPT_RT, so that
 * no other thread lies between the interrupt and the reader. So all that the
 * timer's function touches is protected by a raw spin lock, readers wait in a
 * simple wait queue, and poll(2), whose wait queues have sleeping locks with
 * PREEMPT_RT, is served through irq_work.
 */
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/swait.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "inject.h"
#include "wakescope.h"

/* Each has a timer that interrupts. */
#define FILES_MAX 256

/* A timer that nobody reads rests after so many expiries. */
#define UNREAD_MAX 1000

static atomic_t files = ATOMIC_INIT(0);

/**
 * struct waker - what belongs to an open file
 * @timer: expires on the grid
 * @lock: protects all that follows up to @readers
 * @period: of the grid
 * @running: whether the file has a grid
 * @resting: whether @timer waits for a reader before it goes on
 * @first: the first expiry that no read has returned; its @expiries is 0 if
 *	there is none
 * @readers: wait for expiries
 * @pollers: wait for expiries in poll(2)
 * @poll_work: wakes @pollers
 * @starting: only one caller at a time starts or stops the timer
 */
struct waker {
	struct hrtimer timer;
	raw_spinlock_t lock;
	ktime_t period;
	bool running;
	bool resting;
	struct wakescope_wakeup first;
	struct swait_queue_head readers;
	wait_queue_head_t pollers;
	struct irq_work poll_work;
	struct mutex starting; /* of the timer, and stopping it */
};

static enum hrtimer_restart wakescope_expire(struct hrtimer *timer)
{
	struct waker *waker = container_of(timer, struct waker, timer);
	struct wakescope_wakeup *first = &waker->first;
	ktime_t now = ktime_get();
	bool rest;

	raw_spin_lock(&waker->lock);
	if (!first->expiries) {
		first->due_ns = ktime_to_ns(hrtimer_get_expires(timer));
		first->function_ns = ktime_to_ns(now);
		first->timer_cpu = raw_smp_processor_id();
	}
	first->expiries += hrtimer_forward(timer, now, waker->period);
	rest = first->expiries >= UNREAD_MAX;
	waker->resting = rest;
	raw_spin_unlock(&waker->lock);

	swake_up_one(&waker->readers);
	if (wq_has_sleeper(&waker->pollers))
		irq_work_queue(&waker->poll_work);
	return rest ? HRTIMER_NORESTART : HRTIMER_RESTART;
}

static void wakescope_poll_work(struct irq_work *work)
{
	struct waker *waker = container_of(work, struct waker, poll_work);

	wake_up_interruptible_poll(&waker->pollers, EPOLLIN | EPOLLRDNORM);
}

/* Nothing runs for this file when it returns. Called with @starting held. */
static void wakescope_stop(struct waker *waker)
{
	raw_spin_lock_irq(&waker->lock);
	/* From here on no reader starts a timer that rests. */
	waker->running = false;
	raw_spin_unlock_irq(&waker->lock);
	hrtimer_cancel(&waker->timer);
	raw_spin_lock_irq(&waker->lock);
	waker->resting = false;
	waker->first.expiries = 0;
	raw_spin_unlock_irq(&waker->lock);
}

static void wakescope_start(struct waker *waker, ktime_t first, ktime_t period)
{
	wakescope_stop(waker);
	raw_spin_lock_irq(&waker->lock);
	waker->period = period;
	waker->running = true;
	raw_spin_unlock_irq(&waker->lock);
	hrtimer_start(&waker->timer, first, HRTIMER_MODE_ABS_PINNED_HARD);
}

/* A file that nobody has given a grid gets the usual one at its first use. */
static int wakescope_start_once(struct waker *waker)
{
	ktime_t period = ns_to_ktime(WAKESCOPE_PERIOD_NS);

	if (READ_ONCE(waker->running))
		return 0;
	if (mutex_lock_interruptible(&waker->starting))
		return -ERESTARTSYS;
	if (!waker->running)
		wakescope_start(waker, ktime_add(ktime_get(), period), period);
	mutex_unlock(&waker->starting);
	return 0;
}

/* Takes the expiries that no read has returned; whether there are any. */
static bool wakescope_take(struct waker *waker, struct wakescope_wakeup *wakeup)
{
	struct hrtimer *timer = &waker->timer;
	ktime_t now;

	raw_spin_lock_irq(&waker->lock);
	now = ktime_get();
	*wakeup = waker->first;
	wakeup->awake_ns = ktime_to_ns(now);
	waker->first.expiries = 0;
	if (waker->resting && waker->running) {
		/* Those that it has slept through count, too. */
		wakeup->expiries += hrtimer_forward(timer, now, waker->period);
		waker->resting = false;
		hrtimer_start_expires(timer, HRTIMER_MODE_ABS_PINNED_HARD);
	}
	raw_spin_unlock_irq(&waker->lock);
	return wakeup->expiries;
}

static int wakescope_wait(struct waker *waker)
{
	u64 *expiries = &waker->first.expiries;

	return swait_event_interruptible_exclusive(waker->readers,
						   READ_ONCE(*expiries));
}

static ssize_t wakescope_read(struct file *file, char __user *buffer,
			      size_t length, loff_t *offset)
{
	struct waker *waker = file->private_data;
	struct wakescope_wakeup wakeup;
	bool slept = false;
	int error;

	if (length < sizeof(wakeup))
		return -EINVAL;
	error = wakescope_start_once(waker);
	if (error)
		return error;
	/* Another reader may take what this one was woken for. */
	while (!wakescope_take(waker, &wakeup)) {
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		error = wakescope_wait(waker);
		if (error)
			return error;
		slept = true;
	}
	wakeup.slept = slept;
	if (copy_to_user(buffer, &wakeup, sizeof(wakeup)))
		return -EFAULT;
	return sizeof(wakeup);
}

static __poll_t wakescope_poll(struct file *file, poll_table *wait)
{
	struct waker *waker = file->private_data;

	if (wakescope_start_once(waker))
		return EPOLLERR;
	poll_wait(file, &waker->pollers, wait);
	/* Pairs with wq_has_sleeper() in wakescope_expire(). */
	smp_mb();
	return READ_ONCE(waker->first.expiries) ? EPOLLIN | EPOLLRDNORM : 0;
}

static int wakescope_set_grid(struct waker *waker,
			      const struct wakescope_grid *grid)
{
	u64 now = ktime_get_ns();
	u64 first = grid->first_ns ?: now + grid->period_ns;

	if (grid->period_ns < WAKESCOPE_PERIOD_MIN_NS ||
	    grid->period_ns > WAKESCOPE_PERIOD_MAX_NS)
		return -EINVAL;
	if (first > now + WAKESCOPE_PERIOD_MAX_NS ||
	    first + WAKESCOPE_PERIOD_MAX_NS < now)
		return -EINVAL;
	if (mutex_lock_interruptible(&waker->starting))
		return -ERESTARTSYS;
	wakescope_start(waker, ns_to_ktime(first), ns_to_ktime(grid->period_ns));
	mutex_unlock(&waker->starting);
	return 0;
}

static long wakescope_ioctl(struct file *file, unsigned int request,
			    unsigned long argument)
{
	struct waker *waker = file->private_data;
	void __user *user = (void __user *)argument;
	struct wakescope_grid grid;

	switch (request) {
	case WAKESCOPE_IOC_VERSION:
		return put_user(WAKESCOPE_VERSION, (u32 __user *)user);
	case WAKESCOPE_IOC_START:
		if (copy_from_user(&grid, user, sizeof(grid)))
			return -EFAULT;
		return wakescope_set_grid(waker, &grid);
	case WAKESCOPE_IOC_STOP:
		if (mutex_lock_interruptible(&waker->starting))
			return -ERESTARTSYS;
		wakescope_stop(waker);
		mutex_unlock(&waker->starting);
		return 0;
	default:
		return -ENOTTY;
	}
}

static int wakescope_open(struct inode *inode, struct file *file)
{
	struct waker *waker;

	if (atomic_inc_return(&files) > FILES_MAX) {
		atomic_dec(&files);
		return -EMFILE;
	}
	waker = kzalloc(sizeof(*waker), GFP_KERNEL);
	if (!waker) {
		atomic_dec(&files);
		return -ENOMEM;
	}
	hrtimer_setup(&waker->timer, wakescope_expire, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED_HARD);
	raw_spin_lock_init(&waker->lock);
	mutex_init(&waker->starting);
	init_swait_queue_head(&waker->readers);
	init_waitqueue_head(&waker->pollers);
	init_irq_work(&waker->poll_work, wakescope_poll_work);
	file->private_data = waker;
	return stream_open(inode, file);
}

/* Nobody uses the file any more: the kernel calls this once all have let go. */
static int wakescope_release(struct inode *inode, struct file *file)
{
	struct waker *waker = file->private_data;

	wakescope_stop(waker);
	irq_work_sync(&waker->poll_work);
	kfree(waker);
	atomic_dec(&files);
	return 0;
}

static const struct file_operations wakescope_operations = {
	.owner = THIS_MODULE,
	.open = wakescope_open,
	.release = wakescope_release,
	.read = wakescope_read,
	.poll = wakescope_poll,
	.unlocked_ioctl = wakescope_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice wakescope_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "wakescope",
	.fops = &wakescope_operations,
	.mode = 0600,
};

static bool inject;
module_param(inject, bool, 0444);
MODULE_PARM_DESC(inject, "Whether root may hold CPUs up, by /dev/wakescope-inject");

static int __init wakescope_init(void)
{
	int error = misc_register(&wakescope_device);

	if (error || !inject)
		return error;
	error = wakescope_inject_init();
	if (error)
		misc_deregister(&wakescope_device);
	return error;
}

static void __exit wakescope_exit(void)
{
	if (inject)
		wakescope_inject_exit();
	misc_deregister(&wakescope_device);
}

module_init(wakescope_init);
module_exit(wakescope_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A timer that wakes its reader and says when it was due");
MODULE_AUTHOR("the wakescope developers");
