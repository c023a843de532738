// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory for what translated code refers to.
 *
 * The emulator throws all translated code away at once, and only then is nothing of
 * this referred to any longer. So no part is freed by itself: all of it is used anew.
 */
#include "scope.h"

#define CHUNK (1U << 20)
struct chunk {
	struct chunk *next;
	size_t used;
	uint8_t bytes[CHUNK - 16];
};
static struct chunk *first_chunk, *chunk;

void *keep(size_t size)
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

void forget_kept(void)
{
	chunk = first_chunk;
	if (chunk)
		chunk->used = 0;
}
