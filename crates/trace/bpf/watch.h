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
/* What episodes alone need: without it, what interrupts, the hypervisor or a quota took is not measured. */
#define LACKS_IRQ_TIME 4
#define LACKS_STEAL_TIME 8
#define LACKS_THROTTLED_TIME 16
/* Before 6.12: tasks that sleep, and are still in a queue. */
#define LACKS_SLEEP_IN_QUEUES 32

/* The state of a task that is switched away from for ever: include/linux/sched.h, 4.14 to 7.2. */
#define TASK_DEAD 0x80

/* The longest and the shortest wait since they were read. The latter has all bits inverted, so that 0 is none. */
struct extremes {
	u64 max;
	u64 inverted_min;
};

/*
 * The waits of a series, on all CPUs. Their count is that of all buckets. `generation` is odd while it
 * counts those of a series: the program adds 1 when it gives the row to one. The loader takes that back, so that
 * nobody finds the row, and later adds 2 before another may have it. So a row and a generation are of one series.
 */
struct waits_row {
	u64 sum;
	u64 generation;
	u64 cgroup;
	u64 comm[2];
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
	/*
	 * When it began to run last, and from 6.18 on, when a quota stopped it: its queue, how long that had been
	 * stopped, and how often the task had slept.
	 */
	u64 queue;
	u64 throttled;
	u64 sleeps;
	/* How often it had been moved when that was seen last, plus 1: see `moves_of`. */
	u64 moves;
	/* Whose books these are: where its `task_struct` is, and its number, which is 0 if they are nobody's. */
	u64 task;
	u32 pid;
	/* From 6.18 on: how often it had begun to run when a quota stopped it last, or may have; then `queue` is 0. */
	u32 stopped_after;
};

/* What of a time is known to be so, and what may be, ns. */
struct bounds {
	u64 least;
	u64 most;
};

/* Of a wait, so many stays in queues of other CPUs are noted. The time of further ones is nobody's. */
#define STAYS 2

/* A wait in the queue of a CPU that ended there because the task was moved to another one. */
struct stay {
	/* How long it was; 0 if none is noted here. */
	u64 ns;
	/* When the task was moved: as in `struct turn`, of this CPU. */
	u64 clock;
	u64 lost;
	u64 steal;
	/* What a quota took of it. */
	u64 throttled;
	/* How many turns of this CPU had begun. */
	u64 turns;
	u32 cpu;
	u32 unused;
};

/* Where a task that waits was before. */
struct stays {
	/* What the kernel had counted of its waits when it was moved the last time while it waited, ns. */
	u64 run_delay;
	/* How often the kernel had moved it after the last move that was seen. */
	u64 moves;
	struct stay each[STAYS];
};

/* The turns that are kept with a long wait: the loader may find those before them in the ring of the CPU. */
#define KEPT_TURNS 64
/* The longest waits that are kept of each CPU until they are read. */
#define LONGEST 2
/* They are read from one bank while the program writes to the other. */
#define BANKS 2

/* Whose waits are counted together. */
struct series {
	u64 cgroup;
	u64 comm[2];
};

/* From when on a task has run, until the turn behind begins. */
struct turn {
	/* By the clock of the run queue. */
	u64 clock;
	/* What of that clock interrupts and the hypervisor took so far, and what the latter. */
	u64 lost;
	u64 steal;
	/* The row of the task's series, and in the upper half the generation of that: 0 if it is not known who runs. */
	u64 tenure;
	u32 pid;
	s16 prio;
	u16 policy;
};

/* A long wait, and whose turns there were on its CPU. */
struct long_wait {
	/* Odd while it is written. */
	u64 version;
	/* What the loader had asked for: one that is written only after it has read this bank is of no later reading. */
	u64 asked;
	/* The wait, and what of it was in the queue of this CPU. */
	u64 ns;
	u64 here;
	/* When it ended, by the monotonic clock. */
	u64 at;
	/* What a quota took of it in the queue of this CPU. */
	struct bounds quota;
	struct series whose;
	/* What of it was in queues of other CPUs before, as far as that is known. */
	struct stay stays[STAYS];
	/* The number of the turn that ended it, which is the first one below. Those before it come behind. */
	u64 turn;
	struct turn turns[KEPT_TURNS];
};

/* What was counted on a CPU: the waits that ended there, and its switches. */
struct cpu_row {
	/* A turn begins at each, whose number is that of the switches before. */
	u64 switches;
	/* The number of the task that runs there. */
	u64 runs;
	u64 sum;
	struct extremes extremes;
	/* What interrupts took so far, ns: if it never changes, the kernel does not count it. */
	u64 irq;
	/* The same at the first turn, and when that began. */
	u64 first_irq;
	u64 first_clock;
	/* The loader counts this up when it reads; the program follows, and begins anew in the other bank. */
	u64 asked;
	u64 bank;
	/* Waits of LEAST_LONG and more, by the bank that was asked for. */
	u64 long_waits[BANKS];
	/* Only longer ones find a place in the bank. */
	u64 floor;
	u64 buckets[BUCKETS];
	struct long_wait longest[BANKS * LONGEST];
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
	/* The kernel did not report the switch to a task, and its wait is counted all the same. */
	u64 caught_up;
	/* The kernel has counted waits that no program saw. */
	u64 missed;
	u64 missed_ns;
	/* Waits that began in another queue, and what they waited there. */
	u64 moved;
	u64 moved_ns;
	/* The kernel has counted less than was counted here. */
	u64 contradicted;
	/* Waits that the kernel may have counted sleep as, and how long they are by its count. */
	u64 asleep;
	u64 asleep_ns;
};
