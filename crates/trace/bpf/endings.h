/* SPDX-License-Identifier: GPL-2.0 */
/* How wakeups end: they are counted, and leave the kernel if they were late. */
#pragma once

#include "runners.h"
#include "stacks.h"
#include "state.h"
#include "steal.h"
#include "waiting.h"

INLINE u32 bucket_of(u64 value)
{
	u32 shift = 0;
	u64 rest = value >> (KEPT_BITS + 1);
#pragma unroll
	for (u32 step = 16; step; step /= 2) {
		if (rest >> step) {
			rest >>= step;
			shift += step;
		}
	}
	if (rest)
		shift++;
	u32 bucket = (shift << KEPT_BITS) + (u32)(value >> shift);
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

/*
 * Which bucket it is has 33 ways, and six of these follow one another: inlined, they made two programs 290,000
 * instructions for the verifier, of a million that it allows, and half a second of the start each (6.18).
 */
ONCE int count(u32 place, u32 component, u64 value, u64 due)
{
	u32 index = place * COMPONENTS + component;
	struct figures *all = bpf_map_lookup_elem(&figures, &index);
	if (!all)
		return 0;
	u32 bucket = bucket_of(value);
	if (bucket < BUCKETS)
		all->buckets[bucket]++;
	if (!all->count || value < all->min)
		all->min = value;
	if (!all->count || value > all->max) {
		all->max = value;
		all->max_due = due;
	}
	all->sum += value;
	all->count++;
	return 0;
}

/* What must hold for points to part a wakeup: they are there, and follow one another. */
INLINE u64 point(u64 at, u64 least, u64 most)
{
	return at < least ? least : at > most ? most : at;
}

INLINE void count_components(struct wakeup *wakeup, u32 place)
{
	u64 due = wakeup->due;
	u64 end = wakeup->response;
	u64 entry = wakeup->irq_entry ? point(wakeup->irq_entry, due, end) : due;
	u64 exit = wakeup->irq_exit ? point(wakeup->irq_exit, entry, end) : entry;
	u64 sched = wakeup->sched_entry ? point(wakeup->sched_entry, exit, end) : end;
	/* The usual one is what the delivery of a timer's interrupt takes: who waited for none says nothing of it. */
	if (wakeup->irq_entry >= due)
		count(place, IRQ_LATENCY, entry - due, due);
	count(place, HANDLER_DURATION, exit - entry, due);
	count(place, SCHED_LATENCY, sched - exit, due);
	if (wakeup->sched_entry)
		count(place, SCHED_DURATION, end - sched, due);
	count(place, WAKEUP_LATENCY, end - due, due);
	if (steal_time_place.is_known)
		count(place, NET_OF_STEAL, end - due - wakeup->stolen, due);
}

/*
 * Puts the switches while it waited that came before the event `first` in the place of the oldest events.
 * Where there are fewer, the rest of these places hold nothing. Places are fixed, since the verifier
 * follows each value of a count. `in_interrupts` is what the CPU's have taken until the response.
 */
INLINE void fill_old_switches(struct long_record *record, struct wakeup *wakeup, struct cpu *cpu,
			      u64 first, u64 in_interrupts)
{
	record->head.events_lost += SWITCHES;
#pragma nounroll
	for (u32 i = 0; i < SWITCHES; i++) {
		u64 place = cpu->switches + i - SWITCHES;
		struct kept_switch *kept = &cpu->last_switches[place & (SWITCHES - 1)];
		record->event[i].kind = NO_EVENT;
		if ((s64)place < (s64)wakeup->switches_before || kept->number >= first)
			continue;
		bpf_probe_read_kernel(&record->event[i], sizeof(struct event), &kept->event);
		record->head.events_lost--;
	}
	struct kept_switch *oldest = &cpu->last_switches[cpu->switches & (SWITCHES - 1)];
	if (cpu->switches - wakeup->switches_before <= SWITCHES)
		return;
	if (oldest->number < first) {
		record->head.switches_from = oldest->event.at_ns;
		record->head.in_interrupts = grown(in_interrupts, oldest->interrupts);
	} else {
		/* From here on nothing was lost. */
		record->head.switches_from = record->event[SWITCHES].at_ns;
		record->head.in_interrupts = 0;
	}
}

/* Fills a record that has room for so many events, a power of two. */
INLINE void fill(struct long_record *record, u32 room, struct wakeup *wakeup, struct cpu *cpu)
{
	bpf_probe_read_kernel(&record->head.wakeup, sizeof(record->head.wakeup), wakeup);
	/* A few from before it began: the interrupt that it began in, and what was held up by. */
	u64 last = cpu->seen;
	u64 first = last > room ? last - room : 0;
	u64 lost = first > wakeup->events_before ? first - wakeup->events_before : 0;
	lost += wakeup->events_elsewhere;
	/* A thread may wait for days, beside a million events a second. That many are as good as all. */
	record->head.events_lost = lost < MOST_LOST ? lost : MOST_LOST;
	record->head.switches_from = 0;
	/* The task may be moved away while its CPU is in an interrupt or softirq. */
	struct taken by_then;
	taken_until(&by_then, cpu, wakeup->response);
	record->head.in_interrupts = grown(by_then.all, wakeup->interrupts_before);
	record->head.taken.all = grown(by_then.all, wakeup->taken_before.all);
	record->head.taken.softirqs = grown(by_then.softirqs, wakeup->taken_before.softirqs);
	record->head.taken.nmis = grown(by_then.nmis, wakeup->taken_before.nmis);
	u32 taken = 0;
#pragma nounroll
	for (u32 i = 0; i < room; i++) {
		u64 index = first + i;
		if (index >= last)
			break;
		bpf_probe_read_kernel(&record->event[i & (room - 1)], sizeof(struct event),
				      &cpu->ring[index & (RING - 1)]);
		taken++;
	}
	record->head.events = taken;
	if (COLD(first > wakeup->events_before))
		fill_old_switches(record, wakeup, cpu, first + SWITCHES, by_then.all);
}

/*
 * Hands over who ran while the thread waited whose wakeup ends. Its wait has just ended, if it was one; of one that was
 * moved nobody knows.
 */
INLINE void hand_runners_over(struct long_record *record, struct wakeup *wakeup, struct cpu *cpu)
{
	u32 pid = wakeup->task.pid;
	struct waits *waits = also_followed & ALL_WAITS ? bpf_map_lookup_elem(&waits_of, &pid) : 0;
	int is_its = waits && !waits->since && !waits->moved && waits->kind == WAIT_WOKEN &&
		     waits->began >= wakeup->woken;
#pragma nounroll
	for (u32 at = 0; at < RUNNERS; at++) {
		record->ran[at].task = cpu->runners[at].task;
		record->ran[at].ns = is_its ? ran_meanwhile(waits, &cpu->runners[at], at) : 0;
	}
	for (u32 rank = 0; rank < RANKS; rank++)
		record->all_ran[rank] = is_its ? cpu->all_ran[rank] - waits->all_ran_before[rank] : 0;
}

/* Hands it over with all that was seen, or says that there is no room for so much. */
INLINE int send_whole(struct wakeup *wakeup, struct cpu *cpu)
{
	struct long_record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!record)
		return 0;
	fill(record, RING, wakeup, cpu);
	hand_copy_over(&record->copy, wakeup);
	hand_runners_over(record, wakeup, cpu);
	bpf_ringbuf_submit(record, NO_WAKEUP);
	return 1;
}

