/* SPDX-License-Identifier: GPL-2.0 */
/* How the tests of the injector ask for sections, and read what was made. */
#ifndef INJECTING_H
#define INJECTING_H

#include <stdint.h>

#include "../inject.h"

#define US 1000ULL

int open_device(void);

/* The ring of an open device; NULL if it cannot be mapped. */
const struct wakescope_ring *ring_of(int fd);
void unmap(const struct wakescope_ring *ring);

/* How many sections were written to the ring so far. */
uint64_t written(const struct wakescope_ring *ring);

/* Whether a kind has points at which it looks, every so many turns. */
int has_points(uint32_t kind);

/* A request for so many sections, each of `length` nanoseconds. */
struct wakescope_injection request_for(uint32_t kind, uint64_t length, uint32_t count);

/* How many were made; below 0 the request was refused, and errno says why. */
int inject(int fd, struct wakescope_injection injection);

/* A thread that makes one request: what it was answered, and errno. */
struct caller {
	int fd;
	struct wakescope_injection asked;
	int made;
	int error;
};

void *call(void *caller);

/* For signals that are only to end what waits. */
void on_signal(int number);

/* The tests of two sections at once. */
void test_pairs(void);

#endif
