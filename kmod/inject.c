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
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/prandom.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "compat.h"
#include "injector.h"

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

static atomic_t files = ATOMIC_INIT(0);

/* How often the clock can be read in a microsecond, at least. */
static u64 turns_per_us;

/* Until when a CPU is left alone. */
static DEFINE_PER_CPU(atomic64_t, left_alone_until);

static bool wakescope_has_points(u32 kind)
{
	return kind == WAKESCOPE_LOOP_RESCHED ||
	       kind == WAKESCOPE_LOOP_LOCK_BREAK || kind == WAKESCOPE_LOOP_RESTART;
}

static bool wakescope_needs_other(u32 kind)
{
	return kind == WAKESCOPE_LOCK_WAIT || kind == WAKESCOPE_LOCK_WAIT_IRQS_OFF;
}

/* How long a section holds a CPU up, at most. */
static u64 wakescope_holds(const struct wakescope_injection *asked)
{
	return asked->length_ns +
	       (wakescope_needs_other(asked->kind) ? WAKESCOPE_HOLD_MAX_NS : 0);
}

/* Whether two sections go together: see enum wakescope_pairing. */
static bool wakescope_is_pair(u32 first, u32 pairing, u32 second)
{
	if (pairing == WAKESCOPE_ALONE)
		return !second;
	if (pairing >= WAKESCOPE_PAIRINGS)
		return false;
	if (first == WAKESCOPE_IRQS_OFF)
		return second == WAKESCOPE_PREEMPT_OFF ||
		       (pairing == WAKESCOPE_NESTED && second == WAKESCOPE_NMI);
	return first == WAKESCOPE_PREEMPT_OFF &&
	       (second == WAKESCOPE_IRQS_OFF ||
		(pairing == WAKESCOPE_NESTED &&
		 (second == WAKESCOPE_IRQ_WORK || second == WAKESCOPE_NMI)));
}

static bool wakescope_is_sane(const struct wakescope_injection *asked)
{
	u64 length = asked->length_ns, interval = asked->interval_ns;

	if (asked->version != WAKESCOPE_INJECT_VERSION)
		return false;
	if (!asked->kind || asked->kind >= WAKESCOPE_KINDS)
		return false;
	if (length < WAKESCOPE_SECTION_MIN_NS || length > WAKESCOPE_SECTION_MAX_NS ||
	    wakescope_holds(asked) > WAKESCOPE_SECTION_MAX_NS)
		return false;
	if (!asked->count || asked->count > WAKESCOPE_COUNT_MAX)
		return false;
	if (asked->every > WAKESCOPE_EVERY_MAX ||
	    wakescope_has_points(asked->kind) != !!asked->every)
		return false;
	if (asked->again > WAKESCOPE_AGAIN_MAX || asked->reserved ||
	    (asked->again && asked->kind != WAKESCOPE_LOOP_RESTART))
		return false;
	if (!wakescope_is_pair(asked->kind, asked->pairing, asked->second))
		return false;
	if (asked->count == 1)
		return !interval;
	return interval >= WAKESCOPE_INJECT_SHARE * length &&
	       interval <= WAKESCOPE_INTERVAL_MAX_NS;
}

