/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What /dev/wakescope-inject and its users agree on.
 *
 * A user asks for sections of kernel code that hold its CPU up in a known way,
 * and maps a ring in which it finds when each of them began and ended.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC, the clock of the tracer's
 * bpf_ktime_get_ns().
 */
#ifndef _WAKESCOPE_INJECT_H
#define _WAKESCOPE_INJECT_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Changes when anything below does. */
#define WAKESCOPE_INJECT_VERSION 5

/* The shortest and the longest section. */
#define WAKESCOPE_SECTION_MIN_NS 1000ULL
#define WAKESCOPE_SECTION_MAX_NS 100000000ULL

/*
 * How long another CPU holds a lock, at most, until this one comes to wait for
 * it. Waits for locks are at most WAKESCOPE_SECTION_MAX_NS less this long.
 */
#define WAKESCOPE_HOLD_MAX_NS 1000000ULL

/*
 * Sections take at most one part in so many of a CPU's time, whoever asks for
 * them: a CPU that had one is left alone before the next. A CPU that holds a
 * lock is left alone for as long as if it had held it for WAKESCOPE_HOLD_MAX_NS
 * and the length.
 */
#define WAKESCOPE_INJECT_SHARE 4

#define WAKESCOPE_INTERVAL_MAX_NS 10000000000ULL
#define WAKESCOPE_COUNT_MAX 1000000U
#define WAKESCOPE_EVERY_MAX 10000000U
#define WAKESCOPE_AGAIN_MAX 10000000U

/* What a section is. Each is made by a function wakescope_inject_<kind>. */
enum wakescope_kind {
	/* Interrupts are off. */
	WAKESCOPE_IRQS_OFF = 1,
	/* Preemption is off. */
	WAKESCOPE_PREEMPT_OFF,
	/* A spin lock is held. With PREEMPT_RT, one that can be preempted. */
	WAKESCOPE_SPIN_LOCK,
	/* A raw spin lock is held: preemption is off, also with PREEMPT_RT. */
	WAKESCOPE_RAW_SPIN_LOCK,
	/* Softirqs are off. With PREEMPT_RT, tasks can preempt it. */
	WAKESCOPE_BH_OFF,
	/* In a read-side section of RCU, which PREEMPT_RCU can preempt. */
	WAKESCOPE_RCU_READ,
	/*
	 * A tasklet, in the TASKLET softirq that runs where softirqs are
	 * enabled again. With PREEMPT_RT, tasks can preempt it.
	 */
	WAKESCOPE_TASKLET,
	/*
	 * A timer of the timer wheel, in the TIMER softirq. With PREEMPT_RT, a
	 * thread runs that.
	 */
	WAKESCOPE_TIMER,
	/* A function of an hrtimer, in the timer interrupt. */
	WAKESCOPE_HRTIMER,
	/* In an interrupt that the CPU sends itself (irq_work). */
	WAKESCOPE_IRQ_WORK,
	/* A work item of the system's workqueue, in one of its threads. */
	WAKESCOPE_WORK,
	/* A loop without a preemption point. */
	WAKESCOPE_LOOP,
	/* A loop with cond_resched() every so many turns. */
	WAKESCOPE_LOOP_RESCHED,
	/*
	 * A loop under a spin lock, which it gives up and takes again every so
	 * many turns.
	 */
	WAKESCOPE_LOOP_LOCK_BREAK,
	/*
	 * The same, but only if the CPU is to be given up, and what it went
	 * through may have changed meanwhile: it begins anew, and has to make
	 * some turns again until it is where it was.
	 */
	WAKESCOPE_LOOP_RESTART,
	/*
	 * Waits for a raw spin lock that another CPU holds. Preemption is off
	 * on both. Needs a second CPU: ENODEV.
	 */
	WAKESCOPE_LOCK_WAIT,
	/* The same with interrupts off where it waits. */
	WAKESCOPE_LOCK_WAIT_IRQS_OFF,
	/*
	 * In an NMI that the CPU sends itself, with preemption off until it has
	 * come. Only where the machine has one (x86 with a local APIC):
	 * EOPNOTSUPP.
	 */
	WAKESCOPE_NMI,
	WAKESCOPE_KINDS, /* one more than the last */
};

