/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers of the kernel that programs call, by their numbers in include/uapi/linux/bpf.h. */
#pragma once

#include "kernel.h"

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/* A function of its own. What calls it saves no registers for it: that is done only where it is called. */
#define APART static __attribute__((noinline))
/*
 * A function that the verifier looks at once, by itself, and not again for each way that leads to it (5.6). It
 * takes numbers only: pointers to memory, which may be 0, from 5.12 on.
 */
#define ONCE __attribute__((noinline))
#define HOT(x) __builtin_expect(!!(x), 1)
#define COLD(x) __builtin_expect(!!(x), 0)

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
/* Not in place of one that another CPU has put there meanwhile: a wakeup may have begun in it. */
#define IF_ABSENT 1
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_get_current_comm)(void *buf, u32 size) = (void *)16;
static u64 (*bpf_get_current_task)(void) = (void *)35;
/* Of the program that a task runs, not of the kernel. */
#define USER_STACK 256
static long (*bpf_get_stack)(void *ctx, void *buf, u32 size, u64 flags) = (void *)67;
static long (*bpf_probe_read_user)(void *dst, u32 size, const void *src) = (void *)112;
static long (*bpf_probe_read_kernel)(void *dst, u32 size, const void *src) = (void *)113;
static long (*bpf_probe_read_kernel_str)(void *dst, u32 size, const void *src) = (void *)115;
static void *(*bpf_ringbuf_reserve)(void *map, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
/* No reader waits for a record: without this, an interrupt (irq_work) would wake one where the record is submitted. */
#define NO_WAKEUP 1
/* Bytes of a ring buffer that were not read yet, and those that it holds. */
#define RINGBUF_UNREAD 0
#define RINGBUF_SIZE 1
static u64 (*bpf_ringbuf_query)(void *map, u64 flags) = (void *)134;
static long (*bpf_get_task_stack)(void *task, void *buf, u32 size, u64 flags) = (void *)141;

/* Map types, and a flag of theirs: include/uapi/linux/bpf.h, 5.10. */
#define MAP_HASH 1
#define MAP_ARRAY 2
#define MAP_LRU_HASH 9
#define MAP_RINGBUF 27
#define MAP_MMAPABLE (1U << 10)

#define MAP(map_type, key_type, value_type, entries, flags)                                        \
	struct {                                                                                   \
		int(*type)[map_type];                                                              \
		int(*max_entries)[entries];                                                        \
		int(*map_flags)[flags];                                                            \
		key_type *key;                                                                     \
		value_type *value;                                                                 \
	}

/* What the compiler must neither merge nor reorder. */
#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))

/* A field behind a pointer that the verifier does not know: 0 where it cannot be read. */
#define READ(pointer, field)                                                                       \
	({                                                                                         \
		typeof((pointer)->field) _value = 0;                                               \
		bpf_probe_read_kernel(&_value, sizeof(_value),                                     \
				      __builtin_preserve_access_index(&(pointer)->field));         \
		_value;                                                                            \
	})

/* What comes before all deadlines: STOPPER_PRIO of `core` is the same. */
#define STOPPER_PRIO (-2)

INLINE int is_stopper(struct task_struct *task)
{
	struct cfs_rq *queue = READ(task, se.cfs_rq);
	if (!FIELD_EXISTS(queue->rq))
		return 0;
	struct rq *rq = READ(queue, rq);
	return FIELD_EXISTS(rq->stop) && READ(rq, stop) == task;
}

/*
 * The priority of a task, by the one that was read of it. The stopper of a CPU (`migration/N`) has that of the most
 * urgent SCHED_FIFO task, but its class comes before all others.
 */
INLINE s32 prio_of(struct task_struct *task, s32 prio)
{
	return COLD(!prio) && is_stopper(task) ? STOPPER_PRIO : prio;
}

/*
 * The number of the CPU that switches away from `prev`. The task knows it: before 6.10, asking the kernel takes a
 * call. A kernel for a single CPU has it nowhere.
 */
INLINE u32 switching_cpu(struct task_struct *prev)
{
	struct task_struct___cpu *older = (void *)prev;
	u32 number = 0;
	if (FIELD_EXISTS(prev->thread_info.cpu)) {
		number = prev->thread_info.cpu;
		/* Two reads: of one with a place that is chosen before, nothing can be left out. */
		asm volatile("" : "+r"(number));
	} else if (FIELD_EXISTS(older->cpu)) {
		number = older->cpu;
	}
	/* Nothing of what follows is done in both branches. */
	asm volatile("" : "+r"(number));
	return number;
}
