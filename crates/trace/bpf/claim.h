/* SPDX-License-Identifier: GPL-2.0 */
/* One of several callers at once gets a thing, or none does: never two. */
#pragma once

#include "bpf.h"

/*
 * A word that can be claimed once: an owner in its upper half, and in the lower one how many callers
 * have tried to claim it.
 *
 * Compare-and-swap would do the same, but 5.10 refuses a program that has that instruction, even
 * where it is never reached (the verifier knows it from 5.12 on, and the JIT of arm64 from 5.18 on).
 * Nor does 5.10 have an addition that tells what was there before. So a caller adds one, and then
 * reads: of several at once, the one whose addition came first may read 1, all others read more. If
 * all additions come before the first read, nobody reads 1: callers count that.
 */
INLINE void make_claimable(u64 *word, u32 owner)
{
	WRITE_ONCE(*word, (u64)(owner + 1) << 32);
}

/* 1 + the owner for the one caller that claims `word`; 0 for others, and for what was never claimable. */
INLINE u32 claim(u64 *word)
{
	/* Somebody has tried already: a number that callers only add to while they are at it never wraps. */
	if ((u32)READ_ONCE(*word))
		return 0;
	__sync_fetch_and_add(word, 1);
	/* Owner and number in one read: together they are of the same moment. */
	u64 now = READ_ONCE(*word);
	return (u32)now == 1 ? now >> 32 : 0;
}
