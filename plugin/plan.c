// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The plan: which addresses of this kernel matter, and which sections.
 */
#include "scope.h"

/* How to find what a call returns to, from an address on. */
struct unwind {
	uint32_t from;
	int16_t offset;
	uint16_t base;
};

struct plan plan;
static struct entry *entries;
static struct unwind *unwinds;
static struct look *looks;
static uint64_t *starts;
static struct ask *asks;

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

bool read_plan(int fd)
{
	if (!get(fd, &plan, sizeof(plan)) || plan.magic != PLAN_MAGIC || plan.format != FORMAT ||
	    plan.entries > 4096 || plan.unwinds > (16U << 20) || plan.looks > (1U << 20) ||
	    plan.starts > (4U << 20) || plan.asks > (1U << 16) || plan.shift > 10)
		return false;
	entries = calloc(plan.entries + 1, sizeof(*entries));
	unwinds = calloc(plan.unwinds + 1, sizeof(*unwinds));
	looks = calloc(plan.looks + 1, sizeof(*looks));
	starts = calloc(plan.starts + 1, sizeof(*starts));
	asks = calloc(plan.asks + 1, sizeof(*asks));
	return entries && unwinds && looks && starts && asks &&
	       get(fd, entries, plan.entries * sizeof(*entries)) &&
	       get(fd, unwinds, plan.unwinds * sizeof(*unwinds)) &&
	       get(fd, looks, plan.looks * sizeof(*looks)) &&
	       get(fd, starts, plan.starts * sizeof(*starts)) &&
	       get(fd, asks, plan.asks * sizeof(*asks));
}

/* The code that begins at @address, if it is followed from there on. */
const struct entry *entry_at(uint64_t address)
{
	uint64_t i;

	for (i = 0; i < plan.entries; i++)
		if (address >= entries[i].start && address < entries[i].end)
			return &entries[i];
	return NULL;
}

typedef bool (*is_before)(const void *one, uint64_t at);

/* How many of @count things of @size bytes, in order, lie before @at, as @before says of each. */
static uint64_t count_before(const void *all, uint64_t count, size_t size, is_before before, uint64_t at)
{
	uint64_t low = 0, high = count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (before((const uint8_t *)all + middle * size, at))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool asks_before(const void *one, uint64_t at)
{
	return ((const struct ask *)one)->address < at;
}

/* The place at @address, if the kernel asks there whether somebody else is to run. Asks are in order. */
const struct ask *ask_at(uint64_t address)
{
	uint64_t number = count_before(asks, plan.asks, sizeof(*asks), asks_before, address);

	return number < plan.asks && asks[number].address == address ? &asks[number] : NULL;
}

static bool starts_by(const void *one, uint64_t at)
{
	return *(const uint64_t *)one <= at;
}

uint64_t start_of_function(uint64_t address)
{
	uint64_t number;

	if (address >= plan.starts_end)
		return 0;
	number = count_before(starts, plan.starts, sizeof(*starts), starts_by, address);
	return number ? starts[number - 1] : 0;
}

static bool looks_end_before(const void *one, uint64_t at)
{
	return ((const struct look *)one)->to < at;
}

/* Whether some of the time between @from and @to is looked at. Looks are in order and do not overlap. */
bool is_looked_at(uint64_t from, uint64_t to)
{
	uint64_t number = count_before(looks, plan.looks, sizeof(*looks), looks_end_before, from);

	return number < plan.looks && looks[number].from <= to;
}

static bool unwinds_by(const void *one, uint64_t at)
{
	return ((const struct unwind *)one)->from <= at;
}

/* Sets how to find what the function at @place returns to. */
void find_unwind(struct place *place)
{
	uint64_t from = place->address - plan.unwind_start, number;

	if (place->address < plan.unwind_start || from > UINT32_MAX)
		return;
	number = count_before(unwinds, plan.unwinds, sizeof(*unwinds), unwinds_by, from);
	if (number) {
		place->base = unwinds[number - 1].base;
		place->offset = unwinds[number - 1].offset;
	}
}
