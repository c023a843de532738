/* SPDX-License-Identifier: GPL-2.0 */
/* What programs and the loader share: the same layouts are in src/shared.rs, and a test compares. */
#pragma once

#include "kernel.h"

/* What is not known of what the kernel counts. */
#define UNKNOWN (~0ULL)

/* Events that a CPU remembers, a power of two. */
#define RING 256
/*
 * Switches that a CPU remembers apart from these, a power of two: a few hundred ticks during one long wait
 * fill the ring, and would push out the one switch that says who had the CPU.
 */
#define SWITCHES 16
/* Events that may be counted as lost. */
#define MOST_LOST (~0U - SWITCHES)
/* Events that leave the kernel with a wakeup, if it saw no more than half of them; else all of the ring. */
#define EVENTS 64
/* Frames of a stack. */
#define FRAMES 32
/* Those of a program's own stack. */
#define USER_FRAMES 16

/* Bytes of the buffer of late wakeups for each CPU: 220 of them. */
#define RECORDS_PER_CPU (1 << 21)
/*
 * Eighths of that buffer. Before the loader has said what is late, every wakeup leaves the kernel until so many
 * are full. The loader reads it whenever a third may be: see crates/cli/src/explain/pace.rs.
 */
#define ROOM_FOR_ALL 6
/* From then on only those do that are late beside the worst so far, and the last part is kept for new worst ones. */
#define ROOM_FOR_LATE 7
/* Answers of a thread that are kept: pairs of when a wakeup was due, and when it was answered. */
#define ANSWERS 8
/* Pieces of a stack that are copied, and bytes of each, a power of two that divides a page. */
#define PIECES 16
#define PIECE 256
/* Stacks of which a CPU keeps copies, a power of two. Seldom does more than one late wakeup wait for it. */
#define COPIES 4
/* Longer than an instruction that enables interrupts, and the one after it that still waits. */
#define CODE 16
/* Tasks of which is known how long they ran on a CPU, a power of two. */
#define RUNNERS 8
/* All tasks, by what they are: ordinary ones, and those of a real-time or deadline policy or priority. */
#define ORDINARY 0
#define URGENT 1
#define RANKS 2

enum kind {
	/* A place where no event is. */
	NO_EVENT = 0,
	IRQ_ENTRY = 1,
	IRQ_EXIT,
	TIMER_ENTRY,
	TIMER_EXIT,
	SOFTIRQ_ENTRY,
	SOFTIRQ_EXIT,
	NMI,
	SWITCH,
	SCHED_ENTRY,
	CONTENTION_BEGIN,
	CONTENTION_END,
	/* A program of this tracer ends that took stacks, or handed a wakeup over. */
	TRACER,
	/* The thread that runs gives back a priority that it was lent. */
	DEBOOST,
};

/* Interrupts that have no line, and no name of their own. */
enum vector {
	/* It has a line. */
	NO_VECTOR = 0,
	LOCAL_TIMER = 1,
	RESCHEDULE,
	CALL_FUNCTION,
	CALL_FUNCTION_SINGLE,
	IRQ_WORK,
	IPI,
	THERMAL,
	THRESHOLD,
	DEFERRED_ERROR,
	ERROR,
	SPURIOUS,
	PLATFORM_IPI,
};

/* IRQ_ENTRY, and IRQ_EXIT without the name. */
struct irq {
	/* enum vector */
	u32 vector;
	/* The number of its line, if it has one. */
	u32 line;
	/* That of the line; of an IPI, its reason. Cut where it is longer. */
	char name[16];
};

/* TIMER_ENTRY */
struct timer {
	/* The address of what it calls. */
	u64 function;
	/* How many in a row call that. */
	u32 count;
	u32 pad;
};

/* SOFTIRQ_EXIT, and SOFTIRQ_ENTRY without `pending`. */
struct softirq {
	u32 number;
	/*
	 * SOFTIRQ_EXIT: whether more are pending, and the thread for these sleeps. The kernel makes it ready unless it
	 * goes on with another one at once.
	 */
	u32 pending;
};

/* NMI: one that has ended. */
struct nmi {
	/* The address of its handler. */
	u64 handler;
	/* How long it took. */
	u64 duration_ns;
};

/* A thread as the scheduler sees it: priorities are -2 to 139, and policies a handful. */
struct switched {
	u32 pid;
	s16 prio;
	u16 policy;
};

/*
 * SWITCH. The thread that is left is described, too: the switch to it may not have been seen, as where
 * nobody waited for the CPU.
 */
