// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which code gets a callback, when the emulator translates it.
 *
 * Only instructions that change something get one: those that turn interrupts on or
 * off, those that write the preempt count, the first of each entry into the kernel,
 * and those that halt or read the clock. All other code is only counted.
 */
#include "arch.h"

static bool was_in_kernel;

/* All translated code is thrown away: other code will have the addresses of what was kept for it. */
void at_flush(plugin_id id)
{
	forget_kept();
	forget_block();
	forget_blocks();
}

static struct place *new_place(uint64_t address, uint32_t left, unsigned int what)
{
	struct place *place = keep(sizeof(*place));

	*place = (struct place){ address, left, what, UNKNOWN, 0, NULL, 0 };
	find_unwind(place);
	return place;
}

/* Follows an instruction of the kernel if it changes anything. Returns whether what is behind it tells more. */
static bool follow(struct insn *insn, uint32_t left)
{
	uint8_t bytes[LONGEST + 2] = { 0 };
	uint64_t address = qemu_plugin_insn_vaddr(insn);
	size_t size = qemu_plugin_insn_data(insn, bytes, LONGEST);
	uint32_t how = 0;
	unsigned int what = arch->meaning_of(bytes, size, address, &how);
	struct place *place;

	if (what == NOTHING)
		return false;
	place = new_place(address, left, what);
	place->how = how;
	if (what >= OWN)
		arch->follow(insn, what, place);
	else
		qemu_plugin_register_vcpu_insn_exec_cb(insn, at_instruction, READS_REGISTERS, place);
	return what == CLOCK || (what == HALT && arch->goes_on_behind_halt);
}

/* Follows a place at which the kernel asks whether somebody else is to run. */
static void follow_ask(struct insn *insn, uint32_t left)
{
	const struct ask *ask = ask_at(qemu_plugin_insn_vaddr(insn));
	struct place *place;

	if (!ask)
		return;
	place = new_place(ask->address, left, NOTHING);
	place->how = ask->how;
	if (ask->how == BY_FLAGS)
		qemu_plugin_register_vcpu_mem_cb(insn, at_flags, READS_REGISTERS, LOADS, place);
	else
		qemu_plugin_register_vcpu_insn_exec_cb(insn, at_ask, READS_REGISTERS, place);
}

/* Where an instruction follows one that reads the clock or halts, which is the last of its block. */
#define BEHIND 1024
static uint64_t behind[BEHIND];

static void add_behind(uint64_t address)
{
	static unsigned int used;
	unsigned int at = address % BEHIND;

	while (behind[at] && behind[at] != address)
		at = (at + 1) % BEHIND;
	/* Half of the table stays empty, so that every search ends soon. */
	if (behind[at] || used == BEHIND / 2)
		return;
	behind[at] = address;
	used++;
}

static bool is_behind(uint64_t address)
{
	unsigned int at = address % BEHIND;

	while (behind[at] && behind[at] != address)
		at = (at + 1) % BEHIND;
	return behind[at];
}

static void translate_kernel(struct tb *tb, uint64_t address, size_t count)
{
	const struct entry *entry = entry_at(address);
	size_t i;

	if (entry && (entry->way <= BY_SYSTEM_CALL || plan.edges)) {
		struct place *place = new_place(address, 0, NOTHING);

		place->entry = entry;
		qemu_plugin_register_vcpu_tb_exec_cb(
			tb, entry->way <= BY_SYSTEM_CALL ? at_entry : at_function, READS_REGISTERS,
			place);
	}
	if (is_behind(address)) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, after_clock, READS_REGISTERS, NULL);
		if (arch->goes_on_behind_halt)
			qemu_plugin_register_vcpu_tb_exec_cb(tb, after_halt, READS_REGISTERS,
							     new_place(address, 0, NOTHING));
	}
	for (i = 0; i < count; i++) {
		struct insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (plan.asks)
			follow_ask(insn, count - 1 - i);
		if (follow(insn, count - 1 - i))
			add_behind(qemu_plugin_insn_vaddr(insn) + qemu_plugin_insn_size(insn));
	}
}

/* Programs read the clock without the kernel. */
static void translate_user(struct tb *tb, size_t count)
{
	uint8_t bytes[LONGEST + 2] = { 0 };
	size_t i;

	for (i = 0; i < count; i++) {
		struct insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);
		size_t size = qemu_plugin_insn_data(insn, bytes, LONGEST);
		uint32_t how;

		if (arch->meaning_of(bytes, size, address, &how) == CLOCK)
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, at_user_clock, READS_REGISTERS,
				new_place(address, count - 1 - i, CLOCK));
	}
}

void translate(plugin_id id, struct tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb);
	size_t count = qemu_plugin_tb_n_insns(tb);
	struct block *block = new_block(tb, address, count);

	if (address >> 63) {
		was_in_kernel = true;
		translate_kernel(tb, address, count);
	} else if (was_in_kernel && !first_process.has_begun) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, at_process, READS_REGISTERS, NULL);
	}
	if (!(address >> 63) && (plan.edges || !first_process.has_read))
		translate_user(tb, count);
	if (goes_on_in(running_block(), address)) {
		struct place *place = new_place(address, 0, NOTHING);

		qemu_plugin_register_vcpu_tb_exec_cb(tb, at_remainder, NO_REGISTERS, place);
	}
	count_block(tb, block);
}

/* Without a plan: the kernel's memory */

static bool has_process;

static void at_memory(unsigned int cpu, void *data)
{
	if (!write_memory())
		give_up("scope: the kernel's memory cannot be written to the disk\n");
	_exit(0);
}

static void at_program(unsigned int cpu, void *data)
{
	has_process |= arch->runs_program();
	if (has_process && !arch->hides_kernel)
		at_memory(cpu, data);
}

void translate_for_memory(plugin_id id, struct tb *tb)
{
	bool is_kernel = qemu_plugin_tb_vaddr(tb) >> 63;

	was_in_kernel |= is_kernel;
	if (!is_kernel && was_in_kernel)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, at_program, READS_REGISTERS, NULL);
	/* The first way from a program into the kernel was not translated before. */
	if (is_kernel && has_process)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, at_memory, READS_REGISTERS, NULL);
}
