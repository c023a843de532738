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
 *
 * From 6.12 on a task may go to sleep and stay in the queue for a while (`sched_delayed`). If it is moved to
 * another one meanwhile, the kernel stamps it as if it waited from then on, and keeps that stamp when the task
 * is woken. Another program, at moves of tasks, marks these: their next wait is not counted. Neither is a long
 * wait of a task that was moved, and no program saw it. The same program notes where tasks waited that it sees moved.
 */
#include "bpf.h"
#include "watch.h"
#include "watch_buckets.h"
#include "watch_counts.h"
#include "watch_quota.h"
#include "watch_stays.h"
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
MAP(MAP_HASH, struct series, u32, 1, 0) series_rows SEC(".maps");
/* Rows that count for nobody yet. Before 5.12 programs cannot draw numbers by an atomic addition. */
struct {
	int(*type)[MAP_QUEUE];
	int(*max_entries)[1];
	u32 *value;
} free_rows SEC(".maps");

/* Tasks that could run when the watch began, by their numbers. */
MAP(MAP_HASH, u32, u32, 1, 0) runnable_before SEC(".maps");

/* The index of the row for this task: that of all others if there is none, and none is free. */
APART u32 row_of(struct task_struct *task)
{
	struct series key;
	describe_series(&key, task);
	u32 *known = bpf_map_lookup_elem(&series_rows, &key);
	if (known)
		return *known;
	u32 free = OTHERS;
	if (bpf_map_pop_elem(&free_rows, &free))
		return OTHERS;
	struct waits_row *row = bpf_map_lookup_elem(&rows, &free);
	if (!row)
		return OTHERS;
	row->cgroup = key.cgroup;
	row->comm[0] = key.comm[0];
	row->comm[1] = key.comm[1];
	if (!bpf_map_update_elem(&series_rows, &key, &free, IF_ABSENT)) {
		WRITE_ONCE(row->generation, row->generation + 1);
		return free;
	}
	/* Another CPU has met the same series just now. */
	bpf_map_push_elem(&free_rows, &free, 0);
	known = bpf_map_lookup_elem(&series_rows, &key);
	return known ? *known : OTHERS;
}

/*
 * The generation of a row in which it counts the waits of this task; 0 if it does not. It is read before the series:
 * that of a row which another gets meanwhile does not fit any more.
 */
INLINE u32 generation_for(struct waits_row *row, struct task_struct *task)
{
	u64 generation = READ_ONCE(row->generation);
	u64 *comm = (u64 *)__builtin_preserve_access_index(&task->comm);
	int counts = generation & 1 && READ_ONCE(row->cgroup) == cgroup_of(task) &&
		     READ_ONCE(row->comm[0]) == comm[0] && READ_ONCE(row->comm[1]) == comm[1];
	return counts ? generation : 0;
}

/* A row and its generation, in the upper half. */
#define TENURE(row, generation) ((u64)(generation) << 32 | (row))

/* The same of the row that counts a task from now on. */
APART u64 tenure_of(struct task_struct *task, struct task_books *books)
{
	u32 index = row_of(task);
	struct waits_row *row = bpf_map_lookup_elem(&rows, &index);
	/* The series of others is not kept: a row may become free. */
	if (books)
		books->row = index == OTHERS ? NO_ROW : index;
	return TENURE(index, row ? generation_for(row, task) : 0);
}

/* Notes whose `turn` it is: that is known if the task still has the row in which it was counted last. */
APART int note_runner(struct turn *turn, struct task_books *books, struct task_struct *task)
{
	u32 index = books ? books->row : NO_ROW;
	struct waits_row *row = bpf_map_lookup_elem(&rows, &index);
	turn->tenure = row ? TENURE(index, generation_for(row, task)) : 0;
	return 0;
}

/*
 * Notes anew whose `turn` ends with this switch: exec gives a task another name, and mostly its first turn is all
 * that a short program has. A priority that the task gave back is the one that kept others waiting. If it got a more
 * urgent one, or another policy, it is not known for how long it had which, so the turn is nobody's.
 */
