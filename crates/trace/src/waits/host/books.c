/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The books of bpf/waits.h on a machine that is drawn: threads sleep, in a queue or not, wake, are preempted,
 * moved, stopped by a quota, lent a priority, end and begin again, and take over the numbers of others by exec. It
 * counts its threads' waits as the kernel does. Some switches are not shown to the programs, if that is asked for.
 * Compiled with few RUNNERS, tasks make room for others.
 *
 * books SEED STOPS_QUEUES MISSES: prints nothing if all is well.
 */
#include "waits.h"

#define THREADS 6
/* The first ones have a real-time priority, and are not moved. */
#define URGENTS 2
#define CPUS 2

/* The priority of the first ones, and the one that they are lent. */
#define URGENT_PRIO 50
#define LENT 40

enum where { SLEEPS, WAITS, RUNS };

static struct thread {
	struct task_struct task;
	enum where where;
	/* The wait as it is: since when, and how long queues had been throttled then. */
	u64 since, stopped;
	u32 kind, moved;
	int counts, may_be_stopped;
	/*
	 * Since when it is there, by the queue's clock, what interrupts had taken there by then, and who ran since, by
	 * number, and with or without a priority that it was lent.
	 */
	u64 here_since, here_interrupts, ran[THREADS][2];
	/* Since when it runs as it does, and what they had taken then. */
	u64 runs_since, runs_interrupts;
	/* Whether it was lent a priority. */
	u32 is_lent;
	/* How long real-time tasks were throttled there by then. */
	u64 held_back;
} threads[THREADS];
static struct rq rqs[CPUS];
static struct cfs_rq queues[CPUS], *of_group[CPUS];
static struct task_group group = { of_group };
static struct task_struct idle = { .left = 1 };
static struct waits rows[100], blank;
static int has_row[100];
static u64 back[THREADS + 1];
static struct wait_counts books;
static struct control asked = { .start = 100000 };
static u64 truth_sum[WAIT_KINDS], truth_count[WAIT_KINDS], truth_stopped;
static int stops_queue_of[CPUS];
/* How long real-time tasks have been throttled, up to the last switch, and when that was. */
static u64 throttled_for[CPUS], switched[CPUS], truth_held;
static u64 seed, misses, named, lendings;

void *bpf_map_lookup_elem(void *map, const void *key)
{
	u32 pid = *(const u32 *)key;
	if (map == &came_back)
		return pid <= THREADS ? &back[pid] : 0;
	if (map == &waits_of)
		return has_row[pid] ? &rows[pid] : 0;
	return map == &blank_waits ? (void *)&blank : map == &wait_counts ? (void *)&books : &asked;
}

long bpf_map_update_elem(void *map, const void *key, const void *value, u64 flags)
{
	u32 pid = *(const u32 *)key;
	if (map == &came_back) {
		back[pid] = *(const u64 *)value;
		return 0;
	}
	/* The last has no room. */
	if (pid == THREADS)
		return -1;
	memcpy(&rows[pid], value, sizeof(blank));
	has_row[pid] = 1;
	return (long)map & flags & 0;
}

static u64 draw(u64 below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % below;
}

static void check(int holds, const char *what, u64 a, u64 b)
{
	if (!holds) {
		printf("%s: %llu, %llu\n", what, a, b);
		exit(1);
	}
}

/* How long the queue was throttled so far. */
static u64 stopped_on(u32 cpu) { return throttled_time(&queues[cpu]); }

static int is_shown(void) { return !misses || draw(misses); }

static void enqueue(struct thread *t, u32 cpu)
{
	t->task.se.nr_migrations += t->task.cpu != cpu;
	t->task.cpu = cpu;
	t->task.se.cfs_rq = &queues[cpu];
	if (!t->task.sched_info.last_queued)
		t->task.sched_info.last_queued = rqs[cpu].clock;
}

static void dequeue(struct thread *t)
{
	u64 *since = &t->task.sched_info.last_queued;
	if (*since)
		t->task.sched_info.run_delay += rqs[t->task.cpu].clock - *since;
	*since = 0;
}

static u64 held_back_on(u32 cpu)
{
	return throttled_for[cpu] + (rqs[cpu].rt.rt_throttled ? rqs[cpu].clock - switched[cpu] : 0);
}

