/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is used of the kernel's types. Offsets are those of the running kernel: the loader reads
 * them from its type information (CO-RE). A name with three underscores is another version's
 * shape of the type before them.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef short s16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define CORE __attribute__((preserve_access_index))

struct thread_info {
	u32 cpu;
} CORE;

/* arm64 keeps the count in the task. It lies first in `task_struct`. */
struct thread_info___arm64 {
	struct {
		u32 count;
	} preempt;
} CORE;

struct kernfs_node {
	u64 id;
} CORE;

struct cgroup {
	struct kernfs_node *kn;
} CORE;

struct css_set {
	struct cgroup *dfl_cgrp;
} CORE;

/* Where real-time tasks are throttled, and not held back by a fair server: up to 6.11. */
struct rt_rq {
	int rt_throttled;
} CORE;

struct task_struct;

struct rq {
	struct rt_rq rt;
	struct task_struct *curr;
	/* The thread that stops this CPU for work of the kernel. */
	struct task_struct *stop;
	u64 clock;
	u64 clock_task;
	u64 clock_pelt;
	u64 lost_idle_time;
	/* With PARAVIRT_TIME_ACCOUNTING: what of `clock` the hypervisor took. */
	u64 prev_steal_time_rq;
	/* With IRQ_TIME_ACCOUNTING. */
	u64 prev_irq_time;
} CORE;

struct task_group;

struct cfs_rq {
	struct rq *rq;
	/* With groups. */
	struct task_group *tg;
	/* With quotas. */
	s32 throttle_count;
	/* From 6.5 on: when it was throttled, and for how long before. */
	u64 throttled_clock_self;
	u64 throttled_clock_self_time;
} CORE;

/* Its queues, one for each CPU. */
struct task_group {
	struct cfs_rq **cfs_rq;
} CORE;

/* How long a queue was throttled from 5.19 on, by another clock. */
struct cfs_rq___pelt {
	u64 throttled_clock_pelt;
	u64 throttled_clock_pelt_time;
} CORE;

/* The same before 5.19. */
struct cfs_rq___task {
	u64 throttled_clock_task;
	u64 throttled_clock_task_time;
} CORE;

struct sched_info {
	unsigned long pcount;
	u64 run_delay;
	u64 last_arrival;
	u64 last_queued;
} CORE;

struct sched_dl_entity {
	u32 dl_throttled : 1;
} CORE;

struct sched_entity {
	struct cfs_rq *cfs_rq;
	u64 sum_exec_runtime;
	u64 nr_migrations;
	/* From 6.12 on: the task sleeps, and is still in the queue. */
	u8 sched_delayed;
} CORE;

/* Before 5.14 the name was another. */
struct task_struct___state {
	long state;
} CORE;

struct task_struct {
	u32 __state;
	void *stack;
	s32 pid;
	s32 tgid;
	s32 prio;
	s32 normal_prio;
	u32 policy;
	char comm[16];
	u64 min_flt;
	u64 maj_flt;
	u64 nvcsw;
	u64 nivcsw;
	u64 start_time;
	/* With PREEMPT_RT. */
	s32 softirq_disable_cnt;
	struct css_set *cgroups;
	struct sched_entity se;
	struct sched_dl_entity dl;
	struct thread_info thread_info;
	/* An int up to 6.18, a byte in 7.2: READ takes the byte that is 0 or 1 in both. */
	u8 on_cpu;
	/* The same; 0 if it is in no queue, 2 on its way from one to another. */
	u8 on_rq;
	struct sched_info sched_info;
	/* From 6.12 on: the fair server that lets it run, where that is why it runs. */
	void *dl_server;
	/* From 6.18 on: whether a quota has stopped the task. */
	_Bool throttled;
} CORE;

struct sched_rt_entity___groups {
	struct rt_rq *rt_rq;
} CORE;

/* With RT_GROUP_SCHED. */
struct task_struct___groups {
	struct sched_rt_entity___groups rt;
} CORE;

/* Before 5.16 on x86: the CPU is beside thread_info. */
struct task_struct___cpu {
	u32 cpu;
} CORE;

struct timerqueue_node {
	s64 expires;
} CORE;

struct hrtimer_clock_base {
	s64 offset;
} CORE;

struct hrtimer {
	struct timerqueue_node node;
	s64 _softexpires;
	void *function;
	struct hrtimer_clock_base *base;
} CORE;

struct hrtimer_sleeper {
	struct hrtimer timer;
	struct task_struct *task;
} CORE;

struct irqaction {
	const char *name;
} CORE;

struct kvm_steal_time {
	u64 steal;
} CORE;

/* Where neither `pcpu_hot` nor a variable of its own has it: x86 up to 6.1, and arm64. */
typedef struct {
	u16 __softirq_pending;
} CORE irq_cpustat_t;

struct pcpu_hot {
	s32 preempt_count;
	u16 softirq_pending;
	void *hardirq_stack_ptr;
	_Bool hardirq_stack_inuse;
} CORE;

struct pt_regs___x86 {
	unsigned long bp;
	unsigned long ip;
	unsigned long cs;
} CORE;

struct pt_regs___arm64 {
	u64 regs[31];
	u64 pc;
	u64 pstate;
} CORE;

#define FIELD_EXISTS(field) __builtin_preserve_field_info(field, 2)
