/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All waits of all tasks, from runnable to running, by one program at the switch and none at the wakeup.
 *
 * When a task is put into a run queue, the kernel stores the time in `sched_info.last_queued`, by the clock
 * of that queue. It adds the wait to `sched_info.run_delay` when it switches to the task, which is just
 * after this tracepoint. So what it is about to add can be computed here, to the nanosecond, and nothing
 * has to be kept from the wakeup to the switch. A move to another queue adds what was waited so far and
 * begins anew: the whole wait is what `run_delay` has grown by since the task ran last.
 *
 * This is an object of its own: `wakeups.bpf.c` follows single wakeups, with many programs and large
 * buffers, and what it does at each switch costs more than all of this.
 *
 * It all runs under the lock of the run queue, so nothing here may allocate memory: that can wake the
 * kernel's reclaimer, which takes the same lock. Hence hashes that are allocated beforehand, and no storage
 * local to tasks.
 */
#include "bpf.h"
#include "watch.h"
#include "watch_tasks.h"
#include "watch_turns.h"

static long (*bpf_map_push_elem)(void *map, const void *value, u64 flags) = (void *)87;
static long (*bpf_map_pop_elem)(void *map, void *value) = (void *)88;

#define MAP_QUEUE 22

/* The largest number of a CPU that there may be, plus one. */
const volatile u32 cpu_count = 1;

MAP(MAP_ARRAY, u32, struct waits_row, 1, MAP_MMAPABLE) rows SEC(".maps");
/* Of each row on each CPU, so that no two CPUs write the same. */
MAP(MAP_ARRAY, u32, struct extremes, 1, MAP_MMAPABLE) row_extremes SEC(".maps");
MAP(MAP_ARRAY, u32, struct cpu_row, 1, MAP_MMAPABLE) cpu_rows SEC(".maps");
MAP(MAP_ARRAY, u32, struct watch_counts, 1, MAP_MMAPABLE) watch_counts SEC(".maps");
MAP(MAP_HASH, struct series, u32, 1, 0) series_rows SEC(".maps");
/* Rows that count for nobody yet. Before 5.12 programs cannot draw numbers by an atomic addition. */
struct {
	int(*type)[MAP_QUEUE];
	int(*max_entries)[1];
	u32 *value;
} free_rows SEC(".maps");

/* 16 buckets an octave from 2^7 ns up to 2^34 ns, one for what is less, and one for what is more. */
INLINE u32 bucket_of(u64 ns)
{
	if (ns < (1ULL << LEAST_OCTAVE))
		return 0;
	if (ns >> END_OCTAVE)
		return BUCKETS - 1;
	u64 rest = ns;
	u32 octave = 0;
	/* No instruction of BPF does this. */
	if (rest >> 32) { octave = 32; rest >>= 32; }
	if (rest >> 16) { octave += 16; rest >>= 16; }
	if (rest >> 8) { octave += 8; rest >>= 8; }
	if (rest >> 4) { octave += 4; rest >>= 4; }
	if (rest >> 2) { octave += 2; rest >>= 2; }
	octave += rest >> 1;
	u32 within = (ns >> (octave - OCTAVE_BITS)) & ((1 << OCTAVE_BITS) - 1);
	return 1 + ((octave - LEAST_OCTAVE) << OCTAVE_BITS) + within;
}

/* The row for `key`: that of all others if there is none, and none is free. */
INLINE u32 row_of(struct series *key)
{
	u32 *known = bpf_map_lookup_elem(&series_rows, key);
	if (known)
		return *known;
	u32 free = OTHERS;
	if (bpf_map_pop_elem(&free_rows, &free))
		return OTHERS;
	struct waits_row *row = bpf_map_lookup_elem(&rows, &free);
	if (!row)
		return OTHERS;
	row->cgroup = key->cgroup;
	row->comm[0] = key->comm[0];
	row->comm[1] = key->comm[1];
	if (!bpf_map_update_elem(&series_rows, key, &free, IF_ABSENT)) {
		WRITE_ONCE(row->used, 1);
		return free;
	}
	/* Another CPU has met the same series just now. */
	bpf_map_push_elem(&free_rows, &free, 0);
	known = bpf_map_lookup_elem(&series_rows, key);
	return known ? *known : OTHERS;
}