APART int end_turn(struct turn *turn, struct task_struct *task)
{
	u32 index = turn->tenure;
	struct waits_row *row = bpf_map_lookup_elem(&rows, &index);
	s32 prio = prio_of(task, task->prio);
	int is_ordinary = prio >= 100 && turn->prio >= 100;
	if (!row || turn->pid != (u32)task->pid)
		return 0;
	if (!is_ordinary && (prio < turn->prio || turn->policy != (u16)task->policy)) {
		turn->tenure = 0;
		return 0;
	}
	if (is_ordinary) {
		turn->prio = prio;
		turn->policy = task->policy;
	}
	if (generation_for(row, task) != turn->tenure >> 32)
		turn->tenure = tenure_of(task, books_of(task));
	return 0;
}

/* Only this CPU counts in these, but whoever reads them puts them back to 0. */
INLINE void note_extremes(struct extremes *of, u64 ns)
{
	if (ns > READ_ONCE(of->max))
		WRITE_ONCE(of->max, ns);
	if (COLD(~ns > READ_ONCE(of->inverted_min)))
		WRITE_ONCE(of->inverted_min, ~ns);
}

/*
 * Counts a wait of a task, whose row is looked up only when the one that it was counted in last is not its own any
 * more, and notes whose `turn` begins, if one does.
 */
INLINE void count_wait(struct task_books *books, struct task_struct *task, struct turn *turn, u32 number,
		       struct cpu_row *cpu, u64 ns)
{
	u32 index = books ? books->row : NO_ROW;
	struct waits_row *row = bpf_map_lookup_elem(&rows, &index);
	u32 generation = row ? generation_for(row, task) : 0;
	if (COLD(!generation)) {
		u64 tenure = tenure_of(task, books);
		index = tenure;
		generation = tenure >> 32;
		row = bpf_map_lookup_elem(&rows, &index);
	}
	if (turn)
		turn->tenure = TENURE(index, generation);
	u32 at = index * cpu_count + number;
	struct extremes *extremes = bpf_map_lookup_elem(&row_extremes, &at);
	u32 bucket = bucket_of(ns);
	if (!row || !extremes || bucket >= BUCKETS)
		return;
	ADD(row->sum, ns);
	ADD(row->buckets[bucket], 1);
	note_extremes(extremes, ns);
	cpu->sum += ns;
	cpu->buckets[bucket]++;
	note_extremes(&cpu->extremes, ns);
}