static int is_urgent(struct thread *t) { return t->task.prio < 100; }

/* It waits for this CPU from now on. */
static void comes_to(struct thread *t, u32 cpu)
{
	t->held_back = held_back_on(cpu);
	t->here_since = rqs[cpu].clock;
	t->here_interrupts = cpus_here[cpu].interrupts;
}

static void begins(struct thread *t, u32 kind)
{
	t->where = WAITS;
	comes_to(t, t->task.cpu);
	memset(t->ran, 0, sizeof(t->ran));
	t->since = now_ns;
	t->kind = kind;
	t->moved = 0;
	t->counts = now_ns >= asked.start && !t->task.left;
	t->may_be_stopped = !is_urgent(t) && (stops_queues || t->task.throttled);
	t->stopped = t->may_be_stopped ? -stopped_on(t->task.cpu) : 0;
}

/* How long this thread has run without a pause while the other one waited for its CPU, without interrupts. */
static u64 turn_beside(struct thread *t, struct thread *other)
{
	u64 clock = rqs[t->task.cpu].clock, since = t->runs_since;
	int is_whole = since > other->here_since;
	u64 from = is_whole ? since : other->here_since;
	u64 taken = cpus_here[t->task.cpu].interrupts - (is_whole ? t->runs_interrupts : other->here_interrupts);
	return clock > from ? clock - from - taken : 0;
}

/* A thread has run as it does, while others waited for its CPU. */
static void turn_is_over(struct thread *t)
{
	for (u32 i = 0; i < THREADS; i++)
		if (threads[i].where == WAITS && threads[i].task.cpu == t->task.cpu)
			threads[i].ran[t->task.pid - 1][t->is_lent] += turn_beside(t, &threads[i]);
}

/* The clock of a queue is behind by less than this. */
#define BEHIND 5000

/* Of the longest wait, which is this one, the programs name who ran longest, and for how long. */
static void check_runner(struct thread *t, struct thread *last, struct waits_of_kind *of)
{
	u32 pid = of->runner.pid;
	u64 *of_rank = &t->ran[0][0];
	u64 ran = pid ? t->ran[pid - 1][of->runner.prio == LENT] : 0, most = 0;
	named += pid != 0;
	u64 all = 0;
	for (u32 i = 0; i < 2 * THREADS; i++)
		all += of_rank[i];
	all = rows[t->task.pid].moved ? 0 : all;
	u64 ranks = of->worst_all_ran[ORDINARY] + of->worst_all_ran[URGENT];
	check(ranks == all, "all", ranks, all);
	/* Since when one that was moved is there, another clock tells. */
	u64 unsure = rows[t->task.pid].moved ? BEHIND : 0;
	check(of->worst_ran <= ran + unsure, "ran", of->worst_ran, ran);
	/* There is a place for each, or some are few; and who is moved does not look who ran there. */
	int all_are_known = RUNNERS >= THREADS + URGENTS && !unsure;
	for (u32 i = 0; all_are_known && i < 2 * THREADS; i++)
		most = of_rank[i] > most ? of_rank[i] : most;
	if (!all_are_known && last)
		most = turn_beside(last, t);
	/* The queue's clock may say more than the wait's own. */
	most = most < of->worst ? most : of->worst;
	check(of->worst_ran + unsure >= most, "most", of->worst_ran, most);
}

static void ends(struct thread *t, struct thread *last, int is_seen)
{
	u64 ns = now_ns - t->since;
	u64 stopped = t->stopped + (t->may_be_stopped ? stopped_on(t->task.cpu) : 0);
	if (is_urgent(t)) {
		stopped = held_back_on(t->task.cpu) - t->held_back;
		truth_held += stopped;
	}
	stopped = stopped < ns ? stopped : ns;
	u32 kind = stopped && stopped >= ns - stopped ? WAIT_THROTTLED : t->moved ? WAIT_MIGRATED : t->kind;
	if (!t->counts || t->task.pid == THREADS)
		return;
	truth_sum[kind] += ns;
	truth_count[kind]++;
	truth_stopped += stopped;
	struct waits_of_kind *of = &rows[t->task.pid].of[kind];
	if (is_seen && !misses && of->worst == ns && of->worst_at == t->since)
		check_runner(t, last, of);
}

