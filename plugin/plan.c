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

/* The place at @address, if the kernel asks there whether somebody else is to run. Asks are in order. */
const struct ask *ask_at(uint64_t address)
{
	uint64_t low = 0, high = plan.asks;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (asks[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < plan.asks && asks[low].address == address ? &asks[low] : NULL;
}

uint64_t start_of_function(uint64_t address)
{
	uint64_t low = 0, high = plan.starts;

	if (address >= plan.starts_end)
		return 0;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (starts[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? starts[low - 1] : 0;
}

/* Whether some of the time between @from and @to is looked at. Looks are in order and do not overlap. */
bool is_looked_at(uint64_t from, uint64_t to)
{
	uint64_t low = 0, high = plan.looks;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (looks[middle].to < from)
			low = middle + 1;
		else
			high = middle;
	}
	return low < plan.looks && looks[low].from <= to;
}

/* Sets how to find what the function at @place returns to. */
void find_unwind(struct place *place)
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
