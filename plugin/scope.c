// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sees, from outside of a guest, each section of its kernel with interrupts off
 * or preemption off. For x86-64, one CPU, instructions counted.
 *
 * Translated code gets a callback only at instructions that change something:
 * those that turn interrupts on or off, those that write the preempt count, the
 * first of each entry into the kernel, and those that halt or read the clock.
 * All other code only adds the length of each block to a counter.
 *
 * Arguments: out=N, the descriptor to write to; plan=N, that of a plan to read.
 * Without a plan, it writes the kernel's memory, page by page, as soon as the
 * first process runs, and ends the emulator: what it wrote holds the kernel's
 * symbols and its unwind tables, of which the plan is made.
 *
 * All that is written and read are words of 64 bits, in the order of this machine.
 */
#include "scope.h"

/* The longest instruction of this architecture. */
#define LONGEST 15

struct told told;

/* A block of translated code: where each of its instructions lies. */
struct block {
	uint64_t address;
	/* Where its function begins, if that is looked at. */
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
};
static struct running *running;
static struct counter count_of, block_of, followed_of;

static bool irqs_off;
static bool knows_irqs;
static uint32_t preempt_count;
static bool was_idle;
/* With the bit that says whether the CPU need be given up. */
static uint32_t whole_preempt_count;
static bool in_user;
/* Where what each CPU has of its own lies. */
static uint64_t own_base;
static bool has_own_base;

/* Time: ns = (instructions << shift) + skipped. */
static uint64_t skipped;
static bool has_time;
static uint64_t clock_count;
static bool clock_read;

static bool was_in_kernel;
static bool has_process;
static uint64_t process_count, process_ns;

static void give_up(const char *why)
{
	qemu_plugin_outs(why);
	_exit(1);
}

/* Time */

/* Instructions up to and including that of @place. */
static uint64_t count_at(const struct place *place)
{
	return running->count - place->left;
}

static uint64_t ns_at(uint64_t count)
{
	return (count << plan.shift) + skipped;
}

bool is_in_window(uint64_t count)
{
	uint64_t since = ns_at(count) - process_ns;

	return has_process && count >= process_count && since >= plan.from && since < plan.to;
}

/* Nobody reads the clock at the very first instruction of the first process, so a plan's times are early by this. */
#define EDGES_LONGER 10000000

bool are_edges_written(uint64_t count)
{
	uint64_t since = ns_at(count) - process_ns;

	return plan.edges && has_process && count >= process_count && since >= plan.from &&
	       since < plan.to + EDGES_LONGER;
}

/* Time is behind until the clock is first read after idle time, which looks have room for. */
bool is_in_look(uint64_t begin, uint64_t end)
{
	uint64_t from = ns_at(begin) - process_ns, to = ns_at(end) - process_ns;

	return has_process && begin >= process_count && is_looked_at(from, to);
}

/* The instruction after one that read the clock: its value is in RAX and RDX now. */
static void after_clock(unsigned int cpu, void *data)
{
	uint64_t now, before = skipped;

	if (!clock_read)
		return;
	clock_read = false;
	now = reg(RDX) << 32 | (reg(RAX) & 0xffffffff);
	skipped = now - (clock_count << plan.shift);
	if (!has_time || skipped != before) {
		const uint64_t words[] = { clock_count, now };

		put_time(TIME, words, 2);
	}
	has_time = true;
	if (is_in_look(clock_count, clock_count))
		put_looked(READING, &now, 1);
}

/* Interrupts and preemption */

/* The processor's own flag is the truth: where it is not what was followed, something was missed. */
static void check_irqs(void)
{
	if (knows_irqs && irqs_off != !(reg(EFLAGS) & 0x200))
		told.disagreements++;
}

struct state state_now(void)
{
	uint64_t task = has_own_base && plan.current_task ?
				word_at(own_base + plan.current_task) : 0;

	return (struct state){ irqs_off, whole_preempt_count, in_user, task };
}

