/* SPDX-License-Identifier: GPL-2.0 */
/* Which bucket of a histogram a wait is in. */
#pragma once

#include "bpf.h"
#include "watch.h"

/* The highest bit that is set in a byte: no instruction of BPF tells. */
#define TWICE(n) n, n
#define FOUR(n) TWICE(n), TWICE(n)
#define SIXTEEN(n) FOUR(n), FOUR(n), FOUR(n), FOUR(n)
#define SIXTY_FOUR(n) SIXTEEN(n), SIXTEEN(n), SIXTEEN(n), SIXTEEN(n)
const volatile u8 highest_bits[256] = {
	0, 0, TWICE(1), FOUR(2), FOUR(3), FOUR(3), SIXTEEN(4), SIXTEEN(5), SIXTEEN(5),
	SIXTY_FOUR(6), SIXTY_FOUR(7), SIXTY_FOUR(7),
};

/* 16 buckets an octave from 2^7 ns up to 2^34 ns, one for what is less, and one for what is more. */
INLINE u32 bucket_of(u64 ns)
{
	if (ns < (1ULL << LEAST_OCTAVE))
		return 0;
	if (ns >> END_OCTAVE)
		return BUCKETS - 1;
	u32 octave = LEAST_OCTAVE;
	if (ns >> 15) {
		octave = 15;
		if (ns >> 23)
			octave = ns >> 31 ? 31 : 23;
	}
	octave += highest_bits[(ns >> octave) & 255];
	u32 within = (ns >> (octave - OCTAVE_BITS)) & ((1 << OCTAVE_BITS) - 1);
	return 1 + ((octave - LEAST_OCTAVE) << OCTAVE_BITS) + within;
}