static void wakes(struct thread *t, u32 cpu)
{
	if (t->where == WAITS && !t->task.__state)
		return;
	t->task.__state = 0;
	t->task.se.sched_delayed = 0;
	if (t->where == SLEEPS) {
		/* The kernel reads the clock then: it is behind no stamp of another queue. */
		rqs[cpu].clock = now_ns;
		enqueue(t, cpu);
		begins(t, WAIT_WOKEN);
	}
	/* Others are told of as well, which had only been about to sleep. */
	current = &idle;
	if (!is_shown())
		return;
	/* A wait that began before the run begins once more, for the programs, when its thread is woken again. */
	if (t->where == WAITS && !t->counts && now_ns >= asked.start && !t->task.left && t->task.sched_info.last_queued)
		begins(t, WAIT_WOKEN);
	on_wakeup_of_others((u64[]){ (u64)&t->task });
}

static struct thread *of_cpu(u32 cpu, enum where where)
{
	u32 first = draw(THREADS);
	for (u32 i = 0; i < THREADS; i++) {
		struct thread *t = &threads[(first + i) % THREADS];
		if (t->where == where && t->task.cpu == cpu &&
		    !(where == WAITS && (t->task.throttled || (stops_queues && stops_queue_of[cpu]))))
			return t;
	}
	return 0;
}

static void switches(u32 cpu)
{
	struct thread *prev = of_cpu(cpu, RUNS), *next = of_cpu(cpu, WAITS);
	u64 preempts = 0;
	if (prev) {
		u32 how = draw(4);
		preempts = how < 2;
		prev->task.__state = how == 1 ? draw(2) : how == 2;
		if (how == 3 && !is_urgent(prev) && !stops_queues && stops_queue_of[cpu]) {
			if (!queues[cpu].throttled_clock_self)
				queues[cpu].throttled_clock_self = rqs[cpu].clock;
			prev->task.throttled = 1;
		}
	}
	if (prev == next)
		return;
	u64 ctx[3] = { preempts, (u64)(prev ? &prev->task : &idle), (u64)(next ? &next->task : &idle) };
	here = cpu;
	current = (void *)ctx[1];
	/* What each switch asks first (`on_switch`). */
	int is_asked = words_here[cpu].threads || !is_stranger((void *)ctx[1]) || !is_stranger((void *)ctx[2]);
	int is_seen = is_shown() && is_asked;
	rqs[cpu].curr = (void *)ctx[2];
	idle.se.cfs_rq = &queues[cpu];
	/* Throttling begins and ends with a switch. */
	throttled_for[cpu] = held_back_on(cpu);
	switched[cpu] = rqs[cpu].clock;
	rqs[cpu].rt.rt_throttled = !draw(4);
	if (prev)
		turn_is_over(prev);
	if (is_seen)
		follow_waits(ctx, &cpus_here[cpu], cpu);
	if (next)
		ends(next, prev, is_seen);
	if (prev) {
		prev->task.on_cpu = 0;
		prev->where = SLEEPS;
		if (preempts || !prev->task.__state)
			begins(prev, WAIT_PREEMPTED);
		if (!prev->task.__state)
			enqueue(prev, cpu);
		prev->task.se.sched_delayed = prev->where == SLEEPS && draw(2);
	}
	if (next) {
		dequeue(next);
		next->task.sched_info.last_arrival = rqs[cpu].clock;
		next->runs_since = rqs[cpu].clock;
		next->runs_interrupts = cpus_here[cpu].interrupts;
		next->where = RUNS;
		next->task.on_cpu = 1;
	}
}

static void moves(struct thread *t)
{
	u32 to = !t->task.cpu;
	/* One that sleeps leaves its queue in the end. */
	if (t->where == SLEEPS && !draw(3))
		t->task.se.sched_delayed = 0;
	int sleeps_here = t->where == SLEEPS && t->task.se.sched_delayed;
	if (is_urgent(t) || (t->where != WAITS && !sleeps_here))
		return;
	dequeue(t);
	wait_moves(&t->task, to);
	if (sleeps_here) {
		enqueue(t, to);
		return;
	}
	if (t->may_be_stopped)
		t->stopped += stopped_on(t->task.cpu);
	t->may_be_stopped = stops_queues || t->task.throttled;
	if (t->may_be_stopped)
		t->stopped -= stopped_on(to);
	enqueue(t, to);
	t->moved = 1;
	comes_to(t, to);
	memset(t->ran, 0, sizeof(t->ran));
}