/*
 * How a section is paired with a second one. L is the length of both together.
 * Pairs are made of WAKESCOPE_IRQS_OFF and WAKESCOPE_PREEMPT_OFF, one each; the
 * second of a nested pair may also be an interrupt on top of the first:
 * WAKESCOPE_NMI, or WAKESCOPE_IRQ_WORK on top of WAKESCOPE_PREEMPT_OFF.
 */
enum wakescope_pairing {
	/* There is no second one. */
	WAKESCOPE_ALONE,
	/* The first takes L, and the second half of L in the middle of it. */
	WAKESCOPE_NESTED,
	/* Each takes two thirds of L, and the second ends a third of L later. */
	WAKESCOPE_OVERLAPPING,
	/* Each takes half of L, and the second begins where the first ends. */
	WAKESCOPE_BACK_TO_BACK,
	WAKESCOPE_PAIRINGS, /* one more than the last */
};

/**
 * struct wakescope_injection - which sections to make
 * @version: WAKESCOPE_INJECT_VERSION
 * @kind: an enum wakescope_kind
 * @length_ns: how long each is, or a pair as a whole
 * @interval_ns: from one to the next, on average: at least
 *	WAKESCOPE_INJECT_SHARE times @length_ns. Each is between half and one
 *	and a half times as long, by chance. Only if @count is above 1, and 0
 *	otherwise
 * @seed: of that chance
 * @count: how many; a pair counts as one, and is two entries of the ring, the
 *	first section before the second
 * @every: turns of a loop from one preemption point or break of the lock to the
 *	next; 0 for other kinds
 * @again: how many turns WAKESCOPE_LOOP_RESTART makes again after a break, up
 *	to WAKESCOPE_AGAIN_MAX; 0 for other kinds
 * @pairing: an enum wakescope_pairing
 * @second: the enum wakescope_kind of the second section; 0 if there is none
 * @reserved: 0
 */
struct wakescope_injection {
	__u32 version;
	__u32 kind;
	__u64 length_ns;
	__u64 interval_ns;
	__u64 seed;
	__u32 count;
	__u32 every;
	__u32 again;
	__u32 pairing;
	__u32 second;
	__u32 reserved;
};

/*
 * It ended early: the clock did not go on as it should have, the CPU that held a
 * lock gave it up before the other one had waited for so long, or the NMI did
 * not come.
 */
#define WAKESCOPE_SECTION_CUT 1U

/**
 * struct wakescope_section - one that was made
 * @sequence: its number, from 1 on; 0 while the kernel writes this entry
 * @begin_ns: the first thing in it
 * @end_ns: the last thing in it
 * @length_ns: how long it was to be
 * @turns: how often it read the clock; 0 where it waited for a lock
 * @work: how many of its turns it had not made before: what a loop got done
 * @cpu: where it began
 * @end_cpu: where it ended: a preempted one may have been migrated
 * @kind: an enum wakescope_kind
 * @flags: WAKESCOPE_SECTION_CUT, or 0
 */
struct wakescope_section {
	__u64 sequence;
	__u64 begin_ns;
	__u64 end_ns;
	__u64 length_ns;
	__u64 turns;
	__u64 work;
	__u32 cpu;
	__u32 end_cpu;
	__u32 kind;
	__u32 flags;
};

#define WAKESCOPE_RING_SECTIONS 4096U

/**
 * struct wakescope_ring - the sections of an open file, of which the oldest are
 *	overwritten
 * @written: how many were made; section N is in the entry
 *	(N - 1) % WAKESCOPE_RING_SECTIONS
 * @overwritten: how many of them are gone
 * @reserved: 0
 * @sections: a reader takes the @sequence of an entry before and after it reads
 *	it; both are N if it holds section N
 */
struct wakescope_ring {
	__u64 written;
	__u64 overwritten;
	__u64 reserved[6];
	struct wakescope_section sections[WAKESCOPE_RING_SECTIONS];
};

/*
 * Makes sections on the CPU of the caller, and returns when they are over: how
 * many were made. A signal ends it early, and so does a close(2) of the file by
 * the process of the caller.
 */
#define WAKESCOPE_IOC_INJECT _IOW(0xBC, 16, struct wakescope_injection)

#ifdef __KERNEL__
int wakescope_inject_init(void);
void wakescope_inject_exit(void);
#endif

#endif /* _WAKESCOPE_INJECT_H */
