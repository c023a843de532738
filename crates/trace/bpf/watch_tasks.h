/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is known of each task, by its number.
 *
 * At each switch the books of the task are looked up. In a hash that takes 60 of the 150 ns that the program
 * takes beside an empty one (6.18, a virtual machine); in an array it takes next to nothing. So each task has
 * a place in an array, at the index that its number has modulo the number of places. The kernel gives numbers
 * in turn, so two tasks seldom have the same place. The second one's books are in a hash.
 *
 * Two tasks may ask for a free place at once, on two CPUs. The first one to enter itself in `owners` gets it:
 * a hash, because programs have no atomic compare-and-exchange before 5.12.
 */
#pragma once

#include "bpf.h"
#include "watch.h"
#include "watch_counts.h"

/* The number of places, which is a power of 2, less one. */
const volatile u32 place_mask = 0;

MAP(MAP_ARRAY, u32, struct task_books, 1, 0) places SEC(".maps");
/* Which task has a place, by the number of the place. */
MAP(MAP_HASH, u32, u32, 1, 0) owners SEC(".maps");
/* The books of tasks whose place another has. */
MAP(MAP_HASH, u32, struct task_books, 1, 0) displaced SEC(".maps");
/* Of the owner of each place. Only moves, and switches that end a long wait, look at them. */
MAP(MAP_ARRAY, u32, struct stays, 1, 0) stays SEC(".maps");

/* The books of a task; 0 if it has none. */
INLINE struct task_books *known_books(u32 pid)
{
	u32 number = pid & place_mask;
	struct task_books *place = bpf_map_lookup_elem(&places, &number);
	if (HOT(place && READ_ONCE(place->pid) == pid))
		return place;
	return bpf_map_lookup_elem(&displaced, &pid);
}

/*
 * The books of this task; 0 if it has none. Those of its number may be another's: a thread that calls exec takes over
 * the number of its process.
 */
INLINE struct task_books *books_of(struct task_struct *task)
{
	struct task_books *books = known_books(task->pid);
	return books && HOT(books->task == (u64)task) ? books : 0;
}

/* Where a task was while it waited; 0 if it has no place. */
INLINE struct stays *known_stays(u32 pid)
{
	u32 number = pid & place_mask;
	struct task_books *place = bpf_map_lookup_elem(&places, &number);
	return place && READ_ONCE(place->pid) == pid ? bpf_map_lookup_elem(&stays, &number) : 0;
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

INLINE void forget_number(u32 pid)
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

APART int forget_task(struct task_struct *task)
{
	if (books_of(task))
		forget_number(task->pid);
	return 0;
}

/*
 * How often the task has been moved, plus 1; 0 where no task sleeps in a queue, so that moves do not matter.
 *
 * Books that say otherwise are of a task that was moved while it slept in a queue, or that was moved and no program
 * saw it (a guest of 6.18: three times in 24 s, in which a task was moved all the time).
 */
INLINE u64 moves_of(struct task_struct *task)
{
	return FIELD_EXISTS(task->se.sched_delayed) ? task->se.nr_migrations + 1 : 0;
}

#define MOVED_ASLEEP (~0ULL)

/* Forgets where the task of this number was: in earlier waits, or the task that had it before. `moves` are of these. */
INLINE void forget_stays(u32 pid, u64 moves)
{
	struct stays *stays = known_stays(pid);
	if (stays) {
		stays->run_delay = 0;
		stays->moves = moves;
	}
}

/* Books for a task that was never seen, or whose number another had; 0 if there is no room. */
APART struct task_books *renewed_books(struct task_struct *task, u64 counted, u64 arrivals)
{
	u32 pid = task->pid;
	struct task_books *books = known_books(pid);
	if (books && books->task == (u64)task && arrivals)
		COUNT(contradicted, 1);
	struct task_books fresh = {
		/* Of a task that never ran, all that was counted belongs to this wait. */
		.run_delay = arrivals ? counted : 0,
		.arrivals = arrivals,
		.run_delay_before = arrivals ? counted : 0,
		.arrivals_before = arrivals,
		.row = NO_ROW,
		.moves = moves_of(task),
		.task = (u64)task,
		.pid = pid,
		/* Whether a quota stopped it before is not known. */
		.stopped_after = arrivals,
	};
	books = new_books(pid, &fresh);
	if (!books)
		COUNT(untracked, 1);
	/* Of a task that never ran, all moves are of this wait. */
	forget_stays(pid, arrivals ? task->se.nr_migrations : 0);
	return books;
}

/*
 * Whether a task that had this number when it was switched to has another one now. Its books go with it.
 *
 * A thread that calls exec takes over the number of its process, and gives its own to the first thread, which is about
 * to end. That one's books are left for the other to replace.
 */
APART int has_new_number(struct task_struct *task, u32 earlier)
{
	u32 pid = task->pid;
	struct task_books *books = earlier ? known_books(earlier) : 0;
	if (!books || books->task != (u64)task)
		return 0;
	if (pid != (u32)task->tgid)
		return 1;
	struct task_books own = *books;
	own.pid = pid;
	forget_number(earlier);
	if (!new_books(pid, &own))
		COUNT(untracked, 1);
	forget_stays(pid, task->se.nr_migrations);
	return 1;
}