static void set_irqs(bool off, const struct place *place, bool has_caller)
{
	uint64_t count, caller;

	if (knows_irqs && off == irqs_off)
		return;
	count = count_at(place);
	caller = has_caller ? caller_at(place) : 0;
	put_edge(off ? IRQS_OFF_AT : IRQS_ON_AT, place, count, caller, 0);
	knows_irqs = true;
	irqs_off = off;
	if (off)
		begin_section(IRQS_OFF, place->address, caller, count);
	else
		end_section(IRQS_OFF, place->address, caller, count);
}

/* The kernel is left, for a program or for what an interrupt came into. */
static void leave(const struct place *place, bool to_user)
{
	put_edge(LEAVE, place, count_at(place), 0, to_user);
	in_user = to_user;
}

static void at_instruction(unsigned int cpu, void *data)
{
	const struct place *place = data;
	enum kind kind;

	switch (place->what) {
	case CLI:
		check_irqs();
		set_irqs(true, place, true);
		break;
	case STI:
		check_irqs();
		set_irqs(false, place, true);
		break;
	case IRET:
		check_irqs();
		set_irqs(!(word_at(reg(RSP) + 16) & 0x200), place, false);
		if (plan.edges)
			leave(place, word_at(reg(RSP) + 8) & 3);
		break;
	case SYSRET:
		check_irqs();
		set_irqs(false, place, false);
		leave(place, true);
		break;
	case HALT:
		/* Time while nothing runs is no part of a section. */
		for (kind = 0; kind < KINDS; kind++)
			end_section(kind, place->address, 0, count_at(place));
		was_idle = true;
		{
			uint64_t count = count_at(place);

			put_time(IDLE, &count, 1);
			put_edge(HALTED, place, count, 0, 0);
		}
		break;
	case CLOCK:
		clock_count = count_at(place);
		clock_read = true;
		break;
	}
}

static void at_popf(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);

	if (value.type != MEMORY_U64)
		told.odd_writes++;
	else
		set_irqs(!(value.u64 & 0x200), data, true);
}

/* The highest bit of the preempt count says that the CPU need not be given up. */
#define COUNT 0x7fffffff
/* How often preemption was turned off, apart from softirqs and interrupts. */
#define DEPTH 0xff

/* What the kernel reads is the truth, as is the flag of interrupts. */
static void check_preempt_count(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);

	if (value.type == MEMORY_U32 && (value.u32 & COUNT) != preempt_count && has_process)
		told.disagreements++;
}

static void at_preempt_count(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);
	const struct place *place = data;
	uint32_t before = preempt_count, whole = whole_preempt_count;
	uint64_t caller;

	if (value.type != MEMORY_U32) {
		told.odd_writes++;
		return;
	}
	own_base = address - plan.preempt_count;
	has_own_base = true;
	if (!before == !(value.u32 & COUNT) && !((whole ^ value.u32) & ~DEPTH)) {
		preempt_count = value.u32 & COUNT;
		whole_preempt_count = value.u32;
		return;
	}
	caller = !before == !(value.u32 & COUNT) && !plan.edges ? 0 : caller_at(place);
	put_edge(PREEMPT_COUNT_IS, place, count_at(place), caller, value.u32);
	preempt_count = value.u32 & COUNT;
	whole_preempt_count = value.u32;
	if (!before && preempt_count)
		begin_section(PREEMPT_OFF, place->address, caller, count_at(place));
	else if (before && !preempt_count)
		end_section(PREEMPT_OFF, place->address, caller, count_at(place));
}

/* Another task runs. */
static void at_current_task(unsigned int cpu, uint32_t access, uint64_t address, void *data)
{
	struct memory_value value = qemu_plugin_mem_get_value(access);
	const struct place *place = data;

	if (value.type != MEMORY_U64) {
		told.odd_writes++;
		return;
	}
	forget_calls();
	if (are_edges_written(count_at(place)))
		put_edge(SWITCH, place, count_at(place), 0, number_of_task(value.u64));
}

/* Blocks */

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
 * Blocks are counted as a whole when they begin. Where one ends early, at an
 * instruction that touches a device, the emulator executes this one again, on
 * its own and uncounted, and goes on behind it: in the middle of that block, to
 * which the block itself does not jump.
 */