struct cpu_switch {
	struct switched prev;
	struct switched next;
	/* That of `next`. */
	char comm[16];
	/* Whether real-time tasks are throttled. */
	u32 throttled;
	u32 pad;
};

/* TRACER */
struct own_time {
	/* How long the program took that ends. */
	u64 duration_ns;
};

struct event {
	/* When, on the monotonic clock. */
	u64 at_ns;
	/* The CPU's clock of stolen time; 0 if there is none. */
	u64 steal_ns;
	/* enum kind, which tells what else there is to read; nothing for those that are not named below. */
	u32 kind;
	u32 pad;
	union {
		struct irq irq;
		struct timer timer;
		struct softirq softirq;
		struct nmi nmi;
		struct cpu_switch cpu_switch;
		struct own_time own_time;
		/* DEBOOST: with the priority that it had until then. */
		struct switched lent_to;
	};
};

struct task {
	u32 pid;
	s32 prio;
	u32 policy;
	/* Its priority without one that it was lent; only of the task that is to wake. */
	s32 normal_prio;
	char comm[16];
};

enum state {
	IDLE = 0,
	/* Made ready, or about to be. */
	WOKEN = 1,
	/* On its CPU, and has not answered yet. */
	RUNNING = 2,
};

/* The stimulus of a thread that was due to wake before it slept. */
#define AWAKE 4

/* The key of a thread's second wakeup has this bit, which is in no thread's number: see state.h. */
#define SECOND (1U << 31)

/* What took a CPU from its tasks so far, ns. */
struct taken {
	/* Interrupts, with what came into them, softirqs and NMIs; softirqs only while somebody waits. */
	u64 all;
	/* Of it softirqs, without what came into them, and NMIs. */
	u64 softirqs;
	u64 nmis;
};

/* A wakeup of a thread that is followed. */
struct wakeup {
	u64 due;
	u64 irq_entry;
	u64 woken;
	u64 irq_exit;
	u64 sched_entry;
	u64 switch_in;
	u64 response;
	/* Page faults of the task when it was switched to, and when it had answered. */
	u64 faults_before;
	u64 faults_after;
	/* The CPU's clock of stolen time when it had answered; 0 if there is none. */
	u64 steal_after;
	/* What that clock says was stolen between `due` and `response`. */
	u64 stolen;
	/* The last reading that `stolen` includes, and when it was taken. */
	u64 steal_read;
	u64 steal_read_at;
	/* Where what was interrupted went on. */
	u64 interrupted_ip;
	/* arm64: what the register held that calls return by, in what `stack` was taken of. */
	u64 link;
	/* How many events its CPU had seen when it began. */
	u64 events_before;
	/* When interrupts last went off, and on again, before the timer's; 0 if that is not measured. */
	u64 irqs_off;
	u64 irqs_on;
	/* How often who gave up the CPU had done so by then, if its stack is still to be taken; or 0. */
	u64 away_switches;
	/* 1 + number of the copy of its stack, among those that the CPU `copied_on` has made; or 0. */
	u64 copy;
	/*
	 * The CPU that counts it as open: 1 + its number, from bit 32 on, and below that how many callers
	 * have tried to close it: see waiting.h.
	 */
	u64 waits;
	/* How often the thread of somebody else had been preempted when it was woken. */
	u64 preempted;
	/*
	 * Events of CPUs that it waited for before it was moved, and that were not handed over: those seen there
	 * meanwhile, and for each CPU one that never is, the task's leaving.
	 */
	u64 events_elsewhere;
	/* When it was moved to its CPU while it waited, and what the clock of stolen time read there; or 0. */
	u64 moved_at;
	u64 moved_steal;
	/*
	 * The queue that the task waits in, if a quota may stop it there; 0 otherwise. Since when, how long
	 * it had been throttled before, and since when it was then: see quota.h.
	 */
	u64 queue;
	u64 queued_at;
	u64 queue_sum;
	u64 queue_since;
	/* What quotas took of the wait; UNKNOWN if nobody knows. */
	u64 quota;
	/* How many switches its CPU had seen when it began, and what its interrupts had taken. */
	u64 switches_before;
	u64 interrupts_before;
	/* The same without what went on then and had begun before. */
	struct taken taken_before;
	u32 state;
	/* Where it waits, and where its stimulus was. */
	u32 cpu;
	u32 stimulus_cpu;
	/* 1 for a timer, 2 for a task, 3 for an interrupt, or AWAKE. */
	u32 stimulus;
	/* As the kernel counts, with what interrupts and tracing add. */
	u32 preempt_count;
	/* 1 + number of the softirq that was interrupted. */
	u32 softirq;
	/* 1 + number of the idle state that was interrupted. */
	u32 idle;
	/* Whether what was interrupted was looked at: task, preempt_count, mode and stack. */
	u32 looked;
	/* 1 user, 2 kernel, 0 unknown */
	u32 mode;
	u32 throttled;
	s32 stack_bytes;
	s32 away_bytes;
	s32 user_bytes;
	s32 away_user_bytes;
	/* Whose the stacks are where the CPU was given up; 0 if nobody looked, and for idle. */
	u32 away_pid;
	/* The instruction before `link`; 0 if it cannot be read. */
	u32 before_link;
	u32 copied_on;
	/* Of a thread whose wakeups are announced, in its first one: whether its second is the current one. */
	u32 is_second;
	/* How many parts of it have been handed over: see moves.h. */
	u32 parts;
	/* 1 + number of the softirq that its CPU was in when it was moved there. */
	u32 moved_softirq;
	/* The code up to where what was interrupted went on, if that is the kernel's; 0 if not read. */
	u8 code[CODE];
	struct task task;
	struct task interrupted;
	struct task waker;
	/* Who ran on the CPU that it was moved to last; pid 0 if it was not, and for idle. */
	struct task runs;
	u64 stack[FRAMES];
	u64 away[FRAMES];
	/* Of the programs of the same tasks: of the one that was interrupted, and of the last one. */
	u64 user[USER_FRAMES];
	u64 away_user[USER_FRAMES];
};