/* Adds a section that was made to the ring. */
static void wakescope_publish(struct injector *injector, struct wakescope_section *section)
{
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

/* Whether a CPU may be held up now; if not, when to try again. */
static bool wakescope_is_free(unsigned int cpu, u64 *retry)
{
	*retry = atomic64_read(per_cpu_ptr(&left_alone_until, cpu));
	return (s64)*retry <= (s64)ktime_get_ns();
}

/* The same, and nobody else may hold it up for as long as its share takes. */
static bool wakescope_reserve(unsigned int cpu, u64 length, u64 *retry)
{
	atomic64_t *until = per_cpu_ptr(&left_alone_until, cpu);
	s64 seen;

	if (!wakescope_is_free(cpu, retry))
		return false;
	seen = *retry;
	/* If somebody else was faster, the next try says until when. */
	return atomic64_try_cmpxchg(until, &seen, ktime_get_ns() +
				    WAKESCOPE_INJECT_SHARE * length);
}

/*
 * Whether a section may begin now on all CPUs that it holds up; if not, when to
 * try again. The other CPU is looked at first: this one would be reserved for
 * nothing if the other one is not free.
 */
static bool wakescope_may_begin(const struct injector *injector, u64 *retry)
{
	const struct wakescope_injection *asked = &injector->asked;
	unsigned int cpu = raw_smp_processor_id();

	if (!wakescope_needs_other(asked->kind))
		return wakescope_reserve(cpu, asked->length_ns, retry);
	return wakescope_is_free(injector->other, retry) &&
	       wakescope_reserve(cpu, asked->length_ns, retry) &&
	       wakescope_reserve(injector->other, wakescope_holds(asked), retry);
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

/*
 * Chooses the CPU that holds the lock, if there is another one: the next one, so
 * that not all callers choose the same.
 */
static bool wakescope_find_other(struct injector *injector)
{
	unsigned int cpu = raw_smp_processor_id();

	injector->other = cpumask_next(cpu, cpu_online_mask);
	if (injector->other >= nr_cpu_ids)
		injector->other = cpumask_first(cpu_online_mask);
	return injector->other != cpu;
}

static void wakescope_make_section(struct injector *injector)
{
	const struct wakescope_injection *asked = &injector->asked;

	injector->section = (struct wakescope_section){
		.kind = asked->kind,
		.length_ns = asked->length_ns,
	};
	injector->second = (struct wakescope_section){ .kind = asked->second };
	wakescope_section_make(injector);
	wakescope_publish(injector, &injector->section);
	if (asked->pairing)
		wakescope_publish(injector, &injector->second);
}

/* Makes the sections that are asked for; how many, or an error before the first. */
static int wakescope_make_sections(struct injector *injector)
{
	const struct wakescope_injection *asked = &injector->asked;
	struct rnd_state chance;
	u64 next = 0, retry;
	int made = 0;

	prandom_seed_state(&chance, asked->seed);
	while (made < (int)asked->count && wakescope_sleep_until(injector, next)) {
		/* The other CPUs may have gone offline meanwhile. */
		if (wakescope_needs_other(asked->kind) && !wakescope_find_other(injector))
			return made ?: -ENODEV;
		if (!wakescope_may_begin(injector, &retry)) {
			next = retry;
			continue;
		}
		next = ktime_get_ns() + asked->interval_ns / 2 +
		       mul_u64_u32_shr(asked->interval_ns,
				       prandom_u32_state(&chance), 32);
		wakescope_make_section(injector);
		made++;
	}
	return made ?: -EINTR;
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
	if ((asked.kind == WAKESCOPE_NMI || asked.second == WAKESCOPE_NMI) && !wakescope_has_nmi())
		return -EOPNOTSUPP;
	if (!mutex_trylock(&injector->running))
		return -EBUSY;
	injector->asked = asked;
	injector->turns_max = TURNS_MARGIN * turns_per_us *
			      DIV_ROUND_UP_ULL(asked.length_ns, NSEC_PER_USEC);
	injector->hold_turns_max = TURNS_MARGIN * turns_per_us *
				   (WAKESCOPE_HOLD_MAX_NS / NSEC_PER_USEC);
	WRITE_ONCE(injector->stopping, false);
	WRITE_ONCE(injector->owner, current->files);
	made = wakescope_make_sections(injector);
	WRITE_ONCE(injector->owner, NULL);
	mutex_unlock(&injector->running);
	return made;
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
	wakescope_section_init(injector);
	file->private_data = injector;
	return nonseekable_open(inode, file);
}

static int wakescope_release(struct inode *inode, struct file *file)
{
	struct injector *injector = file->private_data;

	wakescope_section_exit(injector);
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
	int error = wakescope_nmi_init();

	if (error)
		return error;
	turns_per_us = wakescope_calibrate();
	error = misc_register(&wakescope_inject_device);
	if (error)
		wakescope_nmi_exit();
	return error;
}

void wakescope_inject_exit(void)
{
	misc_deregister(&wakescope_inject_device);
	wakescope_nmi_exit();
}
