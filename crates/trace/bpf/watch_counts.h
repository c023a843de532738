/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What seldom happens.
 *
 * It is done in functions apart, here and elsewhere, so that the rest has enough registers: every switch runs
 * through that. And of the counters of such things none is looked up before.
 */
#pragma once

#include "bpf.h"
#include "watch.h"

MAP(MAP_ARRAY, u32, struct watch_counts, 1, MAP_MMAPABLE) watch_counts SEC(".maps");

#define ADD(counter, n) __sync_fetch_and_add(&(counter), n)

APART int count_up(u32 at, u64 n)
{
	u32 zero = 0;
	u64 *counts = bpf_map_lookup_elem(&watch_counts, &zero);
	if (counts && at < sizeof(struct watch_counts) / sizeof(u64))
		ADD(counts[at], n);
	return 0;
}

/* Adds to a counter. */
#define COUNT(field, n) count_up(__builtin_offsetof(struct watch_counts, field) / sizeof(u64), n)