/* Whose wait it is, looked up only when the row that the task was counted in last is not its own any more. */
INLINE u32 row_of_task(struct task_books *books, struct series *key)
{
	if (!books)
		return row_of(key);
	u32 index = books->row;
	struct waits_row *row = bpf_map_lookup_elem(&rows, &index);
	if (HOT(row && READ_ONCE(row->used) && row->cgroup == key->cgroup && row->comm[0] == key->comm[0] &&
		row->comm[1] == key->comm[1]))
		return index;
	index = row_of(key);
	/* The series of others is not kept: a row may become free. */
	books->row = index == OTHERS ? NO_ROW : index;
	return index;
}

/* Only this CPU counts in these, but whoever reads them puts them back to 0. */
INLINE void note_extremes(struct extremes *of, u64 ns)
{
	if (ns > READ_ONCE(of->max))
		WRITE_ONCE(of->max, ns);
	if (COLD(~ns > READ_ONCE(of->inverted_min)))
		WRITE_ONCE(of->inverted_min, ~ns);
}

INLINE void count_wait(u32 index, u32 number, struct cpu_row *cpu, u64 ns)
{
	struct waits_row *row = bpf_map_lookup_elem(&rows, &index);
	u32 at = index * cpu_count + number;
	struct extremes *extremes = bpf_map_lookup_elem(&row_extremes, &at);
	u32 bucket = bucket_of(ns);
	if (!row || !extremes || bucket >= BUCKETS)
		return;
	ADD(row->sum, ns);
	ADD(row->buckets[bucket], 1);
	note_extremes(extremes, ns);
	cpu->count++;
	cpu->sum += ns;
	cpu->buckets[bucket]++;
	note_extremes(&cpu->extremes, ns);
}

/* Waits that no program saw are in none of the sums, nor in what these are compared with. */
INLINE void miss(struct task_books *books, struct watch_counts *counts, u64 waits, u64 ns)
{
	ADD(counts->missed, waits);
	ADD(counts->missed_ns, ns);
	books->arrivals_before += waits;
	books->run_delay_before += ns;
}

/*
 * How many waits the kernel has counted since the task was seen last, without those that had no stamp:
 * older kernels count these, too.
 */
INLINE u64 unseen(struct task_books *books, u64 arrivals)
{
	u64 all = arrivals - books->arrivals;
	u64 unstamped = all < books->unstamped ? all : books->unstamped;
	books->arrivals_before += unstamped;
	books->unstamped = 0;
	return all - unstamped;
}

/* Counts a wait that ended on this CPU. From here on the books are those of the kernel. */
INLINE void wait_ended(struct series *whose, struct task_books *books, u32 number, struct cpu_row *cpu,
		       u64 ns)
{
	if (books) {
		books->count++;
		books->sum += ns;
	}
	count_wait(row_of_task(books, whose), number, cpu, ns);
}

/*
 * The task runs here, and this program did not run at the switch to it: not every kernel reports each
 * switch (a guest of 6.18 omits up to one in a hundred). What the task waited is what the kernel has added
 * since, if it was not overlooked more than once.
 */
INLINE void catch_up(struct task_struct *task, struct watch_counts *counts, u32 number, struct cpu_row *cpu)
{
	u64 counted = task->sched_info.run_delay;
	u64 arrivals = task->sched_info.pcount;
	u32 pid = task->pid;
	struct task_books *books = known_books(pid);
	if (!books || arrivals < books->arrivals || counted < books->run_delay) {
		/* What it has waited this time is known only if it was the first time. */
		books = books_of(task, counted, arrivals == 1 ? 0 : arrivals, counts);
		if (!books)
			return;
		if (arrivals != 1) {
			ADD(counts->missed, 1);
			return;
		}
	}
	/* The task may be about to sleep. */
	note_queue(books, task, NOT_KNOWN);
	u64 waits = unseen(books, arrivals), ns = counted - books->run_delay;
	books->arrivals = arrivals;
	books->run_delay = counted;
	if (waits > 1)
		miss(books, counts, waits, ns);
	if (waits != 1)
		return;
	ADD(counts->caught_up, 1);
	struct series whose;
	describe_series(&whose, task);
	wait_ended(&whose, books, number, cpu, ns);
}

