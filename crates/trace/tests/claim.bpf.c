/* SPDX-License-Identifier: GPL-2.0 */
/* Many words to claim, for callers on several CPUs at once. */
#include "claim.h"

#define WORDS 1024

struct words {
	u64 word[WORDS];
	/* How often each was claimed, and by how many callers in vain. */
	u64 claimed[WORDS];
	u64 missed[WORDS];
	/* Owners that were not those that the words were made for. */
	u64 strange;
};

MAP(MAP_ARRAY, u32, struct words, 1, MAP_MMAPABLE) words SEC(".maps");

INLINE struct words *all_words(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&words, &zero);
}

SEC("raw_tp/sched_switch") int make(u64 *ctx)
{
	struct words *all = all_words();
	if (!all)
		return -1;
	for (u32 i = 0; i < WORDS; i++)
		make_claimable(&all->word[i], i);
	return 0;
}

SEC("raw_tp/sched_switch") int claim_each(u64 *ctx)
{
	struct words *all = all_words();
	if (!all)
		return -1;
	for (u32 i = 0; i < WORDS; i++) {
		u32 owner = claim(&all->word[i]);
		if (owner)
			__sync_fetch_and_add(&all->claimed[i], 1);
		else
			__sync_fetch_and_add(&all->missed[i], 1);
		if (owner && owner != i + 1)
			__sync_fetch_and_add(&all->strange, 1);
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