INLINE int send_copied(struct wakeup *wakeup, struct cpu *cpu)
{
	struct copied_record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!record)
		return 0;
	fill((struct long_record *)&record->record, EVENTS, wakeup, cpu);
	hand_copy_over(&record->copy, wakeup);
	bpf_ringbuf_submit(record, NO_WAKEUP);
	return 1;
}

INLINE int send_short(struct wakeup *wakeup, struct cpu *cpu)
{
	struct record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!record)
		return 0;
	fill((struct long_record *)record, EVENTS, wakeup, cpu);
	bpf_ringbuf_submit(record, NO_WAKEUP);
	return 1;
}

/* Hands over the wakeup that is kept by this key, with the events of its CPU. 0 if there is no room. */
ONCE int send(u32 key)
{
	struct wakeup *wakeup = bpf_map_lookup_elem(&wakeups, &key);
	struct cpu *cpu = wakeup ? cpu_of(wakeup->cpu) : 0;
	struct cpu *here = this_cpu();
	if (!cpu || !here)
		return 0;
	here->traces = 1;
	/* What was lost explains nothing: long wakeups have more room, as far as there is any. */
	int is_long = cpu->seen - wakeup->events_before > EVENTS / 2;
	return (COLD(is_long) && send_whole(wakeup, cpu)) || (wakeup->copy && send_copied(wakeup, cpu)) ||
	       send_short(wakeup, cpu);
}

