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
#include "qemu.h"

/* Changes when anything that is written or read does. */
#define FORMAT 1
#define PLAN_MAGIC 0x6e616c7065706f63ULL  /* "copeplan" */
#define SCOPE_MAGIC 0x65706f6373656b61ULL /* "akescope" */
#define MEMORY_MAGIC 0x79726f6d656d656bULL /* "kememory" */

/* Where the kernel lies if its address is not random: its image and no modules. */
#define IMAGE_START 0xffffffff80000000ULL
#define IMAGE_END 0xffffffffc0000000ULL
#define PAGE 4096

/* At most so many different sections, each with so many buckets of lengths. */
#define SITES (1U << 15)
#define SITES_USED (SITES / 4 * 3)
#define BUCKETS 608

/* At most so many single sections are written, and so many times. */
#define SECTIONS_MOST (1U << 18)
#define TIMES_MOST (1U << 20)

/* The longest instruction of this architecture. */
#define LONGEST 15

enum kind { IRQS_OFF, PREEMPT_OFF, KINDS };

/* What is written: the kind of a record in the low byte, its length in words above. */
enum record { TIME = 1, IDLE, SECTION, SITE, END };

/* What an instruction does that is followed, and how an entry came about. */
enum what { CLI, STI, POPF, IRET, SYSRET, HALT, CLOCK, PREEMPT_COUNT, EXCEPTION, INTERRUPT, REMAINDER };

struct entry {
	uint64_t start, end;
	uint64_t is_exception;
};

/* How to find what a call returns to: how far above a register the caller's stack begins. */
enum base { UNKNOWN, FROM_SP, FROM_BP };
struct unwind {
	uint32_t from;
	int16_t offset;
	uint16_t base;
};

static struct {
	uint64_t magic, format;
	/* The address of the preempt count, as instructions with a GS prefix have it. */
	uint64_t preempt_count;
	/* An instruction takes 2^shift ns. */
	uint64_t shift;
	/* Which sections count: those that begin so many ns after the first process did. */
	uint64_t from, to;
	/* Single sections are written from this length on, ns. */
	uint64_t above;
	uint64_t entries, unwinds;
	uint64_t unwind_start;
} plan;
static struct entry *entries;
static struct unwind *unwinds;

/* A place where something is followed. */
struct place {
	uint64_t address;
	/* How many instructions of its block follow it. */
	uint32_t left;
	uint16_t what;
	uint16_t base;
	int64_t offset;
};

/* A block of translated code: where each of its instructions lies. */
struct block {
	uint64_t address;
	/* Where it goes on if it jumps into itself; 0 if it does not. */
	uint64_t loop;
	/* Its last instruction jumps to where a register or memory says. */
	bool is_indirect;
	uint32_t count;
	uint16_t offsets[];
};

/* What blocks write without a callback: instructions so far, and the block that runs. */
struct running {
	uint64_t count;
	uint64_t block;
};
static struct running *running;
static struct counter count_of, block_of;

/* A section, or where one begins and ends. */
struct ends {
	uint64_t kind, begin, begin_caller, end, end_caller;
};
struct open {
	bool is_open;
	uint64_t begin, begin_caller, count;
};
struct site {
	struct ends ends;
	uint64_t count, total, shortest, longest, longest_at;
	uint32_t *buckets;
};
static struct site *sites;
static unsigned int sites_used;

static struct open open[KINDS];
static bool irqs_off;
static bool knows_irqs;
static uint32_t preempt_count;
static bool was_idle;

/* Time: ns = (instructions << shift) + skipped. */
static uint64_t skipped;
static bool has_time;
static uint64_t clock_count;
static bool clock_read;

static bool was_in_kernel;
static bool has_process;
static uint64_t process_count, process_ns;

/* What is told at the end, so that nobody trusts what is wrong. */
static struct {
	uint64_t sections, outside, sites_lost, sections_unlisted, times_lost, disagreements,
		odd_writes, corrected, failed_reads, write_failed;
} told;

static int out_fd = -1;
static struct byte_array *scratch;
static struct register_handle *rsp, *rbp, *rax, *rdx, *eflags;

/* Output */

static uint8_t buffer[1 << 16];
static size_t buffered;