static bool goes_on_in(const struct block *block, uint64_t address)
{
	return index_in(block, address) && block->jump.to != address && !block->jump.is_indirect;
}

static void at_remainder(unsigned int cpu, void *data)
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
static void correct(void)
{
	const struct block *block = (const void *)running->block;
	uint64_t sp, address;
	unsigned int done;

	if (!block)
		return;
	sp = reg(RSP);
	address = word_at(sp);
	/* Some exceptions have an error code, a small number, before the address. */
	if (address < 0x10000)
		address = word_at(sp + 8);
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

static void at_block(unsigned int cpu, void *data)
{
	enter_block(data, running->count);
}

/* What the processor stored as it entered the kernel: where it was, and in which mode. */
static void put_entry(const struct place *place)
{
	static const enum edge edges[] = { ENTER_INTERRUPT, ENTER_EXCEPTION, ENTER_SYSTEM_CALL };
	uint64_t sp, address = 0;
	bool from_user = true;

	if (place->entry->way != BY_SYSTEM_CALL) {
		sp = reg(RSP);
		address = word_at(sp);
		/* Some exceptions have an error code, a small number, before the address. */
		if (place->entry->way == BY_EXCEPTION && address < 0x10000)
			address = word_at(sp += 8);
		from_user = word_at(sp + 8) & 3;
	}
	put_edge(edges[place->entry->way], place, running->count, from_user ? 0 : address,
		 from_user);
	in_user = false;
}

/* The first instruction of a way into the kernel, before its block is counted. */
static void at_entry(unsigned int cpu, void *data)
{
	const struct place *place = data;

	if (place->entry->way == BY_EXCEPTION)
		correct();
	if (plan.edges)
		put_entry(place);
	/* set_irqs() takes back what follows the instruction, and its block is not counted yet. */
	if (!irqs_off || !knows_irqs) {
		knows_irqs = irqs_off = true;
		begin_section(IRQS_OFF, place->address, 0, running->count);
	}
	if (was_idle && preempt_count)
		begin_section(PREEMPT_OFF, place->address, 0, running->count);
	was_idle = false;
}

/* The first instruction of a function that is followed, before its block is counted. */
static void at_function(unsigned int cpu, void *data)
{
	const struct place *place = data;
	uint64_t count = running->count;

	if (!are_edges_written(count))
		return;
	switch (place->entry->way) {
	case TO_SOFTIRQ:
		put_edge(SOFTIRQ, place, count, word_at(reg(RSP)), place->entry->value);
		break;
	case TO_WAKE:
		put_edge(WAKE, place, count, word_at(reg(RSP)), number_of_task(reg(RDI)));
		break;
	case TO_SCHEDULE:
		put_edge(SCHEDULE, place, count, word_at(reg(RSP)), 0);
		break;
	case TO_ASK:
		put_edge(ASK, place, count, word_at(reg(RSP)), 0);
		break;
	}
}

/* Under models that preempt, the instruction there does nothing. */
static void at_ask(unsigned int cpu, void *data)
{
	const struct place *place = data;

	put_edge(ASK, place, count_at(place), 0, place->how);
}

static void at_user_clock(unsigned int cpu, void *data)
{
	const struct place *place = data;

	put_edge(USER_CLOCK, place, count_at(place), 0, 0);
}

static void at_process(unsigned int cpu, void *data)
{
	if (has_process)
		return;
	has_process = true;
	process_count = running->count;
	process_ns = ns_at(process_count);
}

/* Translation */

/* Memory for what translated code refers to. It is used anew when all of that is thrown away. */
#define CHUNK (1U << 20)
struct chunk {
	struct chunk *next;
	size_t used;
	uint8_t bytes[CHUNK - 16];
};
static struct chunk *first_chunk, *chunk;

static void *keep(size_t size)
{
	void *at;

	size = (size + 7) & ~(size_t)7;
	if (!chunk || chunk->used + size > sizeof(chunk->bytes)) {
		struct chunk *next = chunk ? chunk->next : first_chunk;

		if (!next)
			next = calloc(1, sizeof(*next));
		/* What is not followed would be missed in silence. */
		if (!next)
			give_up("scope: there is no memory left\n");
		if (chunk)
			chunk->next = next;
		else
			first_chunk = next;
		chunk = next;
		chunk->used = 0;
	}
	at = chunk->bytes + chunk->used;
	chunk->used += size;
	return at;
}

static void at_flush(plugin_id id)
{
	chunk = first_chunk;
	if (chunk)
		chunk->used = 0;
	if (running)
		running->block = 0;
	forget_blocks();
}

static struct place *new_place(uint64_t address, uint32_t left, enum what what)
{
	struct place *place = keep(sizeof(*place));

	*place = (struct place){ address, left, what, UNKNOWN, 0, NULL, 0 };
	find_unwind(place);
	return place;
}

/* Follows an instruction of the kernel if it changes anything. Returns whether it reads the clock. */
static bool follow(struct insn *insn, uint32_t left)
{
	uint8_t bytes[LONGEST + 2] = { 0 };
	uint64_t address = qemu_plugin_insn_vaddr(insn);
	size_t size = qemu_plugin_insn_data(insn, bytes, LONGEST);
	enum what what = meaning_of(bytes, size, address);
	struct place *place;

	if (what == NOTHING)
		return false;
	place = new_place(address, left, what);
	switch (what) {
	case PREEMPT_COUNT:
		qemu_plugin_register_vcpu_mem_cb(insn, check_preempt_count, NO_REGISTERS, LOADS,
						 NULL);
		qemu_plugin_register_vcpu_mem_cb(insn, at_preempt_count, READS_REGISTERS, STORES,
						 place);
		break;
	case CURRENT_TASK:
		if (plan.edges || plan.functions)
			qemu_plugin_register_vcpu_mem_cb(insn, at_current_task, READS_REGISTERS,
							 STORES, place);
		break;
	case POPF:
		qemu_plugin_register_vcpu_mem_cb(insn, at_popf, READS_REGISTERS, LOADS, place);
		break;
	default:
		qemu_plugin_register_vcpu_insn_exec_cb(insn, at_instruction, READS_REGISTERS, place);
	}
	return what == CLOCK;
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
	qemu_plugin_register_vcpu_insn_exec_cb(insn, at_ask, READS_REGISTERS, place);
}

/* Where an instruction follows one that reads the clock, which is the last of its block. */
#define CLOCKS 256
static uint64_t after_clocks[CLOCKS];

static void add_after_clock(uint64_t address)
{
	static unsigned int used;
	unsigned int at = address % CLOCKS;

	while (after_clocks[at] && after_clocks[at] != address)
		at = (at + 1) % CLOCKS;
	/* Half of the table stays empty, so that every search ends soon. */
	if (after_clocks[at] || used == CLOCKS / 2)
		return;
	after_clocks[at] = address;
	used++;
}

static bool is_after_clock(uint64_t address)
{
	unsigned int at = address % CLOCKS;

	while (after_clocks[at] && after_clocks[at] != address)
		at = (at + 1) % CLOCKS;
	return after_clocks[at];
}

static void translate_kernel(struct tb *tb, uint64_t address, size_t count)
{
	const struct entry *entry = entry_at(address);
	size_t i;

	if (entry && (entry->way <= BY_SYSTEM_CALL || plan.edges)) {
		struct place *place = new_place(address, 0, ENTRY);

		place->entry = entry;
		qemu_plugin_register_vcpu_tb_exec_cb(
			tb, entry->way <= BY_SYSTEM_CALL ? at_entry : at_function, READS_REGISTERS,
			place);
	}
	if (is_after_clock(address))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, after_clock, READS_REGISTERS, NULL);
	for (i = 0; i < count; i++) {
		struct insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (plan.asks)
			follow_ask(insn, count - 1 - i);
		if (follow(insn, count - 1 - i))
			add_after_clock(qemu_plugin_insn_vaddr(insn) + qemu_plugin_insn_size(insn));
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

		if (bytes[0] == 0x0f && meaning_of(bytes, size, address) == CLOCK)
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, at_user_clock, READS_REGISTERS,
				new_place(address, count - 1 - i, CLOCK));
	}
}

