/* SPDX-License-Identifier: GPL-2.0 */
/* What all tests of the module have in common. */
#ifndef SELFTEST_H
#define SELFTEST_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#define MS 1000000ULL

/* Only x86 has the local APIC by which a CPU sends itself an NMI: elsewhere EOPNOTSUPP. */
#ifdef __x86_64__
#define HAS_NMI 1
#else
#define HAS_NMI 0
#endif

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

/* Binds this thread to a CPU, or to none. */
void stay_on(unsigned int cpu);
void go_anywhere(void);

/* Loads the module with parameters. */
int load_with(const char *parameters);
int load(void);
int unload(void);

/* Loads it anew with parameters, now and after each test that failed. */
void tests_need(const char *parameters);

/*
 * Runs a test in a process of its own. One that fails leaves files open, mapped and
 * in use by threads and children; these end with it, and so fail no other test.
 */
#define RUN(test)                   \
	do {                        \
		if (is_in_test()) { \
			test;       \
			end_test(); \
		}                   \
	} while (0)

/*
 * Whether this process is to run the test. The other one waits for its end, and counts
 * it if it failed.
 */
int is_in_test(void);
void end_test(void);

/* The tests of the injector. */
void test_injector(void);

/* Tests of waits for locks, which need several CPUs. */
void test_waits(void);

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
