// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the plugin writes: words of 64 bits, in the order of this machine.
 */
#include "scope.h"

/* At most so many single sections are written, and so many times. */
#define SECTIONS_MOST (1U << 18)
#define TIMES_MOST (1U << 20)
/* Records of the times of which everything is written. */
#define LOOKED_MOST (1U << 19)

static int out_fd = -1;
static uint8_t buffer[1 << 16];
static size_t buffered;
static bool has_failed;

void write_to(int fd)
{
	out_fd = fd;
}

/* Returns whether all was written that was to be written so far. */
bool flush(void)
{
	size_t done = 0;

	while (done < buffered && !has_failed) {
		long wrote = write(out_fd, buffer + done, buffered - done);

		/* The guest goes on: it must not notice a full disk. The end of the output is missing. */
		if (wrote <= 0)
			has_failed = true;
		else
			done += wrote;
	}
	buffered = 0;
	return !has_failed;
}

void put(const void *from, size_t length)
{
	if (buffered + length > sizeof(buffer))
		flush();
	memcpy(buffer + buffered, from, length);
	buffered += length;
}

void put_record(enum record record, const uint64_t *words, size_t count)
{
	uint64_t head = record | (uint64_t)count << 8;

	put(&head, sizeof(head));
	put(words, count * sizeof(*words));
}

void put_section(const uint64_t *words, size_t count)
{
	static unsigned int put;

	if (put == SECTIONS_MOST)
		told.sections_unlisted++;
	else if (++put)
		put_record(SECTION, words, count);
}

void put_looked(enum record record, const uint64_t *words, size_t count)
{
	static unsigned int put;

	if (put == LOOKED_MOST)
		told.looked_lost++;
	else if (++put)
		put_record(record, words, count);
}

void put_time(enum record record, const uint64_t *words, size_t count)
{
	static unsigned int put;

	if (put == TIMES_MOST)
		told.times_lost++;
	else if (++put)
		put_record(record, words, count);
}