/* Of the stack of what was interrupted: from its registers on, which lie on it. */
struct stack_copy {
	/* Where the registers are; 0 for no copy. */
	u64 registers;
	/* Where each piece was; 0 for none. */
	u64 at[PIECES];
	u8 bytes[PIECES][PIECE];
};

/* What all records begin with. */
struct record_head {
	struct wakeup wakeup;
	/* Valid ones, and those that there was no room for. */
	u32 events;
	u32 events_lost;
	/*
	 * Where events were lost: from when on no switch was, if not for all of the wait for this CPU (0). And
	 * what interrupts, softirqs and NMIs took from then on, ns.
	 */
	u64 switches_from;
	u64 in_interrupts;
	/* What they took in all of the wait for this CPU. */
	struct taken taken;
};

/* A late wakeup on its way out of the kernel, or a part of one that still waits. */
struct record {
	struct record_head head;
	struct event event[EVENTS];
};

/*
 * The same of one that has a copy. Of those that come in a row while the probe catches up, hundreds
 * after a standstill, hardly any has: without room for it nearly twice as many can wait to be read.
 */
struct copied_record {
	struct record record;
	struct stack_copy copy;
};

/* How long a task ran on a CPU while a thread waited for it. */
struct ran {
	struct task task;
	u64 ns;
};

/* The same of one that saw many events: one that took tens of milliseconds. */
struct long_record {
	struct record_head head;
	struct event event[RING];
	struct stack_copy copy;
	/* Of who ran while the thread of somebody else waited: see runners.h. 0 ns where that is not known. */
	struct ran ran[RUNNERS];
	/* The same of all tasks of a rank, also of those that have no place. */
	u64 all_ran[RANKS];
};

/* What else than wakeups is followed: bits. */
#define ALL_WAITS 1
#define ALL_SECTIONS 2

/* The scale of histograms: 512 buckets per octave up to 2^40 ns, as in the rest of wakescope. */
#define KEPT_BITS 9
#define BUCKETS (32 << KEPT_BITS)

struct figures {
	u64 count;
	u64 min;
	u64 max;
	/* When the wakeup of the maximum was due. */
	u64 max_due;
	u64 sum;
	/*
	 * 64 bits each: at 82,000 wakeups a second 32 are full after 14.5 hours. It makes 128 KiB, which is
	 * 768 KiB for each probe or CPU, beside the 2 MiB of its buffer of late wakeups.
	 */
	u64 buckets[BUCKETS];
};

enum component {
	IRQ_LATENCY,
	HANDLER_DURATION,
	SCHED_LATENCY,
	SCHED_DURATION,
	WAKEUP_LATENCY,
	/* The same without stolen time, where there is a clock of it. */
	NET_OF_STEAL,
	COMPONENTS,
};

/* Of what takes time from everything else: on which CPU, what, and which of those that share a line or NMI. */
struct source {
	u32 cpu;
	/* The line, A_VECTOR + enum vector, AN_NMI, or A_SOFTIRQ + its number. */
	u32 number;
	/* The address of the line's action, or of the NMI's handler. */
	u64 who;
};
#define A_VECTOR (1U << 31)
#define AN_NMI (A_VECTOR + 0x100)
#define A_SOFTIRQ (A_VECTOR + 0x200)