static void throttles_or_not(u32 cpu)
{
	struct cfs_rq *queue = &queues[cpu];
	stops_queue_of[cpu] = !stops_queue_of[cpu];
	if (stops_queue_of[cpu] && stops_queues)
		queue->throttled_clock_self = rqs[cpu].clock;
	if (stops_queue_of[cpu] || !queue->throttled_clock_self)
		return;
	queue->throttled_clock_self_time += rqs[cpu].clock - queue->throttled_clock_self;
	queue->throttled_clock_self = 0;
	for (u32 i = 0; i < THREADS; i++)
		if (threads[i].task.cpu == cpu)
			threads[i].task.throttled = 0;
}

/* Its name changes to one that is not followed, or back. A wait that began before is still one of its own. */
static void is_renamed(struct thread *t)
{
	if (misses)
		return;
	on_rename((u64[]){ (u64)&t->task });
	t->task.left = !t->task.left;
}

static void is_gone(struct thread *t)
{
	if (t->where != SLEEPS)
		return;
	end_of_waits(&t->task);
	t->task.start_time = now_ns;
	t->task.se.sched_delayed = 0;
	memset(&t->task.sched_info, 0, sizeof(t->task.sched_info));
}

/* A thread is lent a priority while it runs, or gives it back. */
static void is_lent_a_priority(struct thread *t)
{
	u32 cpu = t->task.cpu;
	if (t->where != RUNS || !is_urgent(t))
		return;
	turn_is_over(t);
	rank_changes(&t->task);
	t->is_lent = !t->is_lent;
	t->task.prio = t->is_lent ? LENT : URGENT_PRIO;
	t->runs_since = rqs[cpu].clock;
	t->runs_interrupts = cpus_here[cpu].interrupts;
	lendings += words_here[cpu].threads != 0;
}

/* A thread calls exec: it takes over the number of its process, whose first thread ends. */
static void calls_exec(struct thread *t, struct thread *first)
{
	u32 number = t->task.pid, process = first->task.pid;
	if (t->where != RUNS || first->where != SLEEPS || number == THREADS || process == THREADS)
		return;
	/* It would be that of a process which it has left; and who runs while others wait is known by its number. */
	if (rows[process].thread == (u64)&t->task || words_here[t->task.cpu].threads)
		return;
	t->task.pid = process;
	first->task.pid = number;
	is_gone(first);
}

static struct thread *thread_of(u32 number)
{
	u32 i = 0;
	while (threads[i].task.pid != number)
		i++;
	return &threads[i];
}

static void compare(void)
{
	u64 open = 0, ended = 0, stopped = 0, asleep = 0, away = 0;
	for (u32 pid = 1; pid <= THREADS; pid++) {
		struct waits *row = &rows[pid];
		struct thread *t = thread_of(pid);
		open += row->since != 0;
		for (u32 kind = 0; kind < WAIT_KINDS; kind++) {
			ended += row->of[kind].count;
			stopped += row->of[kind].stopped;
			truth_sum[kind] -= row->of[kind].sum;
			truth_count[kind] -= row->of[kind].count;
		}
		asleep += row->asleep;
		away += row->away;
		check(row->by_clock + row->unseen + row->asleep == row->run_delay, "run_delay", row->by_clock,
		      row->run_delay);
		if (row->thread == (u64)&t->task && t->where == RUNS && !misses && !was_away(row, &t->task) &&
		    !t->task.left)
			check(row->run_delay_earlier + t->task.sched_info.run_delay - row->run_delay_base ==
				      row->run_delay, "the kernel's", row->run_delay, pid);
	}
	check(books.begun == ended + open + books.broken, "begun", books.begun, ended + open);
	check(books.ended == ended, "ended", books.ended, ended);
	u32 waiting = words_here[0].threads + words_here[1].threads;
	check(waiting == open, "open", waiting, open);
	check(misses || named, "nobody was named", named, 0);
	check(lendings > 20, "too few priorities were lent", lendings, 0);
	check(ended > 1000 && books.no_room > 10, "too few", ended, books.no_room);
	check(misses || truth_held > 10000, "too little throttled", truth_held, 0);
	check(asleep > 10000, "too little sleep in queues", asleep, 0);
	check(misses || away > 10000, "too little time away", away, 0);
	if (misses) {
		check(books.ends_missed && books.begins_missed, "nothing missed", books.ends_missed, 0);
		return;
	}
	check(!books.ends_missed && !books.begins_missed && !books.broken, "missed", books.ends_missed,
	      books.begins_missed);
	for (u32 kind = 0; kind < WAIT_KINDS; kind++) {
		check(!truth_sum[kind], "sum differs", kind, truth_sum[kind]);
		check(!truth_count[kind], "count differs", kind, truth_count[kind]);
	}
	check(stopped == truth_stopped && stopped, "stopped", stopped, truth_stopped);
}