static void flush(void)
{
	size_t done = 0;

	while (done < buffered && !told.write_failed) {
		long wrote = write(out_fd, buffer + done, buffered - done);

		/* The guest goes on: it must not notice a full disk. The end of the output is missing. */
		if (wrote <= 0)
			told.write_failed = 1;
		else
			done += wrote;
	}
	buffered = 0;
}

static void put(const void *from, size_t length)
{
	if (buffered + length > sizeof(buffer))
		flush();
	memcpy(buffer + buffered, from, length);
	buffered += length;
}

static void put_record(enum record record, const uint64_t *words, size_t count)
{
	uint64_t head = record | (uint64_t)count << 8;

	put(&head, sizeof(head));
	put(words, count * sizeof(*words));
}

static void put_section(const uint64_t *words, size_t count)
{
	static unsigned int put;

	if (put == SECTIONS_MOST)
		told.sections_unlisted++;
	else if (++put)
		put_record(SECTION, words, count);
}

static void put_time(enum record record, const uint64_t *words, size_t count)
{
	static unsigned int put;

	if (put == TIMES_MOST)
		told.times_lost++;
	else if (++put)
		put_record(record, words, count);
}

/* The guest's registers and memory */

static uint64_t reg(struct register_handle *handle)
{
	uint64_t value = 0;
	int length;

	g_byte_array_set_size(scratch, 0);
	length = qemu_plugin_read_register(handle, scratch);
	memcpy(&value, scratch->data, length > 8 ? 8 : length < 0 ? 0 : length);
	return value;
}

static uint64_t word_at(uint64_t address)
{
	uint64_t value = 0;

	if (!qemu_plugin_read_memory_vaddr(address, scratch, sizeof(value))) {
		told.failed_reads++;
		return 0;
	}
	memcpy(&value, scratch->data, sizeof(value));
	return value;
}

static uint64_t caller_at(const struct place *place)
{
	switch (place->base) {
	case FROM_SP:
		return word_at(reg(rsp) + place->offset - 8);
	case FROM_BP:
		return word_at(reg(rbp) + place->offset - 8);
	default:
		return 0;
	}
}

/* Sections */

/* Instructions up to and including that of @place. */
static uint64_t count_at(const struct place *place)
{
	return running->count - place->left;
}

static uint64_t ns_at(uint64_t count)
{
	return (count << plan.shift) + skipped;
}