/*
 * How full the buffer of late wakeups is, in eighths. It is as large as CPUs ask for, and its records have several
 * lengths: their number does not tell what room there is, and a loader that is kept from reading makes none.
 */
INLINE u64 eighths_unread(void)
{
	u64 eighth = bpf_ringbuf_query(&records, RINGBUF_SIZE) / 8;
	return bpf_ringbuf_query(&records, RINGBUF_UNREAD) / eighth;
}

/*
 * What is late, as long as the loader has too few wakeups to say. What seems early now may be late in the end, so
 * everything is, while there is room; then an eighth of the worst so far; and then the worst. `latency` says of
 * which lateness: with or without stolen time.
 */
INLINE u64 late_so_far(u32 place, u32 latency, u64 unread)
{
	u32 index = place * COMPONENTS + latency;
	struct figures *seen = bpf_map_lookup_elem(&figures, &index);
	if (!seen || unread < ROOM_FOR_ALL)
		return 0;
	return unread < ROOM_FOR_LATE ? seen->max / 8 : seen->max;
}

/* Whether a wakeup that was due then counts: none does before the start, nor after the end. */
INLINE int counts_now(struct control *asked, u64 due)
{
	return asked->start && due >= asked->start;
}

/* Ends a wakeup: 1 if no other caller does. */
INLINE int end(struct wakeup *wakeup, struct cpu *cpu, struct task_struct *task, u32 place,
	       u64 response)
{
	u32 zero = 0;
	struct control *asked = bpf_map_lookup_elem(&control, &zero);
	struct counts *all = all_counts();
	if (!asked || !all || !close_wakeup(wakeup, all))
		return 0;
	wakeup->response = response;
	wakeup->steal_after = read_steal(cpu, wakeup->cpu);
	add_stolen(wakeup, wakeup->steal_after, response);
	wakeup->state = IDLE;
	if (!counts_now(asked, wakeup->due)) {
		__sync_fetch_and_add(&all->uncounted, 1);
		return 1;
	}
	if (response < wakeup->due)
		wakeup->response = response = wakeup->due;
	__sync_fetch_and_add(&all->wakeups, 1);
	u64 late = response - wakeup->due;
	if (wakeup->stolen > late)
		wakeup->stolen = late;
	u64 keep = asked->keep;
	u64 keep_net = steal_time_place.is_known ? asked->keep_net : ~0ULL;
	if (COLD(!keep)) {
		u64 unread = eighths_unread();
		keep = late_so_far(place, WAKEUP_LATENCY, unread);
		if (steal_time_place.is_known)
			keep_net = late_so_far(place, NET_OF_STEAL, unread);
	}
	count_components(wakeup, place);
	if (late >= keep || late - wakeup->stolen >= keep_net) {
		describe_woken(wakeup, task);
		int sent = send(key_of(wakeup->task.pid, wakeup));
		__sync_fetch_and_add(sent ? &all->records : &all->lost_records, 1);
	}
	return 1;
}