/* Arrivals that are looked back upon, a power of two. */
#define ARRIVALS 8
/* Windows of time, each four times as long as the one before: from 16 us to 268 ms. */
#define WINDOWS 8
#define WINDOW_SHIFT(i) (14 + 2 * (i))

/* What was taken of the windows of one length, by those that came within it. */
struct window {
	/* Which it is, counted from boot. */
	u64 number;
	u64 taken;
	u64 before;
	/* The most of two in a row, between which each stretch of that length lies. */
	u64 most;
};

struct interference {
	u64 count;
	/* The longest that one took, without others that came meanwhile, and without stolen time. */
	u64 longest;
	/* The least time from an arrival to the next, to the one after that, and so on; 0 where there were none. */
	u64 least[ARRIVALS];
	u64 arrivals[ARRIVALS];
	/* Of the one that goes on: when it began, and what all interrupts had taken then. */
	u64 begun;
	u64 before;
	struct window windows[WINDOWS];
	/* That of the line. */
	char name[16];
};

/* Stretches of time that nothing else can run in. */
enum section_kind {
	/* Interrupts off, in no interrupt. */
	IRQ_OFF = 0,
	/* Preemption off, for another reason than to schedule. */
	PREEMPT_OFF,
	/* Preemption off, and the CPU was switched. */
	SCHEDULING,
	/* An interrupt. */
	HANDLER,
	SECTION_KINDS,
};

/* Where sections begin and end, per CPU and kind, a power of two. */
#define SECTION_SLOTS 512

/* All sections between two places, each with its caller; 0 where that is not known. */
struct section {
	u64 begin;
	u64 begin_parent;
	u64 end;
	u64 end_parent;
	u64 count;
	u64 total;
	u64 worst;
	/* When the worst began. */
	u64 worst_at;
};

/* The longest of a kind, and what ran as it ended. */
struct longest {
	struct section section;
	struct task task;
	s32 stack_bytes;
	u32 pad;
	u64 stack[FRAMES];
};

enum edge_flags {
	SWITCHED = 1,
	HAD_NMI = 2,
};

/* Where the section began that goes on. */
struct edge {
	/* 0 if none does. */
	u64 at;
	u64 ip;
	u64 parent;
	/* What interrupts had taken then. */
	u64 handlers;
	/* enum edge_flags */
	u32 flags;
	u32 pad;
};

/* The sections of a CPU. */
struct sections {
	struct edge irq;
	struct edge preempt;
	/* Interrupts or preemption or both are off. */
	struct edge either;
	/* What interrupts have taken. */
	u64 handlers;
	/* Beginnings and ends seen. */
	u64 edges;
	/* Beginnings without an end, and ends without a beginning. */
	u64 unpaired;
	/* Sections that are not counted for an NMI that fell into them. */
	u64 nmis;
	/* Sections for whose places there was no room, or that took that of others. */
	u64 crowded;
	/* Whether the CPU is idle. */
	u64 asleep;
	/* The longest of `either`: not to schedule, and to schedule. */
	u64 either_worst[2];
	/* The last section with interrupts off. */
	u64 last_off;
	u64 last_on;
	struct longest longest[SECTION_KINDS];
};

struct answers {
	/* How late a wakeup must be for the thread's watchdog to expire; 0 if it has none. */
	u64 patience;
	/* When the wakeup is due that a waker causes next; 0 if none does. */
	u64 announced;
	struct {
		u64 due;
		u64 at;
	} of[ANSWERS];
};

/* Written by the loader while programs run. */
struct control {
	/* Wakeups due before this do not count. 0: not yet. */
	u64 start;
	/*
	 * Wakeups at least so late leave the kernel. 0 as long as that is not known: all do, as far as
	 * the buffer has room.
	 */
	u64 keep;
	/* So do those that are at least so late without stolen time. */
	u64 keep_net;
	/* Wakeups that are so late are looked at: the lesser of the two. */
	u64 look;
	/* Whether stacks are left to the watchdogs of named threads, which expire while a late wakeup waits. */
	u64 watched;
	/* Whether the loader walks stacks, and only has to be given a copy. */
	u64 walks;
};

