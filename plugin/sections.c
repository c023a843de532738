// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sections, added up by where they begin and end.
 */
#include "scope.h"

/* At most so many different sections, each with so many buckets of lengths. */
#define SITES (1U << 15)
#define SITES_USED (SITES / 4 * 3)
#define BUCKETS 608

/* Where a section begins and ends. */
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
	/* Those of which it is known where their time went, and how long they are together. */
	uint64_t followed, followed_total;
	uint32_t *buckets;
};
static struct site *sites;
static unsigned int sites_used;
static struct open open[KINDS];

bool make_room_for_sections(void)
{
	sites = calloc(SITES, sizeof(*sites));
	return sites;
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

void begin_section(enum kind kind, uint64_t address, uint64_t caller, uint64_t count)
{
	open[kind] = (struct open){ true, address, caller, count };
	if (plan.functions && is_in_window(count)) {
		begin_times(kind, running_block(), address, count);
		call_back_if_followed();
	}
}

void end_section(enum kind kind, uint64_t address, uint64_t caller, uint64_t count)
{
	struct open *was = &open[kind];
	struct ends ends = { kind, was->begin, was->begin_caller, address, caller };
	uint64_t ns = (count - was->count) << plan.shift;
	struct site *site;
	bool was_followed;

	if (!was->is_open)
		return;
	was->is_open = false;
	was_followed = end_times(kind, count);
	call_back_if_followed();
	if (is_in_look(was->count, count)) {
		const uint64_t words[] = { kind, was->count, count, ends.begin, ends.begin_caller,
					   ends.end, ends.end_caller };
		put_looked(LOOKED, words, 7);
	}
	if (!is_in_window(was->count)) {
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
	if (was_followed && ns >= plan.above) {
		site->followed++;
		site->followed_total += ns;
		keep_times(kind, site - sites);
	}
}

void put_sections(void)
{
	static uint64_t words[13 + BUCKETS];
	unsigned int i, j;

	for (i = 0; i < SITES; i++) {
		const struct site *site = &sites[i];
		size_t count = 13;

		if (!site->count)
			continue;
		memcpy(words, &site->ends, sizeof(site->ends));
		memcpy(words + 5, &site->count, 7 * sizeof(*words));
		words[12] = i;
		for (j = 0; j < BUCKETS; j++)
			if (site->buckets[j])
				words[count++] = (uint64_t)j << 32 | site->buckets[j];
		put_record(SITE, words, count);
	}
	put_times();
}
