// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In which blocks of code the time of sections goes.
 *
 * While a section is open, each block that begins ends the time of the one before.
 * So the times of a section's blocks add up to its length.
 */
#include "scope.h"

/* At most so many different blocks in one section, and in all sections with the same ends together. */
#define BLOCKS (1U << 13)
#define BLOCKS_USED (BLOCKS / 4 * 3)
#define SPENT_MOST (1U << 20)
#define SPENT_USED (SPENT_MOST / 4 * 3)

/* How many instructions a section spent in a block. */
struct time {
	uint64_t block, count;
	/* Those of earlier sections do not count. */
	uint64_t section;
};
static struct {
	bool is_followed;
	/* The block that runs, and since when. */
	uint64_t block, since;
	uint64_t section;
	unsigned int used;
	uint16_t used_at[BLOCKS_USED];
	struct time times[BLOCKS];
} open[KINDS];

/* The same of all sections with the same ends, whose number is above that of the first by one. */
struct spent {
	uint64_t site, block, count;
};
static struct spent *all;
static unsigned int all_used;

bool make_room_for_times(void)
{
	all = calloc(SPENT_MOST, sizeof(*all));
	return all;
}

static uint64_t hash_of(uint64_t value)
{
	value *= 0x9e3779b97f4a7c15ULL;
	return value ^ value >> 32;
}

/* What finds no room is missing from the sum, as the reader sees. */
static void add(enum kind kind, uint64_t block, uint64_t count)
{
	uint64_t at = hash_of(block) % BLOCKS;
	struct time *time;

	if (!count)
		return;
	for (;; at = (at + 1) % BLOCKS) {
		time = &open[kind].times[at];
		if (time->section != open[kind].section)
			break;
		if (time->block == block) {
			time->count += count;
			return;
		}
	}
	if (open[kind].used == BLOCKS_USED)
		return;
	open[kind].used_at[open[kind].used++] = at;
	*time = (struct time){ block, count, open[kind].section };
}

/* A section begins in @block. */
void begin_times(enum kind kind, uint64_t block, uint64_t count)
{
	open[kind].is_followed = true;
	open[kind].block = block;
	open[kind].since = count;
	open[kind].section++;
	open[kind].used = 0;
}

void enter_block(uint64_t block, uint64_t count)
{
	enum kind kind;

	for (kind = 0; kind < KINDS; kind++) {
		/* A block that runs again goes on. */
		if (!open[kind].is_followed || open[kind].block == block)
			continue;
		add(kind, open[kind].block, count - open[kind].since);
		open[kind].block = block;
		open[kind].since = count;
	}
}

/* Returns whether the section was followed. */
bool end_times(enum kind kind, uint64_t count)
{
	if (!open[kind].is_followed)
		return false;
	add(kind, open[kind].block, count - open[kind].since);
	open[kind].is_followed = false;
	return true;
}

unsigned int followed_sections(void)
{
	return open[IRQS_OFF].is_followed + open[PREEMPT_OFF].is_followed;
}

/* Adds the times of the section that ended last to those of all with its ends. */
void keep_times(enum kind kind, unsigned int site)
{
	unsigned int i;

	for (i = 0; i < open[kind].used; i++) {
		const struct time *time = &open[kind].times[open[kind].used_at[i]];
		uint64_t at = hash_of(time->block + site) % SPENT_MOST;

		while (all[at].site && (all[at].site != site + 1 || all[at].block != time->block))
			at = (at + 1) % SPENT_MOST;
		if (!all[at].site) {
			if (all_used == SPENT_USED)
				continue;
			all_used++;
			all[at].site = site + 1;
			all[at].block = time->block;
		}
		all[at].count += time->count;
	}
}

void put_times(void)
{
	unsigned int i;

	for (i = 0; all && i < SPENT_MOST; i++)
		if (all[i].site) {
			const uint64_t words[] = { all[i].site - 1, all[i].block, all[i].count };

			put_record(SPENT, words, 3);
		}
}
