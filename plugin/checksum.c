// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CRC-32, with the polynomial of Ethernet and gzip. It finds each change of up to 32 bits in a row.
 */
#include "scope.h"

#define POLYNOMIAL 0xedb88320U

/* What a byte adds to the checksum, if so many others follow it in the same word. */
static uint32_t tables[8][256];

static void make_tables(void)
{
	unsigned int byte, bit, table;

	for (byte = 0; byte < 256; byte++) {
		uint32_t sum = byte;

		for (bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? POLYNOMIAL : 0);
		tables[0][byte] = sum;
	}
	for (table = 1; table < 8; table++)
		for (byte = 0; byte < 256; byte++) {
			uint32_t sum = tables[table - 1][byte];

			tables[table][byte] = sum >> 8 ^ tables[0][sum & 0xff];
		}
}

/* The checksum of some bytes, and of all before them, whose checksum is @sum; 0 if there are none. */
uint32_t checksum(uint32_t sum, const void *from, size_t length)
{
	const uint8_t *at = from;

	if (!tables[0][1])
		make_tables();
	sum = ~sum;
	/* Eight bytes at a time: byte by byte it takes four times as long. */
	for (; length >= 8; length -= 8, at += 8) {
		uint64_t word;

		memcpy(&word, at, sizeof(word));
		word ^= sum;
		sum = tables[7][word & 0xff] ^ tables[6][word >> 8 & 0xff] ^
		      tables[5][word >> 16 & 0xff] ^ tables[4][word >> 24 & 0xff] ^
		      tables[3][word >> 32 & 0xff] ^ tables[2][word >> 40 & 0xff] ^
		      tables[1][word >> 48 & 0xff] ^ tables[0][word >> 56];
	}
	for (; length; length--, at++)
		sum = sum >> 8 ^ tables[0][(sum ^ *at) & 0xff];
	return ~sum;
}
