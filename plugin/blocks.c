// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts instructions, block by block.
 *
 * A callback for each instruction would cost several times as much as the guest
 * itself. So translated code adds the length of each block to a counter when the
 * block begins, without a callback, and what a block did not execute is taken back.
 */
#include "arch.h"

/* A block of translated code: where each of its instructions lies. */
struct block {
	uint64_t address;
	/* Where its function begins, if time is followed through functions. */
	uint64_t function;
	/* Where it goes on if it jumps into itself. */
	struct jump jump;
	uint32_t count;
	uint16_t offsets[];
};

/* What blocks write without a callback: instructions so far, and the block that runs. */
struct running {
	uint64_t count;
	uint64_t block;
	/* How many open sections are followed block by block. */
	uint64_t followed;
	/* How many calls of the task that runs have not returned. */
	uint64_t awaited;
};
static struct running *running;
static struct counter count_of, block_of, followed_of, awaited_of;

uint64_t count_now(void)
{
	return running ? running->count : 0;
}

/* Instructions up to and including that of @place. */
uint64_t count_at(const struct place *place)
{
	return running->count - place->left;
}

/* Which instruction of @block lies at @address; 0 for the first one, and if none does. */
static unsigned int index_in(const struct block *block, uint64_t address)
{
	unsigned int index;

	if (!block || address <= block->address || address - block->address > 0xffff)
		return 0;
	for (index = 1; index < block->count; index++)
		if (block->offsets[index] == address - block->address)
			return index;
	return 0;
}

/*
 * Instructions up to and including that of @place, which touches a device. The block
 * that runs is the one that was counted: see below.
 */
uint64_t count_at_device(const struct place *place)
{
	const struct block *block = (const void *)running->block;

	return running->count - (block ? block->count - 1 - index_in(block, place->address) : 0);
}

/*
 * Blocks are counted as a whole when they begin. Where one ends early, at an
 * instruction that touches a device, the emulator executes this one again, on
 * its own and uncounted, and goes on behind it: in the middle of that block, to
 * which the block itself does not jump.
 */
bool goes_on_in(const struct block *block, uint64_t address)
{
	return index_in(block, address) && block->jump.to != address && !block->jump.is_indirect;
}

void at_remainder(unsigned int cpu, void *data)
{
	const struct block *block = (const void *)running->block;
	const struct place *place = data;

	if (!goes_on_in(block, place->address))
		return;
	running->count -= block->count - index_in(block, place->address);
	told.corrected++;
}

/*
 * The block in which an exception occurred was counted as a whole. The address
 * that the processor saved says how far it came.
 */
void correct_count(void)
{
	const struct block *block = (const void *)running->block;
	uint64_t address;
	unsigned int done;

	if (!block || !arch->has_stopped_at(&address))
		return;
	done = index_in(block, address);
	if (done || address == block->address) {
		running->count -= block->count - done;
		told.corrected++;
	}
}

const struct block *running_block(void)
{
	return (const void *)running->block;
}

uint64_t function_of(const struct block *block)
{
	return block ? block->function : 0;
}

bool is_first_of(const struct block *block)
{
	return block->address == block->function;
}

void call_back_if_followed(void)
{
	running->followed = followed_sections();
}

void call_back_if_awaited(unsigned int calls)
{
	running->awaited = calls;
}

static void at_block_awaited(unsigned int cpu, void *data)
{
	const struct block *block = data;

	at_awaited(block->address);
}

static void at_block(unsigned int cpu, void *data)
{
	enter_block(data, running->count);
}

/* What is kept of a block of @count instructions. */
struct block *new_block(struct tb *tb, uint64_t address, size_t count)
{
	struct block *block = keep(sizeof(*block) + count * sizeof(*block->offsets));
	struct insn *last = qemu_plugin_tb_get_insn(tb, count - 1);
	uint8_t bytes[LONGEST + 2] = { 0 };
	size_t size = qemu_plugin_insn_data(last, bytes, LONGEST);
	size_t i;

	block->address = address;
	block->function = plan.functions && address >> 63 ? start_of_function(address) : 0;
	block->count = count;
	block->jump = arch->jump_of(bytes, size, qemu_plugin_insn_vaddr(last));
	for (i = 0; i < count; i++)
		block->offsets[i] = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i)) - address;
	return block;
}

/* Has the block add itself to what was counted, after its callbacks, which still see the block before. */
void count_block(struct tb *tb, const struct block *block)
{
	if (plan.functions && block->address >> 63)
		qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, at_block, READS_REGISTERS, IF_OTHER,
							  followed_of, 0, (void *)block);
	if (plan.locks && block->address >> 63)
		qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, at_block_awaited, READS_REGISTERS,
							  IF_OTHER, awaited_of, 0, (void *)block);
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, ADD_U64, count_of, block->count);
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, STORE_U64, block_of,
							  (uintptr_t)block);
}

void forget_block(void)
{
	if (running)
		running->block = 0;
}

/* Before there is a CPU. */
void make_counters(void)
{
	count_of = (struct counter){ qemu_plugin_scoreboard_new(sizeof(struct running)), 0 };
	block_of = (struct counter){ count_of.score, offsetof(struct running, block) };
	followed_of = (struct counter){ count_of.score, offsetof(struct running, followed) };
	awaited_of = (struct counter){ count_of.score, offsetof(struct running, awaited) };
}

void find_counters(unsigned int cpu)
{
	running = qemu_plugin_scoreboard_find(count_of.score, cpu);
}
