/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is used of the kernel's types. Offsets are those of the running kernel: the loader reads
 * them from its type information (CO-RE). A name with three underscores is another version's
 * shape of the type before them.
 */
#pragma once

typedef unsigned char u8;
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

struct rq {
	struct rt_rq rt;
} CORE;

struct cfs_rq {
	struct rq *rq;
} CORE;

struct sched_entity {
	struct cfs_rq *cfs_rq;
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
	u32 policy;
	char comm[16];
	u64 min_flt;
	u64 maj_flt;
	u64 nvcsw;
	u64 nivcsw;
	/* With PREEMPT_RT. */
	s32 softirq_disable_cnt;
	struct css_set *cgroups;
	struct sched_entity se;
	struct thread_info thread_info;
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

struct pcpu_hot {
	s32 preempt_count;
	void *hardirq_stack_ptr;
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
