/* SPDX-License-Identifier: GPL-2.0 */
/* The programs that follow wakeups, in contexts that the test makes up. */
#include "beginnings.h"

/* What the test says, and what the programs made of it. */
struct words {
	/* The registers that the kernel keeps of what was interrupted, and whether the stack of interrupts is used. */
	u64 registers;
	u64 is_stack_used;
	u64 irq_depth;
	u64 mode;
	u64 has_stack;
};

MAP(MAP_ARRAY, u32, struct words, 1, MAP_MMAPABLE) words SEC(".maps");

INLINE struct words *all_words(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&words, &zero);
}

INLINE struct wakeup *a_wakeup(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&blank_wakeup, &zero);
}

/* A wakeup is begun in this context. */
SEC("raw_tp/sched_switch") int look(u64 *ctx)
{
	struct words *all = all_words();
	struct wakeup *wakeup = a_wakeup();
	struct cpu *cpu = this_cpu();
	if (!all || !wakeup || !cpu)
		return -1;
	/* The first words are where the kernel has these variables. */
	cpu->runqueue = (u64)all;
	cpu->irq_depth = all->irq_depth;
	/* The stack is of use also where the task itself was interrupted. */
	wakeup->softirq = 1;
	wakeup->stack_bytes = 0;
	look_at_interrupted(ctx, cpu, wakeup, (void *)bpf_get_current_task(), 1);
	all->mode = wakeup->mode;
	all->has_stack = wakeup->stack_bytes > 0;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