/* Written by programs. */
struct counts {
	u64 records;
	u64 lost_records;
	/* Wakeups that began while the last was still open, or could not be followed to their end. */
	u64 broken;
	/* Wakeups for whose thread there was no room, or which came after all that one interrupt may have. */
	u64 no_room;
	/* What tracing adds to preempt_count & 0xff, and one more, as far as it was learnt: see beginnings.h. */
	u64 least_depth;
	/* Wakeups that ended and are in the figures. */
	u64 wakeups;
	/* Interrupts for whose figures there was no room. */
	u64 no_room_interrupts;
	/* All wakeups that began, also before the start of the run. */
	u64 begun;
	/* Those of them that ended, or were given up, when nothing counted: before the start, and after the end. */
	u64 uncounted;
	/* Ends that found that another caller ended the same wakeup: see waiting.h. */
	u64 contended;
	/* Parts of wakeups that were handed over: see moves.h. */
	u64 parts;
};

/* Why a thread waits that could run. */
enum wait_kind {
	/* It was woken. */
	WAIT_WOKEN = 0,
	/* It had to leave its CPU, or gave it up, without going to sleep. */
	WAIT_PREEMPTED,
	/* It had used up the time of its group, or of its policy. */
	WAIT_THROTTLED,
	/* It was moved to the queue of another CPU meanwhile. */
	WAIT_MIGRATED,
	/* A power of two. */
	WAIT_KINDS,
};

/* Of a thread, all waits of a kind that have ended. */
struct waits_of_kind {
	u64 count;
	u64 sum;
	/* What of it a quota or throttle took, and what the hypervisor took. */
	u64 stopped;
	u64 steal;
	/* The longest: how long, since when, and the same of it. */
	u64 worst;
	u64 worst_at;
	u64 worst_stopped;
	u64 worst_steal;
	/* Where it ended. */
	u32 worst_cpu;
	/* Whether nobody knows what of it a quota took. */
	u32 worst_unsure;
	/* The priority of the thread at its end, and that without one that it was lent. */
	s32 worst_prio;
	s32 worst_normal_prio;
	/* Who ran on the CPU longest in the longest, of those that are known, and for how long. */
	u64 worst_ran;
	struct task runner;
	/* How long all tasks of a rank did. */
	u64 worst_all_ran[RANKS];
};

/* The waits of a thread. */
struct waits {
	/* The open one: since when; 0 if there is none. */
	u64 since;
	/* When the last one began. */
	u64 began;
	/* The same by the run queue's clock; 0 if not known. */
	u64 clock_since;
	/* The steal clock of `cpu` then. */
	u64 steal_since;
	/* The queue whose quota may stop it, and how long that had been throttled then; 0 for none. */
	u64 queue;
	u64 throttled_since;
	/* What queues stopped of it that it has left. */
	u64 stopped_before;
	/* What the kernel had counted then, and when it was moved last. */
	u64 run_delay_since;
	u64 run_delay_moved;
	/* What it will count of this wait that was before it: the thread slept. */
	u64 asleep_before;
	/* Whether the thread was moved while it slept, and was not woken since. */
	u64 moved_asleep;
	/* enum wait_kind */
	u32 kind;
	u32 cpu;
	u32 moved;
	/* Whether a throttle without a clock of its own stopped it. */
	u32 stopped;
	/* When it was moved last. */
	u64 moved_at;
	/* How often places were given when it began, and how long the task in each had run: see runners.h. */
	u64 given;
	u64 ran_before[RUNNERS];
	u64 all_ran_before[RANKS];
	/* How long real-time tasks had had to give way there. */
	u64 held_back_before;
	/* Whose waits, and the address of that thread: others may have had its number before. 0 if it is gone. */
	struct task task;
	u64 thread;
	/*
	 * By the kernel's own account, sched_info.run_delay: at the first wait of this thread, of earlier threads
	 * with the same number, and since then up to the last wait that has ended.
	 */
	u64 run_delay_base;
	u64 run_delay_earlier;
	u64 run_delay;
	/* The sum of the same waits by the clock of that account, and what of them it leaves out. */
	u64 by_clock;
	u64 not_in_run_delay;
	/* What it counted besides: waits that were not seen to begin, and sleep. */
	u64 unseen;
	u64 asleep;
	/* What it counted while the thread had another name or was in another cgroup than those followed: in no other sum. */
	u64 away;
	/* Waits that were compared. */
	u64 compared;
	struct waits_of_kind of[WAIT_KINDS];
};

/* All waits of all threads. */
struct wait_counts {
	u64 begun;
	u64 ended;
	/* Of these, those whose end was not seen: the kernel's own account tells how long they were. */
	u64 ends_missed;
	/* Waits that were not seen to begin: none of those that began. */
	u64 begins_missed;
	/* Whose end was not seen, and that the kernel does not count either. */
	u64 broken;
	/* Of threads for which there was no room. */
	u64 no_room;
};
