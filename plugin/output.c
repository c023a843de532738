// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the plugin writes: words of 64 bits, in the order of this machine, in blocks.
 *
 * A block begins with a word: the length of its contents, and above it a checksum of
 * that length, of the contents and of all blocks before. So a stream that a disk has
 * damaged is refused, and the block is named; by its records alone it could be believed.
 * No record lies in two blocks.
 */
#include "scope.h"

/* At most so many single sections are written, and so many times. */
#define SECTIONS_MOST (1U << 18)
#define TIMES_MOST (1U << 20)
/* Records of the times of which everything is written. */
#define LOOKED_MOST (1U << 19)

/* Bytes before the contents of a block. */
#define HEAD 8

static int out_fd = -1;
static uint8_t buffer[1 << 16];
static size_t buffered = HEAD;
static uint32_t sum;
static bool has_failed;

void write_to(int fd)
{
	out_fd = fd;
}

static void begin_block(void)
{
	uint32_t head[2] = { buffered - HEAD };

	sum = checksum(sum, head, sizeof(*head));
	sum = checksum(sum, buffer + HEAD, buffered - HEAD);
	head[1] = sum;
	memcpy(buffer, head, HEAD);
}

/* Writes a block. Returns whether all was written that was to be written so far. */
bool flush(void)
{
	size_t done = 0;

	if (buffered == HEAD)
		return !has_failed;
	begin_block();
	while (done < buffered && !has_failed) {
		long wrote = write(out_fd, buffer + done, buffered - done);

		/* The guest goes on: it must not notice a full disk. The end of the output is missing. */
		if (wrote <= 0)
			has_failed = true;
		else
			done += wrote;
	}
	buffered = HEAD;
	return !has_failed;
}

/* What is put next, @length bytes together, is to lie in one block. */
void make_room(size_t length)
{
	if (buffered + length > sizeof(buffer))
		flush();
}

void put(const void *from, size_t length)
{
	make_room(length);
	memcpy(buffer + buffered, from, length);
	buffered += length;
}

void put_record(enum record record, const uint64_t *words, size_t count)
{
	uint64_t head = record | (uint64_t)count << 8;

	make_room(sizeof(head) + count * sizeof(*words));
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
