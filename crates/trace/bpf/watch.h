/* SPDX-License-Identifier: GPL-2.0 */
/* What the program and the loader of `watch` share: src/watch/layout.rs has the same. */
#pragma once

#include "kernel.h"

/* Each octave is divided by this many bits; the first begins at 2^LEAST_OCTAVE ns. */
#define OCTAVE_BITS 4
#define LEAST_OCTAVE 7
#define END_OCTAVE 34
#define BUCKETS (((END_OCTAVE - LEAST_OCTAVE) << OCTAVE_BITS) + 2)

/* The row of all that have none of their own. */
#define OTHERS 0
#define NO_ROW (~0U)

/* What a kernel may lack. */
#define LACKS_SCHED_INFO 1
#define LACKS_QUEUE 2

/* The state of a task that is switched away from for ever: include/linux/sched.h, 4.14 to 7.2. */
#define TASK_DEAD 0x80

/*
 * The waits of a series, on all CPUs. Their count is that of all buckets. The loader clears `used` before it
 * gives the row to another series.
 */
struct waits_row {
	u64 sum;
	u64 used;
	u64 cgroup;
	u64 comm[2];
	u64 buckets[BUCKETS];
};

/* The waits that ended on a CPU, its switches, and the number of the task that runs there. */
struct cpu_row {
	u64 switches;
	u64 runs;
	u64 count;
	u64 sum;
	u64 max;
	u64 buckets[BUCKETS];
};

/* What was counted of a task, beside what the kernel itself has counted of it. */
struct task_books {
	/* What the kernel has counted once the task runs: its waits, ns, and how often it began to run. */
	u64 run_delay;
	u64 arrivals;
	/* What of this is not in `sum` and `count`, for it was before the first switch that was seen. */
	u64 run_delay_before;
	u64 arrivals_before;
	u64 count;
	u64 sum;
	/* The one that it was counted in last; by now it may be another's. */
	u32 row;
	/* How often it began to run since without a stamp. */
	u32 unstamped;
};

/* What is not in the sums, or not as it should be. */
struct watch_counts {
	/* Tasks began to run that nothing marked as waiting. */
	u64 unstamped;
	/* The clock was before the stamp. */
	u64 discarded;
	/* Tasks found no place: of a wait that was moved only the last part is counted. */
	u64 untracked;
	/* The first waits of tasks that had run before. What they lasted in another queue is not known. */
	u64 first;
	/* No program was told of the switch to a task, but its wait is counted all the same. */
	u64 caught_up;
	/* The kernel has counted waits that no program saw. */
	u64 missed;
	u64 missed_ns;
	/* Waits that began in another queue, and what they waited there. */
	u64 moved;
	u64 moved_ns;
	/* The kernel has counted less than was counted here. */
	u64 contradicted;
};
