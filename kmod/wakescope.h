/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What /dev/wakescope and its readers agree on.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC, so that a reader compares them
 * with its own clock_gettime(2).
 */
#ifndef _WAKESCOPE_H
#define _WAKESCOPE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Changes when anything below does. */
#define WAKESCOPE_VERSION 1

/* The shortest and the longest period, and the period unless one is set. */
#define WAKESCOPE_PERIOD_MIN_NS 50000ULL
#define WAKESCOPE_PERIOD_MAX_NS 3600000000000ULL
#define WAKESCOPE_PERIOD_NS 10000000ULL

/**
 * struct wakescope_grid - when the timer of an open file expires
 * @first_ns: the first expiry, at most WAKESCOPE_PERIOD_MAX_NS from now in
 *	either direction; 0 for a period from now
 * @period_ns: from one expiry to the next
 */
struct wakescope_grid {
	__u64 first_ns;
	__u64 period_ns;
};

/**
 * struct wakescope_wakeup - what read(2) returns, one at a time
 * @due_ns: when the timer was due, for the first expiry that no read has
 *	returned yet
 * @function_ns: when the timer's function ran for that expiry, which wakes the
 *	reader
 * @awake_ns: when the reader ran, still in the kernel
 * @expiries: expiries up to then that no read has returned yet, this one
 *	included
 * @timer_cpu: the CPU that ran the timer's function
 * @slept: 1 if the reader waited for this expiry, 0 if it had come before
 */
struct wakescope_wakeup {
	__u64 due_ns;
	__u64 function_ns;
	__u64 awake_ns;
	__u64 expiries;
	__u32 timer_cpu;
	__u32 slept;
};

#define WAKESCOPE_IOC_TYPE 0xBC

/* Stores WAKESCOPE_VERSION of the module. */
#define WAKESCOPE_IOC_VERSION _IOR(WAKESCOPE_IOC_TYPE, 0, __u32)
/* Starts the timer on the CPU of the caller, in place of the one before. */
#define WAKESCOPE_IOC_START _IOW(WAKESCOPE_IOC_TYPE, 1, struct wakescope_grid)
/* Stops the timer, and forgets expiries that no read has returned. */
#define WAKESCOPE_IOC_STOP _IO(WAKESCOPE_IOC_TYPE, 2)

#endif /* _WAKESCOPE_H */