/*
 * When the wakeup was answered; 0 if it was not yet. A few answers are kept, not just the last: after
 * a late wakeup the next expiry may pass before its timer is there to expire. A kernel that then
 * does not queue the timer (7.2) shows nothing of that wakeup, and the thread has answered twice.
 */
INLINE u64 answer(struct wakeup *wakeup, struct answers *answers)
{
	u64 at = 0;
#pragma unroll
	for (u32 i = 0; i < ANSWERS; i++)
		if (answers->of[i].due == wakeup->due)
			at = answers->of[i].at;
	return at;
}

/* Makes room for the next wakeup of the same thread. */
INLINE void forget(struct wakeup *wakeup)
{
	wakeup->irq_entry = 0;
	wakeup->irq_exit = 0;
	wakeup->sched_entry = 0;
	wakeup->switch_in = 0;
	wakeup->response = 0;
	wakeup->interrupted_ip = 0;
	__builtin_memset(wakeup->code, 0, sizeof(wakeup->code));
	wakeup->mode = 0;
	wakeup->looked = 0;
	wakeup->interrupted.pid = 0;
	wakeup->softirq = 0;
	wakeup->idle = 0;
	wakeup->throttled = 0;
	wakeup->stack_bytes = 0;
	wakeup->copy = 0;
	wakeup->link = 0;
	wakeup->before_link = 0;
	wakeup->away_bytes = 0;
	wakeup->user_bytes = 0;
	wakeup->away_user_bytes = 0;
	wakeup->away_pid = 0;
	wakeup->away_switches = 0;
	wakeup->faults_before = 0;
	wakeup->faults_after = 0;
	wakeup->preempt_count = 0;
	wakeup->irqs_off = 0;
	wakeup->irqs_on = 0;
	wakeup->stolen = 0;
	wakeup->steal_read = 0;
	wakeup->events_elsewhere = 0;
	wakeup->moved_at = 0;
	wakeup->moved_steal = 0;
	wakeup->parts = 0;
	wakeup->queue = 0;
	wakeup->quota = 0;
}

/*
 * The next wakeup after this one, if the thread has answered that as well: it was due before the
 * thread slept, and no timer was set for it.
 */
INLINE void end_next(struct wakeup *wakeup, struct cpu *cpu, struct task_struct *task, u32 place,
		     struct answers *answers)
{
	u64 due = 0;
	u64 at = 0;
#pragma unroll
	for (u32 i = 0; i < ANSWERS; i++) {
		u64 other = answers->of[i].due;
		if (other > wakeup->due && (!due || other < due)) {
			due = other;
			at = answers->of[i].at;
		}
	}
	if (HOT(!due))
		return;
	forget(wakeup);
	wakeup->due = due;
	wakeup->woken = due;
	wakeup->stimulus = AWAKE;
	wakeup->stimulus_cpu = wakeup->cpu;
	begin_stolen(wakeup, cpu, bpf_ktime_get_ns());
	open_wakeup(wakeup, wakeup->cpu);
	end(wakeup, cpu, task, place, at);
}

/* Ends the wakeup of a thread that is named, if it says that it has answered. Whether it has. */
INLINE int answered(struct wakeup *wakeup, struct cpu *cpu, u32 pid, struct task_struct *task)
{
	u32 *slot = bpf_map_lookup_elem(&slots, &pid);
	struct answers *answers = slot ? bpf_map_lookup_elem(&responses, slot) : 0;
	u64 response = answers ? answer(wakeup, answers) : 0;
	if (!slot || !response)
		return 0;
	wakeup->faults_after = READ(task, min_flt) + READ(task, maj_flt);
	if (end(wakeup, cpu, task, *slot, response))
		end_next(wakeup, cpu, task, *slot, answers);
	return 1;
}