/* Waits that no program saw are in none of the sums, nor in what these are compared with. */
INLINE void miss(struct task_books *books, u64 waits, u64 ns)
{
	COUNT(missed, waits);
	COUNT(missed_ns, ns);
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
INLINE void wait_ended(struct task_struct *task, struct task_books *books, struct turn *turn, u32 number,
		       struct cpu_row *cpu, u64 ns)
{
	if (books) {
		books->count++;
		books->sum += ns;
	}
	count_wait(books, task, turn, number, cpu, ns);
}

/* The longest wait that cannot have sleep in it. From now on the books, if there are any, know of all moves. */
INLINE u64 longest_without_sleep(struct task_books *books, struct task_struct *task)
{
	/* Without books nobody marks a task that sleeps in a queue. */
	if (COLD(!books))
		return FIELD_EXISTS(task->se.sched_delayed) ? LEAST_LONG - 1 : ~0ULL;
	u64 moves = moves_of(task), known = books->moves;
	books->moves = moves;
	if (HOT(known == moves))
		return ~0ULL;
	/* Most moves are of tasks that wake. If this one was not, a wait that is counted has little sleep in it. */
	return known == MOVED_ASLEEP ? 0 : LEAST_LONG - 1;
}

/* The kernel may have counted sleep as this wait: it is not counted here. */
APART int leave_out_sleep(struct task_books *books, u64 ns)
{
	COUNT(asleep, 1);
	COUNT(asleep_ns, ns);
	if (books) {
		books->run_delay_before += ns;
		books->arrivals_before++;
	}
	return 0;
}

/*
 * The task runs here, and this program did not run at the switch to it: not every kernel reports each
 * switch (a guest of 6.18 omits up to one in a hundred). What the task waited is what the kernel has added
 * since, if it was not overlooked more than once.
 */
APART int catch_up(struct task_struct *task, u32 number, struct cpu_row *cpu)
{
	u64 counted = task->sched_info.run_delay;
	u64 arrivals = task->sched_info.pcount;
	struct task_books *books = books_of(task);
	if (!books || arrivals < books->arrivals || counted < books->run_delay) {
		/* What it has waited this time is known only if it was the first time. */
		books = renewed_books(task, counted, arrivals == 1 ? 0 : arrivals);
		if (!books)
			return 0;
		if (arrivals != 1) {
			COUNT(missed, 1);
			return 0;
		}
	}
	/* The task may be about to sleep. */
	note_queue(books, task, NOT_KNOWN);
	u64 waits = unseen(books, arrivals), ns = counted - books->run_delay;
	books->arrivals = arrivals;
	books->run_delay = counted;
	if (waits > 1)
		miss(books, waits, ns);
	u64 longest = longest_without_sleep(books, task);
	if (waits != 1)
		return 0;
	if (ns > longest)
		return leave_out_sleep(books, ns);
	COUNT(caught_up, 1);
	/* From when on it runs is not known: its turn is nobody's. */
	wait_ended(task, books, 0, number, cpu, ns);
	return 0;
}

/* The task was preempted when it was about to sleep: to the kernel that is no wait. */
APART int runs_without_stamp(struct task_books *books, struct task_struct *task)
{
	COUNT(unstamped, 1);
	if (books) {
		books->unstamped++;
		books->moves = moves_of(task);
		note_queue(books, task, task->nvcsw);
	}
	return 0;
}

/* The task waits longer than its stamp tells, or the stamp is wrong. 1 if the wait is not counted. */
APART int is_odd(struct task_books *books, u64 earlier, u64 last, u64 clock, u64 queued)
{
	if (earlier) {
		COUNT(moved, 1);
		COUNT(moved_ns, earlier);
	}
	if (clock >= queued)
		return 0;
	COUNT(discarded, 1);
	if (books) {
		books->run_delay_before += earlier + last;
		books->arrivals_before++;
	}
	return 1;
}

/* The kernel has counted other waits since the task was seen last; 1 if any of these was not seen here. */
APART int has_missed(struct task_books *books, u64 arrivals, u64 earlier)
{
	u64 waits = unseen(books, arrivals);
	if (waits)
		miss(books, waits, earlier);
	return waits != 0;
}

/*
 * Whether the task may have slept since it was stamped. It was moved before the watch began, perhaps, if the stamp
 * is from before the first switch of this CPU that was seen.
 */
INLINE int may_have_slept(struct task_struct *task, struct cpu_row *cpu)
{
	u32 pid = task->pid;
	return FIELD_EXISTS(task->se.sched_delayed) && task->sched_info.last_queued < cpu->first_clock &&
	       !bpf_map_lookup_elem(&runnable_before, &pid);
}

/* Books for a task whose first wait that was seen has just ended. */
APART struct task_books *first_books(struct task_struct *task, struct cpu_row *cpu)
{
	u64 arrivals = task->sched_info.pcount, queued = task->sched_info.last_queued;
	struct task_books *books = renewed_books(task, task->sched_info.run_delay, arrivals);
	if (!books || !arrivals || !queued)
		return books;
	if (may_have_slept(task, cpu))
		books->moves = MOVED_ASLEEP;
	else
		COUNT(first, 1);
	return books;
}

/* The task is switched to, and its `turn` begins. */
INLINE void switch_in(struct task_struct *task, struct turn *turn, u32 number, struct cpu_row *cpu)
{
	u64 counted = task->sched_info.run_delay;
	u64 arrivals = task->sched_info.pcount;
	struct task_books *books = books_of(task);
	/* The kernel's own sums only grow. */
	if (COLD(!books || arrivals < books->arrivals || counted < books->run_delay))
		books = first_books(task, cpu);
	u64 queued = task->sched_info.last_queued;
	if (COLD(!queued)) {
		note_runner(turn, books, task);
		runs_without_stamp(books, task);
		return;
	}
	u64 clock = turn->clock, earlier = 0, last = clock - queued;
	u64 longest = longest_without_sleep(books, task);
	if (HOT(books)) {
		earlier = counted - books->run_delay;
		if (COLD(arrivals != books->arrivals || books->unstamped) &&
		    has_missed(books, arrivals, earlier))
			earlier = 0;
		books->run_delay = counted + last;
		books->arrivals = arrivals + 1;
	}
	u64 ns = earlier + last;
	if (COLD(ns > longest && clock >= queued)) {
		note_runner(turn, books, task);
		leave_out_sleep(books, ns);
	} else if (HOT(!earlier && clock >= queued) || !is_odd(books, earlier, last, clock, queued)) {
		wait_ended(task, books, turn, number, cpu, ns);
		if (COLD(ns >= LEAST_LONG))
			keep_long_wait(task, books, cpu, ns, last);
	} else {
		note_runner(turn, books, task);
	}
	if (HOT(books))
		note_queue(books, task, task->nvcsw);
}

/* Another task runs here than was switched to last. Nothing is known of who ran before the first switch. */
APART int runs_unseen(struct task_struct *task, u32 number, struct cpu_row *cpu)
{
	struct turn *last = turn_at(number, cpu->switches - 1);
	if (last)
		last->tenure = 0;
	stopped_unseen(cpu->runs);
	if (cpu->switches && task->pid)
		catch_up(task, number, cpu);
	return 0;
}

SEC("tp_btf/sched_switch") int watch_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];
	struct task_struct *next = (void *)ctx[2];
	struct task_struct___state *older = (void *)prev;
	u32 number = switching_cpu(prev);
	struct cpu_row *cpu = bpf_map_lookup_elem(&cpu_rows, &number);
	struct turn *turn = cpu ? turn_at(number, cpu->switches) : 0;
	/* A CPU that was not among those that there may be when the watch began. */
	if (COLD(!turn))
		return COUNT(missed, next->pid != 0);
	if (COLD(cpu->runs != (u32)prev->pid) && !has_new_number(prev, cpu->runs))
		runs_unseen(prev, number, cpu);
	if (FIELD_EXISTS(prev->throttled) && COLD(prev->throttled))
		note_stopped(prev);
	u64 state = FIELD_EXISTS(prev->__state) ? prev->__state : older->state;
	if (COLD(state & TASK_DEAD))
		forget_task(prev);
	begin_turn(turn, next, cpu);
	struct turn *last = turn_at(number, cpu->switches - 1);
	/* Only turns that can take much of a long wait are worth another look. */
	if (last && last->tenure && COLD(turn->clock - last->clock >= LEAST_LONG / 8))
		end_turn(last, prev);
	if (COLD(!cpu->switches)) {
		cpu->first_irq = cpu->irq;
		cpu->first_clock = turn->clock;
	}
	u32 runs = next->pid;
	cpu->switches++;
	cpu->runs = runs;
	/* Idle never waits, and belongs to no series. */
	if (runs)
		switch_in(next, turn, number, cpu);
	else
		turn->tenure = 0;
	return 0;
}

