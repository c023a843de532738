/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is known of each task, by its number.
 *
 * At each switch the books of the task are looked up. In a hash that takes 60 ns (6.18, a virtual machine),
 * more than all else together; in an array it takes next to nothing. So each task has a place in an array,
 * which its number tells. Numbers are given in turn, so that tasks seldom share a place: those whose place is
 * another's are in a hash.
 *
 * Whose a place is, is decided by who enters it in a hash of its own first, since programs cannot compare and
 * exchange before 5.12.
 */
#pragma once

#include "bpf.h"
#include "watch.h"

/* There are places for one more, a power of 2. */
const volatile u32 place_mask = 0;

MAP(MAP_ARRAY, u32, struct task_books, 1, 0) places SEC(".maps");
/* The task whose a place is. */
MAP(MAP_HASH, u32, u32, 1, 0) owners SEC(".maps");
/* Tasks whose place is another's. */
MAP(MAP_HASH, u32, struct task_books, 1, 0) displaced SEC(".maps");

#define ADD(counter, n) __sync_fetch_and_add(&(counter), n)

/* The books of a task; 0 if it has none. */
INLINE struct task_books *known_books(u32 pid)
{
	u32 number = pid & place_mask;
	struct task_books *place = bpf_map_lookup_elem(&places, &number);
	if (HOT(place && READ_ONCE(place->pid) == pid))
		return place;
	return bpf_map_lookup_elem(&displaced, &pid);
}

/* Gives the task books that begin as `fresh`, in place of those that it may have; 0 if there is no room. */
INLINE struct task_books *new_books(u32 pid, struct task_books *fresh)
{
	u32 number = pid & place_mask;
	struct task_books *known = known_books(pid);
	if (!known && !bpf_map_update_elem(&owners, &number, &pid, IF_ABSENT))
		known = bpf_map_lookup_elem(&places, &number);
	if (known) {
		*known = *fresh;
		return known;
	}
	bpf_map_update_elem(&displaced, &pid, fresh, 0);
	return bpf_map_lookup_elem(&displaced, &pid);
}

INLINE void forget_task(u32 pid)
{
	u32 number = pid & place_mask;
	struct task_books *place = bpf_map_lookup_elem(&places, &number);
	if (!place || place->pid != pid) {
		bpf_map_delete_elem(&displaced, &pid);
		return;
	}
	/* Before the next owner can enter. */
	WRITE_ONCE(place->pid, 0);
	bpf_map_delete_elem(&owners, &number);
}

/* What is known of the task; made anew if it was never seen, or another task had its number. */
INLINE struct task_books *books_of(struct task_struct *task, u64 counted, u64 arrivals,
				   struct watch_counts *counts)
{
	u32 pid = task->pid;
	struct task_books *books = known_books(pid);
	/* The kernel's own sums only grow. */
	if (HOT(books && arrivals >= books->arrivals && counted >= books->run_delay))
		return books;
	if (books && arrivals)
		ADD(counts->contradicted, 1);
	struct task_books fresh = {
		/* Of a task that never ran, all that was counted belongs to this wait. */
		.run_delay = arrivals ? counted : 0,
		.arrivals = arrivals,
		.run_delay_before = arrivals ? counted : 0,
		.arrivals_before = arrivals,
		.row = NO_ROW,
		.pid = pid,
	};
	books = new_books(pid, &fresh);
	if (!books)
		ADD(counts->untracked, 1);
	return books;
}