static void translate(plugin_id id, struct tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb);
	size_t i, count = qemu_plugin_tb_n_insns(tb);
	struct block *block = keep(sizeof(*block) + count * sizeof(*block->offsets));
	uint8_t bytes[LONGEST + 2] = { 0 };
	struct insn *last;
	size_t size;

	if (address >> 63) {
		was_in_kernel = true;
		translate_kernel(tb, address, count);
	} else if (was_in_kernel && !has_process) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, at_process, NO_REGISTERS, NULL);
	}
	if (!(address >> 63) && plan.edges)
		translate_user(tb, count);
	if (goes_on_in((const void *)running->block, address)) {
		struct place *place = new_place(address, 0, REMAINDER);

		qemu_plugin_register_vcpu_tb_exec_cb(tb, at_remainder, NO_REGISTERS, place);
	}
	last = qemu_plugin_tb_get_insn(tb, count - 1);
	size = qemu_plugin_insn_data(last, bytes, LONGEST);
	block->address = address;
	block->function = plan.functions && address >> 63 ? start_of_function(address) : 0;
	block->count = count;
	block->jump = jump_of(bytes, size, qemu_plugin_insn_vaddr(last));
	for (i = 0; i < count; i++)
		block->offsets[i] = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i)) - address;
	if (plan.functions && address >> 63)
		qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, at_block, READS_REGISTERS, IF_OTHER,
							  followed_of, 0, block);
	/* After the callbacks, which still see the block before. */
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, ADD_U64, count_of, count);
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, STORE_U64, block_of,
							  (uintptr_t)block);
}