/* Sixteen buckets for each power of two; below 16, each value has its own. */
static unsigned int bucket_of(uint64_t ns)
{
	unsigned int power, bucket;

	if (ns < 16)
		return ns;
	power = 63 - __builtin_clzll(ns);
	bucket = (power - 3) * 16 + (ns >> (power - 4) & 15);
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static struct site *site_of(const struct ends *ends)
{
	uint64_t hash = ends->kind;
	unsigned int at;

	hash = (hash ^ ends->begin) * 0x9e3779b97f4a7c15ULL;
	hash = (hash ^ ends->begin_caller ^ hash >> 29) * 0x9e3779b97f4a7c15ULL;
	hash = (hash ^ ends->end ^ hash >> 29) * 0x9e3779b97f4a7c15ULL;
	hash = (hash ^ ends->end_caller ^ hash >> 29) * 0x9e3779b97f4a7c15ULL;
	for (at = hash >> 40;; at++) {
		struct site *site = &sites[at % SITES];

		if (site->count && !memcmp(&site->ends, ends, sizeof(*ends)))
			return site;
		if (site->count)
			continue;
		if (sites_used == SITES_USED)
			return NULL;
		site->buckets = calloc(BUCKETS, sizeof(*site->buckets));
		if (!site->buckets)
			return NULL;
		sites_used++;
		site->ends = *ends;
		return site;
	}
}

static void begin(enum kind kind, uint64_t address, uint64_t caller, uint64_t count)
{
	open[kind] = (struct open){ true, address, caller, count };
}

static bool counts(uint64_t begin_count)
{
	uint64_t since = ns_at(begin_count) - process_ns;

	return has_process && begin_count >= process_count && since >= plan.from && since < plan.to;
}

static void end(enum kind kind, uint64_t address, uint64_t caller, uint64_t count)
{
	struct open *was = &open[kind];
	struct ends ends = { kind, was->begin, was->begin_caller, address, caller };
	uint64_t ns = (count - was->count) << plan.shift;
	struct site *site;

	if (!was->is_open)
		return;
	was->is_open = false;
	if (!counts(was->count)) {
		told.outside++;
		return;
	}
	told.sections++;
	if (ns >= plan.above) {
		const uint64_t words[] = { kind, was->count, count, ends.begin, ends.begin_caller,
					   ends.end, ends.end_caller };
		put_section(words, 7);
	}
	site = site_of(&ends);
	if (!site) {
		told.sites_lost++;
		return;
	}
	if (!site->count++ || ns < site->shortest)
		site->shortest = ns;
	site->total += ns;
	site->buckets[bucket_of(ns)]++;
	if (ns >= site->longest) {
		site->longest = ns;
		site->longest_at = was->count;
	}
}

/* The processor's own flag is the truth: where it is not what was followed, something was missed. */
static void check_irqs(void)
{
	if (knows_irqs && irqs_off != !(reg(eflags) & 0x200))
		told.disagreements++;
}

static void set_irqs(bool off, const struct place *place, bool has_caller)
{
	uint64_t count;

	if (knows_irqs && off == irqs_off)
		return;
	knows_irqs = true;
	irqs_off = off;
	count = count_at(place);
	if (off)
		begin(IRQS_OFF, place->address, has_caller ? caller_at(place) : 0, count);
	else if (open[IRQS_OFF].is_open)
		end(IRQS_OFF, place->address, has_caller ? caller_at(place) : 0, count);
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
		set_irqs(!(word_at(reg(rsp) + 16) & 0x200), place, false);
		break;
	case SYSRET:
		check_irqs();
		set_irqs(false, place, false);
		break;
	case HALT:
		/* Time while nothing runs is no part of a section. */
		for (kind = 0; kind < KINDS; kind++)
			end(kind, place->address, 0, count_at(place));
		was_idle = true;
		{
			uint64_t count = count_at(place);

			put_time(IDLE, &count, 1);
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
	uint32_t before = preempt_count;

	if (value.type != MEMORY_U32) {
		told.odd_writes++;
		return;
	}
	preempt_count = value.u32 & COUNT;
	if (!before && preempt_count)
		begin(PREEMPT_OFF, place->address, caller_at(place), count_at(place));
	else if (before && !preempt_count)
		end(PREEMPT_OFF, place->address, caller_at(place), count_at(place));
}

/* The instruction after one that read the clock: its value is in RAX and RDX now. */
static void after_clock(unsigned int cpu, void *data)
{
	uint64_t now, before = skipped;

	if (!clock_read)
		return;
	clock_read = false;
	now = reg(rdx) << 32 | (reg(rax) & 0xffffffff);
	skipped = now - (clock_count << plan.shift);
	if (!has_time || skipped != before) {
		const uint64_t words[] = { clock_count, now };

		put_time(TIME, words, 2);
	}
	has_time = true;
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
 * Blocks are counted as a whole when they begin. Where one ends early, at an
 * instruction that touches a device, the emulator executes this one again, on
 * its own and uncounted, and goes on behind it: in the middle of that block, to
 * which the block itself does not jump.
 */
static bool goes_on_in(const struct block *block, uint64_t address)
{
	return index_in(block, address) && block->loop != address && !block->is_indirect;
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
	sp = reg(rsp);
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

/* The first instruction of a way into the kernel, before its block is counted. */
static void at_entry(unsigned int cpu, void *data)
{
	const struct place *place = data;

	if (place->what == EXCEPTION)
		correct();
	/* set_irqs() takes back what follows the instruction, and its block is not counted yet. */
	if (!irqs_off || !knows_irqs) {
		knows_irqs = irqs_off = true;
		begin(IRQS_OFF, place->address, 0, running->count);
	}
	if (was_idle && preempt_count)
		begin(PREEMPT_OFF, place->address, 0, running->count);
	was_idle = false;
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

static void give_up(const char *why)
{
	qemu_plugin_outs(why);
	_exit(1);
}

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
}

static void find_unwind(struct place *place)
{
	uint64_t from = place->address - plan.unwind_start;
	uint64_t low = 0, high = plan.unwinds;

	if (place->address < plan.unwind_start || from > UINT32_MAX)
		return;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (unwinds[middle].from <= from)
			low = middle + 1;
		else
			high = middle;
	}
	if (low) {
		place->base = unwinds[low - 1].base;
		place->offset = unwinds[low - 1].offset;
	}
}

static struct place *new_place(uint64_t address, uint32_t left, enum what what)
{
	struct place *place = keep(sizeof(*place));

	*place = (struct place){ address, left, what, UNKNOWN, 0 };
	find_unwind(place);
	return place;
}

/* Whether an instruction with a GS prefix reads or writes the preempt count, as its operand says. */
static bool names_preempt_count(const uint8_t *bytes, size_t size, size_t at, uint64_t next)
{
	int32_t distance;
	uint8_t modrm;

	/* Opcodes have one byte (add, inc, mov …) or two (0x0f). */
	at += bytes[at] == 0x0f ? 2 : 1;
	if (at + 5 > size)
		return false;
	modrm = bytes[at++];
	if ((modrm & 0xc7) == 0x05) {
		memcpy(&distance, bytes + at, 4);
		return next + distance == plan.preempt_count;
	}
	/* Without a base and an index register. */
	if ((modrm & 0xc7) == 0x04 && bytes[at] == 0x25 && at + 5 <= size) {
		memcpy(&distance, bytes + at + 1, 4);
		return (uint64_t)(int64_t)distance == plan.preempt_count;
	}
	return false;
}

/* Follows an instruction of the kernel if it changes anything. Returns whether it reads the clock. */
static bool follow(struct insn *insn, uint32_t left)
{
	uint8_t bytes[LONGEST] = { 0 };
	uint64_t address = qemu_plugin_insn_vaddr(insn);
	size_t size = qemu_plugin_insn_size(insn), at = 0;
	bool gs = false, wide = false;
	enum what what;
	void *place;

	size = qemu_plugin_insn_data(insn, bytes, size < LONGEST ? size : LONGEST);
	for (; at < size; at++) {
		uint8_t byte = bytes[at];

		gs |= byte == 0x65;
		wide |= (byte & 0xf8) == 0x48;
		if (byte != 0x65 && byte != 0x66 && byte != 0xf0 && byte != 0xf2 && byte != 0xf3 &&
		    byte != 0x2e && byte != 0x3e && byte != 0x36 && (byte & 0xf0) != 0x40)
			break;
	}
	if (at == size)
		return false;
	if (gs) {
		if (!names_preempt_count(bytes, size, at, address + size))
			return false;
		place = new_place(address, left, PREEMPT_COUNT);
		qemu_plugin_register_vcpu_mem_cb(insn, check_preempt_count, NO_REGISTERS, LOADS,
						 NULL);
		qemu_plugin_register_vcpu_mem_cb(insn, at_preempt_count, READS_REGISTERS, STORES,
						 place);
		return false;
	}
	if (bytes[at] == 0xfa)
		what = CLI;
	else if (bytes[at] == 0xfb)
		what = STI;
	else if (bytes[at] == 0x9d)
		what = POPF;
	else if (bytes[at] == 0xcf && wide)
		what = IRET;
	else if (bytes[at] == 0xf4)
		what = HALT;
	else if (bytes[at] != 0x0f || at + 1 >= size)
		return false;
	else if (bytes[at + 1] == 0x07 || bytes[at + 1] == 0x35)
		what = SYSRET;
	else if (bytes[at + 1] == 0x31)
		what = CLOCK;
	else if (bytes[at + 1] == 0x01 && at + 2 < size && bytes[at + 2] == 0xf9)
		what = CLOCK;
	else if (bytes[at + 1] == 0x01 && at + 2 < size && bytes[at + 2] == 0xc9)
		what = HALT;
	else
		return false;
	place = new_place(address, left, what);
	if (what == POPF)
		qemu_plugin_register_vcpu_mem_cb(insn, at_popf, READS_REGISTERS, LOADS, place);
	else
		qemu_plugin_register_vcpu_insn_exec_cb(insn, at_instruction, READS_REGISTERS, place);
	return what == CLOCK;
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

static const struct entry *entry_at(uint64_t address)
{
	uint64_t i;

	for (i = 0; i < plan.entries; i++)
		if (address >= entries[i].start && address < entries[i].end)
			return &entries[i];
	return NULL;
}

static void translate_kernel(struct tb *tb, uint64_t address, size_t count)
{
	const struct entry *entry = entry_at(address);
	size_t i;

	if (entry) {
		struct place *place =
			new_place(address, 0, entry->is_exception ? EXCEPTION : INTERRUPT);

		qemu_plugin_register_vcpu_tb_exec_cb(tb, at_entry, READS_REGISTERS, place);
	}
	if (is_after_clock(address))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, after_clock, READS_REGISTERS, NULL);
	for (i = 0; i < count; i++) {
		struct insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (follow(insn, count - 1 - i))
			add_after_clock(qemu_plugin_insn_vaddr(insn) + qemu_plugin_insn_size(insn));
	}
}

/* Where the last instruction of a block jumps to, if it does. */
static void find_jump(struct block *block, const struct insn *insn)
{
	uint64_t next = qemu_plugin_insn_vaddr(insn) + qemu_plugin_insn_size(insn);
	uint8_t bytes[LONGEST] = { 0 };
	size_t size = qemu_plugin_insn_data(insn, bytes, LONGEST), at = 0;
	bool repeats = false;
	int32_t far = 0;

	block->loop = 0;
	/* Prefixes: branch hints, no tracking, bounds, operand size, repetition, REX. */
	for (; at < size && (bytes[at] == 0x2e || bytes[at] == 0x3e || bytes[at] == 0x66 ||
			     bytes[at] == 0xf2 || bytes[at] == 0xf3 || (bytes[at] & 0xf0) == 0x40);
	     at++)
		repeats |= bytes[at] == 0xf2 || bytes[at] == 0xf3;
	block->is_indirect = at < size && bytes[at] == 0xff;
	/* A string instruction is executed anew for each element. */
	if (repeats && ((bytes[at] & 0xfc) == 0xa4 || bytes[at] >= 0xaa))
		block->loop = next - size;
	else if (size >= 2 && ((bytes[at] & 0xf0) == 0x70 || (bytes[at] & 0xfc) == 0xe0 || bytes[at] == 0xeb))
		block->loop = next + (int8_t)bytes[size - 1];
	else if (size >= 5) {
		memcpy(&far, bytes + size - 4, 4);
		if (bytes[at] == 0xe8 || bytes[at] == 0xe9 ||
		    (bytes[at] == 0x0f && (bytes[at + 1] & 0xf0) == 0x80))
			block->loop = next + far;
	}
}

static void translate(plugin_id id, struct tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb);
	size_t i, count = qemu_plugin_tb_n_insns(tb);
	struct block *block = keep(sizeof(*block) + count * sizeof(*block->offsets));

	if (address >> 63) {
		was_in_kernel = true;
		translate_kernel(tb, address, count);
	} else if (was_in_kernel && !has_process) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, at_process, NO_REGISTERS, NULL);
	}
	if (goes_on_in((const void *)running->block, address)) {
		struct place *place = new_place(address, 0, REMAINDER);

		qemu_plugin_register_vcpu_tb_exec_cb(tb, at_remainder, NO_REGISTERS, place);
	}
	block->address = address;
	block->count = count;
	find_jump(block, qemu_plugin_tb_get_insn(tb, count - 1));
	for (i = 0; i < count; i++)
		block->offsets[i] = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i)) - address;
	/* After the callbacks, which still see the block before. */
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, ADD_U64, count_of, count);
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, STORE_U64, block_of,
							  (uintptr_t)block);
}

