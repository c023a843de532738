/* SPDX-License-Identifier: GPL-2.0 */
/* What all tests of the module have in common. */
#ifndef SELFTEST_H
#define SELFTEST_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#define MS 1000000ULL

extern int failures;

/* The rest of a test makes no sense once a part of it has failed. */
#define EXPECT(is, ...)                                                    \
	do {                                                               \
		if (!(is)) {                                               \
			printf("selftest: FAILED %s:%d: %s: ", __FILE__,   \
			       __LINE__, #is);                             \
			printf(__VA_ARGS__);                               \
			printf(" (errno %d)\n", errno);                    \
			failures++;                                        \
			return;                                            \
		}                                                          \
	} while (0)

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t now(void);

/*
 * How many times slower than usual this kernel is, by its own command line: one
 * that checks itself takes longer for a turn, and for an interrupt in the middle
 * of a section.
 */
uint64_t slower(void);

/* Loads the module with parameters. */
int load_with(const char *parameters);
int load(void);
int unload(void);

/* The tests of the injector. */
void test_injector(void);

/* Tests of the injector that need several CPUs. */
void test_other_cpus(void);

/* Exhausted memory, and CPUs that go. */
void test_hardships(void);

/* Takes one of the other CPUs offline for a moment, if that can be done. */
void take_a_cpu_away(unsigned int cpu);

/* What kmemleak has to say at the beginning is not the module's; at the end it is. */
void forget_leaks(void);
void test_leaks(void);

/* So many random operations; with the injector. */
void test_random(int operations);

#endif