/* Without a plan: the kernel's memory */

static void at_first_process(unsigned int cpu, void *data)
{
	_exit(write_memory() ? 0 : 1);
}

static void translate_for_memory(plugin_id id, struct tb *tb)
{
	if (qemu_plugin_tb_vaddr(tb) >> 63)
		was_in_kernel = true;
	else if (was_in_kernel)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, at_first_process, READS_REGISTERS, NULL);
}

/* Beginning and end */

static void at_exit(plugin_id id, void *data)
{
	const uint64_t words[] = { running ? running->count : 0, has_process, process_count,
				   process_ns, told.sections, told.outside, told.sites_lost,
				   told.sections_unlisted, told.times_lost, told.disagreements,
				   told.odd_writes, told.corrected, told.failed_reads,
				   told.looked_lost, told.edges, told.edges_lost, told.tasks };

	put_edges();
	put_sections();
	put_record(END, words, sizeof(words) / sizeof(*words));
	flush();
}

static void at_cpu(plugin_id id, unsigned int cpu)
{
	running = qemu_plugin_scoreboard_find(count_of.score, cpu);
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
	if (strcmp(info->target, "x86_64") || !info->is_system || info->cpus.most != 1) {
		qemu_plugin_outs("scope: the machine is not x86-64 with one CPU\n");
		return 1;
	}
	write_to(out_fd);
	if (plan_fd < 0) {
		qemu_plugin_register_vcpu_tb_trans_cb(id, translate_for_memory);
		return 0;
	}
	if (!make_room_for_sections() || !read_plan(plan_fd) ||
	    (plan.functions && !make_room_for_times())) {
		qemu_plugin_outs("scope: there is no plan to read\n");
		return 1;
	}
	count_of = (struct counter){ qemu_plugin_scoreboard_new(sizeof(struct running)), 0 };
	block_of = (struct counter){ count_of.score, offsetof(struct running, block) };
	followed_of = (struct counter){ count_of.score, offsetof(struct running, followed) };
	{
		const uint64_t head[] = { SCOPE_MAGIC, FORMAT, plan.shift, plan.from, plan.to };

		put(head, sizeof(head));
	}
	qemu_plugin_register_vcpu_init_cb(id, at_cpu);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_flush_cb(id, at_flush);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