/* The kernel's memory */

static void write_memory(unsigned int cpu, void *data)
{
	uint64_t head[] = { MEMORY_MAGIC, FORMAT };
	uint64_t address;

	put(head, sizeof(head));
	for (address = IMAGE_START; address < IMAGE_END; address += PAGE) {
		if (!qemu_plugin_read_memory_vaddr(address, scratch, PAGE))
			continue;
		put(&address, sizeof(address));
		put(scratch->data, PAGE);
	}
	address = 0;
	put(&address, sizeof(address));
	flush();
	_exit(told.write_failed ? 1 : 0);
}

static void translate_for_memory(plugin_id id, struct tb *tb)
{
	if (qemu_plugin_tb_vaddr(tb) >> 63)
		was_in_kernel = true;
	else if (was_in_kernel)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, write_memory, READS_REGISTERS, NULL);
}

/* Beginning and end */

static void at_exit(plugin_id id, void *data)
{
	unsigned int i, j;

	for (i = 0; i < SITES; i++) {
		static uint64_t words[10 + BUCKETS];
		const struct site *site = &sites[i];
		size_t count = 10;

		if (!site->count)
			continue;
		memcpy(words, &site->ends, sizeof(site->ends));
		memcpy(words + 5, &site->count, 5 * sizeof(*words));
		for (j = 0; j < BUCKETS; j++)
			if (site->buckets[j])
				words[count++] = (uint64_t)j << 32 | site->buckets[j];
		put_record(SITE, words, count);
	}
	{
		const uint64_t words[] = { running ? running->count : 0, has_process, process_count,
					   process_ns, told.sections, told.outside, told.sites_lost,
					   told.sections_unlisted, told.times_lost,
					   told.disagreements, told.odd_writes, told.corrected,
					   told.failed_reads };

		put_record(END, words, sizeof(words) / sizeof(*words));
	}
	flush();
}