/* A deadline task waits for its next period if it is woken before that with its time used up, whoever runs. */
static void check_deadline_task(u32 number, u32 is_throttled, u32 kind)
{
	struct task_struct task = { .pid = number, .prio = -1, .dl = { is_throttled }, .se = { &queues[0] } };
	u64 woken[] = { (u64)&task }, switched_to[] = { 0, (u64)&idle, (u64)&task };
	asked.start = now_ns;
	rqs[0].clock = task.sched_info.last_queued = now_ns;
	idle.se.cfs_rq = &queues[0];
	current = &idle;
	on_wakeup_of_others(woken);
	rqs[0].clock = now_ns += 1000;
	follow_waits(switched_to, &cpus_here[0], 0);
	struct waits_of_kind *of = &rows[number].of[kind];
	check(of->count == 1 && of->sum == 1000, "of a deadline task", of->count, of->sum);
	check(of->stopped == (is_throttled ? 1000 : 0), "of it stopped", of->stopped, is_throttled);
}

int main(int count, char **words)
{
	if (count != 4)
		return 2;
	seed = strtoull(words[1], 0, 10);
	now_ns = 500;
	stops_queues = atoi(words[2]);
	misses = atoi(words[3]);
	for (u32 cpu = 0; cpu < CPUS; cpu++) {
		cpus_here[cpu].runqueue = (u64)&rqs[cpu];
		of_group[cpu] = &queues[cpu];
		queues[cpu] = (struct cfs_rq){ .rq = &rqs[cpu], .tg = &group };
	}
	for (u32 i = 0; i < THREADS; i++)
		threads[i].task = (struct task_struct){ .pid = i + 1, .prio = i < URGENTS ? URGENT_PRIO : 120, .se = { queues } };
	for (u32 i = 0; i < 20000; i++) {
		struct thread *t = &threads[draw(THREADS)];
		u32 cpu = draw(CPUS);
		now_ns += 1 + draw(500);
		/* The queue's clock may stand still, and interrupts may come while it does not. */
		for (u32 c = 0; c < CPUS; c++) {
			if (!draw(3))
				continue;
			cpus_here[c].interrupts += draw(4) ? 0 : draw(now_ns - rqs[c].clock + 1);
			rqs[c].clock = now_ns;
		}
		switch (draw(9)) {
		case 0 ... 1: wakes(t, t->where == SLEEPS ? cpu : t->task.cpu); break;
		case 2 ... 4: switches(cpu); break;
		case 5: moves(t); break;
		case 6: throttles_or_not(cpu); break;
		case 7:
			switch (draw(6)) {
			case 0 ... 3: is_renamed(t); break;
			case 4: is_gone(t); break;
			case 5: calls_exec(t, &threads[draw(THREADS)]); break;
			}
			break;
		case 8: is_lent_a_priority(t); break;
		}
	}
	compare();
	/* The run is over, but programs are still attached: who waits then is open, although it ends. */
	u64 waited = words_here[0].threads + words_here[1].threads, broken = books.broken;
	asked.start = 0;
	for (u32 i = 0; i < THREADS; i++)
		end_of_waits(&threads[i].task);
	u64 waits = words_here[0].threads + words_here[1].threads;
	check(waits == waited && books.broken == broken, "open after the end", waits, waited);
	check_deadline_task(50, 1, WAIT_THROTTLED);
	check_deadline_task(51, 0, WAIT_WOKEN);
	return 0;
}
