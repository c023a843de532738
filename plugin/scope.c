// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sees, from outside of a guest, each section of its kernel with interrupts off
 * or preemption off. For one CPU, instructions counted. This is where the emulator
 * begins and ends with the plugin.
 *
 * Arguments: out=N, the descriptor to write to; plan=N, that of a plan to read.
 * Without a plan, it writes the kernel's memory, page by page, as soon as the
 * first process runs, and ends the emulator: what it wrote holds the kernel's
 * symbols and its unwind tables, of which the plan is made.
 *
 * All that is written and read are words of 64 bits, in the order of this machine.
 */
#include "arch.h"

struct told told;
const struct arch *arch;

static const struct arch *const archs[] = { &x86, &arm64 };

/* QEMU shows what a plugin says by its own means only if it is asked to (-d plugin). */
void give_up(const char *why)
{
	size_t length = 0;

	while (why[length])
		length++;
	_exit(write(STDERR, why, length) < 0 ? 2 : 1);
}

static void at_exit(plugin_id id, void *data)
{
	const uint64_t words[] = { count_now(), first_process.has_begun, first_process.count,
				   first_process.ns, told.sections, told.outside, told.sites_lost,
				   told.sections_unlisted, told.times_lost, told.disagreements,
				   told.odd_writes, told.corrected, told.failed_reads,
				   told.looked_lost, told.edges, told.edges_lost, told.tasks,
				   told.priority_masks, told.depths, told.locks, told.calls_lost };

	put_edges();
	put_sections();
	put_record(END, words, sizeof(words) / sizeof(*words));
	flush();
}

static void at_cpu(plugin_id id, unsigned int cpu)
{
	if (plan.magic)
		find_counters(cpu);
	if (!find_registers())
		give_up("scope: a register is missing\n");
}

/* The number of NAME=NUMBER; -1 if it is another name. */
static int number_of(const char *argument, const char *name)
{
	int number = 0;

	while (*name && *argument == *name)
		argument++, name++;
	if (*name || *argument++ != '=')
		return -1;
	for (; *argument >= '0' && *argument <= '9' && number < 100000; argument++)
		number = number * 10 + *argument - '0';
	return number;
}

EXPORT int qemu_plugin_version = PLUGIN_VERSION;

EXPORT int qemu_plugin_install(plugin_id id, const struct machine_info *info, int count,
			       char **arguments)
{
	int i, out_fd = -1, plan_fd = -1;

	for (i = 0; i < count; i++) {
		int out = number_of(arguments[i], "out"), in = number_of(arguments[i], "plan");

		out_fd = out >= 0 ? out : out_fd;
		plan_fd = in >= 0 ? in : plan_fd;
	}
	for (i = 0; i < (int)(sizeof(archs) / sizeof(*archs)); i++)
		if (!strcmp(info->target, archs[i]->target))
			arch = archs[i];
	if (!arch || !info->is_system || info->cpus.most != 1)
		give_up("scope: the machine has another architecture, or several CPUs\n");
	write_to(out_fd);
	qemu_plugin_register_vcpu_init_cb(id, at_cpu);
	if (plan_fd < 0) {
		qemu_plugin_register_vcpu_tb_trans_cb(id, translate_for_memory);
		return 0;
	}
	if (!read_plan(plan_fd))
		give_up("scope: the plan cannot be read\n");
	if (!make_room_for_sections() || (plan.functions && !make_room_for_times()))
		give_up("scope: there is no memory left\n");
	make_counters();
	{
		const uint64_t head[] = { SCOPE_MAGIC, FORMAT, plan.shift, plan.from, plan.to };

		put(head, sizeof(head));
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_flush_cb(id, at_flush);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