/* A task that sleeps in a queue is moved to another CPU. */
APART int sleeper_moves(struct task_struct *task, struct task_books *books)
{
	u64 counted = task->sched_info.run_delay, arrivals = task->sched_info.pcount;
	if (!books)
		books = renewed_books(task, counted, arrivals);
	if (!books)
		return 0;
	/* When it is moved again, the kernel has counted that it waited between both. */
	if (books->moves == MOVED_ASLEEP && books->arrivals == arrivals) {
		u64 ns = counted - books->run_delay;
		COUNT(asleep_ns, ns);
		books->run_delay_before += ns;
		books->run_delay = counted;
	}
	books->moves = MOVED_ASLEEP;
	return 0;
}

/* A task is moved to another CPU, mostly one that wakes. The kernel counts the move just after this. */
SEC("tp_btf/sched_migrate_task") int watch_move(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct task_books *books = books_of(task);
	u32 number = switching_cpu(task);
	/* It may be asked to move to where it is. */
	int moves = number != (u32)ctx[1];
	if (!books && moves && !task->sched_info.pcount && task->sched_info.run_delay)
		books = renewed_books(task, task->sched_info.run_delay, 0);
	if (books && moves)
		leave_queue(task, books, bpf_map_lookup_elem(&cpu_rows, &number), number);
	if (!FIELD_EXISTS(task->se.sched_delayed))
		return 0;
	if (COLD(task->se.sched_delayed))
		return sleeper_moves(task, books);
	/* A move that was not seen before stays one. */
	if (books && moves && books->moves == moves_of(task))
		books->moves++;
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
	if (!FIELD_EXISTS(task->se.sched_delayed))
		lacks |= LACKS_SLEEP_IN_QUEUES;
	return lacks;
}

char LICENSE[] SEC("license") = "GPL";
