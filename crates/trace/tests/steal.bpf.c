/* SPDX-License-Identifier: GPL-2.0 */
/* One wakeup on a CPU whose clock of stolen time the test sets. */
#include "state.h"

/* Read in place of the kernel's. */
static u64 reading;
#define stolen(cpu) reading
#include "steal.h"

#define BEFORE 12

struct words {
	/* Events that the CPU saw before the wakeup began, with the readings at them. */
	u64 count;
	struct {
		u64 at;
		u64 steal;
	} event[BEFORE];
	u64 due;
	/* When it began, was switched to, and was answered, with the readings then. */
	struct {
		u64 at;
		u64 steal;
	} point[3];
	/* What was stolen of it. */
	u64 stolen;
};

MAP(MAP_ARRAY, u32, struct words, 1, MAP_MMAPABLE) words SEC(".maps");

SEC("raw_tp/sched_switch") int follow(u64 *ctx)
{
	u32 zero = 0;
	struct words *all = bpf_map_lookup_elem(&words, &zero);
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	struct wakeup *wakeup = bpf_map_lookup_elem(&blank_wakeup, &zero);
	if (!all || !cpu || !wakeup)
		return -1;
	/* Its clock is known to be readable from here. */
	cpu->runqueue = 1;
	cpu->seen = 0;
	for (u32 i = 0; i < BEFORE; i++) {
		if (i >= all->count)
			break;
		reading = all->event[i].steal;
		next_event(cpu, SWITCH, all->event[i].at)->steal_ns = reading;
	}
	wakeup->due = all->due;
	reading = all->point[0].steal;
	begin_stolen(wakeup, cpu, all->point[0].at);
	add_stolen(wakeup, all->point[1].steal, all->point[1].at);
	add_stolen(wakeup, all->point[2].steal, all->point[2].at);
	all->stolen = wakeup->stolen;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