static void at_cpu(plugin_id id, unsigned int cpu)
{
	static const struct {
		const char *name;
		struct register_handle **handle;
	} wanted[] = { { "rsp", &rsp }, { "rbp", &rbp }, { "rax", &rax }, { "rdx", &rdx }, { "eflags", &eflags } };
	struct array *all = qemu_plugin_get_registers();
	const struct register_info *info = (const void *)all->data;
	unsigned int i, j;

	for (i = 0; i < all->length; i++)
		for (j = 0; j < sizeof(wanted) / sizeof(*wanted); j++)
			if (!strcmp(info[i].name, wanted[j].name))
				*wanted[j].handle = info[i].handle;
	running = qemu_plugin_scoreboard_find(count_of.score, cpu);
	if (!rsp || !rbp || !rax || !rdx || !eflags)
		give_up("scope: a register is missing\n");
}

/* Reads the next part of a file from its beginning on: whoever wrote it left its end to be read next. */
static bool get(int fd, void *into, size_t length)
{
	static long done;
	uint8_t *at = into;

	while (length) {
		long got = pread(fd, at, length, done);

		if (got <= 0)
			return false;
		at += got;
		done += got;
		length -= got;
	}
	return true;
}

static bool read_plan(int fd)
{
	if (!get(fd, &plan, sizeof(plan)) || plan.magic != PLAN_MAGIC || plan.format != FORMAT ||
	    plan.entries > 4096 || plan.unwinds > (16U << 20) || plan.shift > 10)
		return false;
	entries = calloc(plan.entries + 1, sizeof(*entries));
	unwinds = calloc(plan.unwinds + 1, sizeof(*unwinds));
	return entries && unwinds && get(fd, entries, plan.entries * sizeof(*entries)) &&
	       get(fd, unwinds, plan.unwinds * sizeof(*unwinds));
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
	int i, plan_fd = -1;

	for (i = 0; i < count; i++) {
		int out = number_of(arguments[i], "out"), in = number_of(arguments[i], "plan");

		out_fd = out >= 0 ? out : out_fd;
		plan_fd = in >= 0 ? in : plan_fd;
	}
	if (strcmp(info->target, "x86_64") || !info->is_system || info->cpus.most != 1) {
		qemu_plugin_outs("scope: the machine is not x86-64 with one CPU\n");
		return 1;
	}
	scratch = g_byte_array_new();
	if (plan_fd < 0) {
		qemu_plugin_register_vcpu_tb_trans_cb(id, translate_for_memory);
		return 0;
	}
	sites = calloc(SITES, sizeof(*sites));
	if (!sites || !read_plan(plan_fd)) {
		qemu_plugin_outs("scope: there is no plan to read\n");
		return 1;
	}
	count_of = (struct counter){ qemu_plugin_scoreboard_new(sizeof(struct running)), 0 };
	block_of = (struct counter){ count_of.score, offsetof(struct running, block) };
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
