/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of the plugin know of each other.
 */
#ifndef WAKESCOPE_SCOPE_H
#define WAKESCOPE_SCOPE_H

#include "qemu.h"

/* Changes when anything that is written or read does. */
#define FORMAT 11
#define PLAN_MAGIC 0x6e616c7065706f63ULL  /* "copeplan" */
#define SCOPE_MAGIC 0x65706f6373656b61ULL /* "akescope" */
#define MEMORY_MAGIC 0x79726f6d656d656bULL /* "kememory" */

/* What is read: which addresses matter, and which sections. */
struct plan {
	uint64_t magic, format;
	/* Where the preempt count is: on x86 its address, as instructions with a GS prefix have it; on arm64 where in a task it lies. */
	uint64_t preempt_count;
	/* An instruction takes 2^shift ns. */
	uint64_t shift;
	/* Which sections count: those that begin so many ns after the first process did. */
	uint64_t from, to;
	/* Single sections are written from this length on, ns. */
	uint64_t above;
	uint64_t entries, unwinds;
	uint64_t unwind_start;
	/* Times of which everything is written. */
	uint64_t looks;
	/* Whether to follow in which blocks of code the time of those single sections goes. */
	uint64_t functions;
	/* Whether to write each edge in the time in which sections count. */
	uint64_t edges;
	/*
	 * Where the task that runs is found: on x86 the address of the pointer to it, as instructions with a GS
	 * prefix have it, 0 if unknown; on arm64 that of the instruction by which tasks are switched.
	 */
	uint64_t current_task;
	/* Where a task's pid, name, priority and policy are in it. */
	uint64_t pid, comm, prio, policy;
	/* The kernel's functions, if it is followed in which of them time goes, and where their code ends. */
	uint64_t starts, starts_end;
	/* Where the kernel asks whether somebody else is to run, if edges are written. */
	uint64_t asks;
	/* Whether to follow calls that take locks. Edges are written then, too. */
	uint64_t locks;
};
extern struct plan plan;

/* Code that is followed from its beginning on. */
struct entry {
	uint64_t start, end;
	/* Ways into the kernel turn interrupts off by being entered; the others are functions. */
	uint64_t way;
	/* Of softirqs: which. Of functions that take a lock: how what they return says whether they did. */
	uint64_t value;
};
enum way {
	BY_INTERRUPT,
	BY_EXCEPTION,
	BY_SYSTEM_CALL,
	TO_SOFTIRQ,
	TO_WAKE,
	TO_SCHEDULE,
	TO_ASK,
	TO_HANDLER,
	TO_TAKE,
	TO_RELEASE
};

/* A place at which the kernel asks whether somebody else is to run, and how: a number that is passed on. */
struct ask {
	uint64_t address, how;
};
/* By the flags of the task that runs, if it is these that are read there. */
#define BY_FLAGS 3

/* A time of which each section and each reading of the clock is written, ns since the first process. */
struct look {
	uint64_t from, to;
};

/*
 * How to find what a call returns to: how far above a register the caller's stack begins; or it is in a register,
 * or stored where one points.
 */
enum base { UNKNOWN, FROM_SP, FROM_BP, FROM_LINK, FROM_FRAME };

/* What an instruction does that is followed. */
enum what {
	NOTHING,
	TURN_IRQS_OFF,
	TURN_IRQS_ON,
	/* Leaves the kernel, or an interrupt within it: what was stored says for what. */
	RETURN,
	/* Leaves the kernel for a program. */
	RETURN_TO_PROGRAM,
	HALT,
	CLOCK,
	/* From here on what only the architecture knows. */
	OWN
};

/* A place where something is followed. */
struct place {
	uint64_t address;
	/* How many instructions of its block follow it. */
	uint32_t left;
	uint16_t what;
	uint16_t base;
	int64_t offset;
	/* Where code begins that is followed. */
	const struct entry *entry;
	/* Of places that ask: how. Else what the architecture keeps of the instruction. */
	uint32_t how;
};

/* What would make the result wrong, or a part of it missing: it is written at the end. */
struct told {
	uint64_t sections, outside, sites_lost, sections_unlisted, times_lost, disagreements,
		odd_writes, corrected, failed_reads, looked_lost, edges, edges_lost, tasks,
		priority_masks, depths, locks, calls_lost;
};
extern struct told told;

/* plan.c */
bool read_plan(int fd);
const struct entry *entry_at(uint64_t address);
const struct ask *ask_at(uint64_t address);
void find_unwind(struct place *place);
/* Where the function begins that is at @address; 0 outside of the kernel's image. */
uint64_t start_of_function(uint64_t address);
bool is_looked_at(uint64_t from, uint64_t to);

/* output.c. The kind of a record is in the low byte of its first word, its length in words above. */
enum record { TIME = 1, IDLE, SECTION, SITE, END, LOOKED, READING, SPENT, START, EDGES, TASK, CALL, LOCK };
void write_to(int fd);
void make_room(size_t length);
void put(const void *from, size_t length);
void put_record(enum record record, const uint64_t *words, size_t count);
void put_section(const uint64_t *words, size_t count);
void put_looked(enum record record, const uint64_t *words, size_t count);
void put_time(enum record record, const uint64_t *words, size_t count);
bool flush(void);

/* checksum.c */
uint32_t checksum(uint32_t sum, const void *from, size_t length);

/* guest.c */
bool find_registers(void);
/* A register, by its place among the names that the architecture gives. */
uint64_t reg(unsigned int number);
/* Where that memory may be out of reach. Returns whether it was not. */
bool read_word(uint64_t address, uint64_t *value);
uint64_t word_at(uint64_t address);
uint32_t half_word_at(uint64_t address);
bool write_memory(void);

