/* SPDX-License-Identifier: GPL-2.0 */
/* What bpf/waits.h needs of the kernel and of the other programs, made up for a test on this host. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef short s16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

struct kernfs_node {
	u64 id;
};
struct cgroup {
	struct kernfs_node *kn;
};
struct rt_rq {
	int rt_throttled;
};
struct task_struct;
struct rq {
	u64 clock, clock_task, clock_pelt, lost_idle_time;
	struct task_struct *curr;
	struct rt_rq rt;
};
struct cfs_rq;
struct task_group {
	struct cfs_rq **cfs_rq;
};
struct cfs_rq {
	struct rq *rq;
	struct task_group *tg;
	s32 throttle_count;
	u64 throttled_clock_self, throttled_clock_self_time;
};
struct cfs_rq___pelt {
	u64 throttled_clock_pelt, throttled_clock_pelt_time;
};
struct cfs_rq___task {
	u64 throttled_clock_task, throttled_clock_task_time;
};
struct task_struct {
	u32 __state;
	s32 pid, tgid, prio, normal_prio;
	u32 policy;
	char comm[16];
	u64 start_time;
	struct {
		struct cfs_rq *cfs_rq;
		u64 sum_exec_runtime, nr_migrations;
		u8 sched_delayed;
	} se;
	struct {
		u32 dl_throttled;
	} dl;
	u8 on_cpu;
	struct {
		u64 run_delay, last_arrival, last_queued;
	} sched_info;
	_Bool throttled;
	void *dl_server;
	/* Of the test: where it is, and whether it is followed no more. */
	u32 cpu;
	int left;
};
struct task_struct___groups {
	struct {
		struct rt_rq *rt_rq;
	} rt;
};

#include "shared.h"

struct runner {
	struct task task;
	u64 ran, given, weight;
};
struct cpu {
	u64 runqueue, interrupts, ran_until, ran_interrupts, ran_last, given, weighed;
	s64 ran_as;
	struct runner runners[RUNNERS];
	u64 all_ran[RANKS], held_back, holds_back;
};
union cpu_word {
	struct {
		u32 wakeups, threads;
	};
};

#define SEC(name) __attribute__((used))
#define INLINE static inline __attribute__((unused))
#define APART static __attribute__((unused))
#define HOT(x) (x)
#define COLD(x) (x)
#define IF_ABSENT 1
#define MAP(type, key, value, entries, flags) struct { int unused; }
#define READ(pointer, field) ((pointer)->field)
#define READ_ONCE(x) (x)
#define __builtin_preserve_access_index(x) (x)
/* Of a bit field of `task`, which is a word here: its place and its size in bytes, and how far it is shifted. */
#define __builtin_preserve_field_info(field, kind) \
	((kind) == 0 ? (u32)((char *)&(field) - (char *)task) : (kind) == 1 ? (u32)sizeof(field) : 32)

/* As before 6.18, where a quota stops queues. */
static int stops_queues;
#define FIELD_EXISTS(field) (!(stops_queues && !strcmp(#field, "task->throttled")) && \
			     strcmp(#field, "grouped->rt.rt_rq"))

static struct cpu cpus_here[2];
static union cpu_word words_here[2];
static struct task_struct *current;
static u64 now_ns;
static u32 here;
static struct {
	u64 is_known;
} steal_time_place;
static int control;
static int waits_of;
static u32 target_pid;
enum { COMM, CGROUP };
static u32 targets = COMM;
static u64 target_cgroup;

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, u64 flags);

static u64 grown(u64 now, u64 before) { return now > before ? now - before : 0; }
static u64 bpf_ktime_get_ns(void) { return now_ns; }
static u64 bpf_get_current_task(void) { return (u64)current; }
static void bpf_probe_read_kernel(void *to, u32 size, const void *from) { memcpy(to, from, size); }
static struct cpu *cpu_of(u32 number) { return &cpus_here[number]; }
static union cpu_word *word_of(u32 number) { return &words_here[number]; }
static u64 runqueue(struct cpu *cpu) { return cpu->runqueue; }
static u64 runqueue_with(struct cpu *cpu, struct task_struct *task) { return cpu->runqueue; }
static struct task_struct *runs_on(struct cpu *cpu) { return ((struct rq *)cpu->runqueue)->curr; }
static u64 stolen(struct cpu *cpu) { return cpu->runqueue * 0; }
static u32 throttles(struct cpu *cpu, struct task_struct *runs) { return ((struct rq *)cpu->runqueue)->rt.rt_throttled; }
static u32 task_cpu(struct task_struct *task) { return task->cpu; }
static s32 prio_of(struct task_struct *task, s32 prio) { return prio; }
static int is_target(struct task_struct *task) { return !task->left; }
static int is_stranger(struct task_struct *task) { return !is_target(task); }
static int begins_otherwise(struct task_struct *task) { return !is_target(task); }
static int is_elsewhere(struct task_struct *task) { return !is_target(task); }
static int is_of_another_process(struct task_struct *task) { return !is_target(task); }
static int sleeps(struct task_struct *task) { return task->__state != 0; }
static int counts_now(struct control *asked, u64 at) { return asked->start && at >= asked->start; }
static void describe(struct task *to, struct task_struct *task) { to->pid = task->pid; to->prio = task->prio; }
