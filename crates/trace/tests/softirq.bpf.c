/* SPDX-License-Identifier: GPL-2.0 */
/* The programs that follow wakeups, and beside them the begin of a softirq that the test makes up. */
#include "wakeups.bpf.c"

struct words {
	/* When the softirq began that goes on, as the programs have it; 0 if none does. */
	u64 began;
};

MAP(MAP_ARRAY, u32, struct words, 1, MAP_MMAPABLE) words SEC(".maps");

SEC("raw_tp/sched_switch") int make_up_softirq(u64 *ctx)
{
	struct cpu *cpu = this_cpu();
	if (!cpu)
		return -1;
	cpu->softirq_entry = 1;
	return 0;
}

SEC("raw_tp/sched_switch") int look_at_softirq(u64 *ctx)
{
	u32 zero = 0;
	struct words *all = bpf_map_lookup_elem(&words, &zero);
	struct cpu *cpu = this_cpu();
	if (!cpu || !all)
		return -1;
	all->began = cpu->softirq_entry;
	return 0;
}