/* sections.c. Beginnings and ends are counts of instructions. */
enum kind { IRQS_OFF, PREEMPT_OFF, KINDS };
bool make_room_for_sections(void);
void begin_section(enum kind kind, uint64_t address, uint64_t caller, uint64_t count);
void end_section(enum kind kind, uint64_t address, uint64_t caller, uint64_t count);
void put_sections(void);

/* functions.c: where the time of an open section goes. */
struct block;
bool make_room_for_times(void);
void begin_times(enum kind kind, const struct block *block, uint64_t address, uint64_t count);
void enter_block(const struct block *block, uint64_t count);
void forget_calls(void);
void forget_blocks(void);
bool end_times(enum kind kind, uint64_t count);
unsigned int followed_sections(void);
void keep_times(enum kind kind, unsigned int site);
void put_times(void);

/* edges.c: each change of what the CPU is at, in its order. */
enum edge {
	IRQS_OFF_AT = 1,
	IRQS_ON_AT,
	PREEMPT_COUNT_IS,
	ENTER_INTERRUPT,
	ENTER_EXCEPTION,
	ENTER_SYSTEM_CALL,
	LEAVE,
	SOFTIRQ,
	WAKE,
	SCHEDULE,
	SWITCH,
	HALTED,
	USER_CLOCK,
	ASK,
	TIMER_SET,
	RESUMED,
	INTERRUPT_IS,
	LOCK_ASKED,
	LOCK_TAKEN,
	LOCK_REFUSED,
	LOCK_RELEASED,
};
/* What the CPU is at when the first edge is written. */
struct state {
	uint64_t irqs_off, preempt_count, in_user, task;
};
void put_edge(enum edge edge, const struct place *place, uint64_t count, uint64_t caller,
	      uint32_t value);
void put_edges(void);
/* The clock was read: whether edges that may have been too early were. */
void settle_early_edges(bool are_too_early);
uint32_t number_of_task(uint64_t task);
void at_function(unsigned int cpu, void *data);
void at_ask(unsigned int cpu, void *data);
void at_flags(unsigned int cpu, uint32_t access, uint64_t address, void *data);
void at_user_clock(unsigned int cpu, void *data);

/* locks.c */
void at_take(const struct place *place);
void at_release(const struct place *place);
void at_awaited(uint64_t address);
void switch_locks_to(uint64_t task);

/* blocks.c: instructions, counted by the block. */
uint64_t count_now(void);
uint64_t count_at(const struct place *place);
uint64_t count_at_device(const struct place *place);
void correct_count(void);
bool goes_on_in(const struct block *block, uint64_t address);
void at_remainder(unsigned int cpu, void *data);
struct block *new_block(struct tb *tb, uint64_t address, size_t count);
void count_block(struct tb *tb, const struct block *block);
/* The block that runs, if one does. */
const struct block *running_block(void);
/* Where the function begins that a block is of, and whether the block does, too. */
uint64_t function_of(const struct block *block);
bool is_first_of(const struct block *block);
/* Has blocks call back when they begin if a section is followed. */
void call_back_if_followed(void);
/* The same for calls that have not returned. */
void call_back_if_awaited(unsigned int calls);
void forget_block(void);
void make_counters(void);
void find_counters(unsigned int cpu);

/* clock.c: the guest's time. */
struct first_process {
	/* Whether it has begun, and whether a program has read the clock since. */
	bool has_begun, has_read;
	/* From when on plans count: instructions, and the guest's time. */
	uint64_t count, ns;
};
extern struct first_process first_process;
/* Whether a section that begins there is one of those that count. */
bool is_in_window(uint64_t count);
/*
 * Whether edges are written then: a little longer, for wakeups that were due at its end,
 * and where it is not known yet that the time is too early.
 */
bool are_edges_written(uint64_t count);
/* Whether it is too early for edges, as far as is known. */
bool may_be_early(uint64_t count);
/* A program reads the clock there. */
void note_first_reading(uint64_t count);
/* The CPU is halted, for as long as its clock says when it is next read. */
void at_halt(void);
/* Whether everything is written of a time between these two. */
bool is_in_look(uint64_t begin, uint64_t end);
uint64_t ns_at(uint64_t count);
void at_clock(const struct place *place);
void after_clock(unsigned int cpu, void *data);
void at_process(unsigned int cpu, void *data);

/* state.c: what the CPU is at. */
struct state state_now(void);
void at_instruction(unsigned int cpu, void *data);
void at_entry(unsigned int cpu, void *data);
void after_halt(unsigned int cpu, void *data);
/* Compares the processor's own flag, and the preempt count in the guest's memory, with what was followed. */
void check_state(void);
void set_irqs(bool off, const struct place *place, bool has_caller);
/* Compares what the kernel reads with what was followed. */
void check_preempt_count(uint32_t count);
/* The preempt count, with the bit that says whether the CPU need be given up. */
void set_preempt_count(uint32_t whole, const struct place *place);
void set_task(uint64_t task, const struct place *place);

/* kept.c: memory for what translated code refers to. */
void *keep(size_t size);
void forget_kept(void);

/* translate.c: which code gets a callback. */
void translate(plugin_id id, struct tb *tb);
void translate_for_memory(plugin_id id, struct tb *tb);
void at_flush(plugin_id id);

/* scope.c. Which architecture the machine has. */
extern const struct arch *arch;
/* Ends the emulator. */
void give_up(const char *why) __attribute__((noreturn));

#endif /* WAKESCOPE_SCOPE_H */