/* The task is switched to, and its `turn` begins. */
INLINE void switch_in(struct task_struct *task, struct turn *turn, struct watch_counts *counts, u32 number,
		      struct cpu_row *cpu, struct cpu_turns *turns)
{
	u64 queued = task->sched_info.last_queued;
	u64 counted = task->sched_info.run_delay;
	u64 arrivals = task->sched_info.pcount;
	u64 clock = turn->clock;
	struct task_books *books = books_of(task, counted, arrivals, counts);
	if (COLD(!queued)) {
		/* Preempted when it was about to sleep: to the kernel that is no wait. */
		ADD(counts->unstamped, 1);
		if (books) {
			books->unstamped++;
			note_queue(books, task, task->nvcsw);
		}
		return;
	}
	u64 earlier = 0, last = clock - queued;
	if (COLD(books && !books->count && books->row == NO_ROW && arrivals))
		ADD(counts->first, 1);
	if (books) {
		u64 waits = unseen(books, arrivals);
		earlier = counted - books->run_delay;
		if (COLD(waits)) {
			miss(books, counts, waits, earlier);
			earlier = 0;
		}
		books->run_delay = counted + last;
		books->arrivals = arrivals + 1;
	}
	if (COLD(earlier)) {
		ADD(counts->moved, 1);
		ADD(counts->moved_ns, earlier);
	}
	if (COLD(clock < queued)) {
		ADD(counts->discarded, 1);
		if (books) {
			books->run_delay_before += earlier + last;
			books->arrivals_before++;
			note_queue(books, task, task->nvcsw);
		}
		return;
	}
	wait_ended(&turn->whose, books, number, cpu, earlier + last);
	if (COLD(earlier + last >= LEAST_LONG))
		keep_long_wait(task, turn, books, turns, earlier + last, last);
	if (books)
		note_queue(books, task, task->nvcsw);
}

SEC("tp_btf/sched_switch") int watch_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];
	struct task_struct *next = (void *)ctx[2];
	struct task_struct___state *older = (void *)prev;
	u32 zero = 0, number = bpf_get_smp_processor_id();
	struct watch_counts *counts = bpf_map_lookup_elem(&watch_counts, &zero);
	struct cpu_row *cpu = bpf_map_lookup_elem(&cpu_rows, &number);
	struct cpu_turns *turns = bpf_map_lookup_elem(&cpu_turns, &number);
	if (!counts || !cpu || !turns)
		return 0;
	u32 left = prev->pid, runs = next->pid;
	if (COLD(cpu->runs != left))
		turns->turns[(turns->seen - 1) & (TURNS - 1)].pid = NOBODY;
	/* Nothing is known of who ran before the first switch. */
	if (COLD(cpu->switches && cpu->runs != left && left))
		catch_up(prev, counts, number, cpu);
	cpu->switches++;
	cpu->runs = runs;
	u64 state = FIELD_EXISTS(prev->__state) ? prev->__state : older->state;
	if (COLD(state & TASK_DEAD))
		forget_task(left);
	struct turn *turn = &turns->turns[turns->seen & (TURNS - 1)];
	describe_turn(turn, next);
	if (COLD(!turns->seen))
		turns->first_irq = turn->irq;
	/* Idle never waits. */
	if (runs)
		switch_in(next, turn, counts, number, cpu, turns);
	turns->seen++;
	return 0;
}

/*
 * Attached to nothing: the loader has it run, to know what the kernel lacks of what the program above reads.
 * A bit for each.
 */
SEC("raw_tp/sched_switch") int watch_lacks(u64 *ctx)
{
	struct task_struct *task = 0;
	struct cfs_rq *queue = 0;
	int lacks = 0;
	if (!FIELD_EXISTS(task->sched_info.last_queued) || !FIELD_EXISTS(task->sched_info.pcount))
		lacks |= LACKS_SCHED_INFO;
	if (!FIELD_EXISTS(task->se.cfs_rq) || !FIELD_EXISTS(queue->rq))
		lacks |= LACKS_QUEUE;
	struct rq *rq = 0;
	if (!FIELD_EXISTS(rq->prev_irq_time))
		lacks |= LACKS_IRQ_TIME;
	if (!FIELD_EXISTS(rq->prev_steal_time_rq))
		lacks |= LACKS_STEAL_TIME;
	if (!has_throttled_time())
		lacks |= LACKS_THROTTLED_TIME;
	return lacks;
}

char LICENSE[] SEC("license") = "GPL";
