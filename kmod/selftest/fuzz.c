// SPDX-License-Identifier: GPL-2.0
/*
 * Random operations on both devices: whatever they answer, the kernel goes on,
 * and nothing of them is left.
 *
 * The seed is in the log. Nothing waits for longer than a section: reads do not
 * block, and requests that make sense are short.
 *
 * With several CPUs as many threads operate on the same files at once: one closes
 * what another uses, and unloads the module while another opens a device. CPUs go
 * and come back meanwhile.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../inject.h"
#include "../wakescope.h"
#include "selftest.h"

#define SEED 20260000ULL
#define FILES 24
#define THREADS_MAX 8
#define US 1000ULL

/* Open files, which all threads use; -1 is none. */
static int files[FILES];
/* Nobody may touch it. */
static void *closed;

static __thread uint64_t state;

static uint64_t chance(void)
{
	/* xorshift64* */
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 2685821657736338717ULL;
}

static uint64_t below(uint64_t bound)
{
	return (chance() >> 16) % bound;
}

/* A number that is small, at an edge, or any. */
static uint64_t number(uint64_t usual)
{
	static const uint64_t edges[] = { 0, 1, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX,
					  WAKESCOPE_SECTION_MAX_NS + 1,
					  WAKESCOPE_PERIOD_MAX_NS + 1 };

	switch (below(16)) {
	case 0:
		return edges[below(sizeof(edges) / sizeof(*edges))];
	case 1:
		return chance();
	default:
		return below(usual) + 1;
	}
}

/* One that would make long sections, or very many, is made small. */
static void inject_any(int fd)
{
	struct wakescope_injection asked = {
		.version = below(32) ? WAKESCOPE_INJECT_VERSION : chance(),
		.kind = below(WAKESCOPE_KINDS + 1),
		.length_ns = number(3 * US),
		.seed = chance(),
		.count = number(2),
		.reserved = below(32) ? 0 : chance(),
	};

	if (asked.length_ns <= WAKESCOPE_SECTION_MAX_NS && asked.length_ns > 20 * US)
		asked.length_ns = 20 * US;
	if (asked.count <= WAKESCOPE_COUNT_MAX && asked.count > 3)
		asked.count = 3;
	if (asked.count != 1 || !below(8))
		asked.interval_ns = below(8) ? WAKESCOPE_INJECT_SHARE * asked.length_ns : number(50 * US);
	if (asked.interval_ns <= WAKESCOPE_INTERVAL_MAX_NS && asked.interval_ns > 80 * US)
		asked.interval_ns = 80 * US;
	/* A timer of the wheel waits for a tick. */
	if (asked.kind == WAKESCOPE_TIMER && below(50))
		asked.kind = WAKESCOPE_HRTIMER;
	if ((asked.kind >= WAKESCOPE_LOOP_RESCHED && asked.kind <= WAKESCOPE_LOOP_RESTART) || !below(16))
		asked.every = number(100);
	if (asked.kind == WAKESCOPE_LOOP_RESTART || !below(16))
		asked.again = number(500);
	if (asked.kind <= WAKESCOPE_PREEMPT_OFF || !below(16)) {
		asked.pairing = below(WAKESCOPE_PAIRINGS + 1);
		asked.second = asked.pairing ? below(WAKESCOPE_KINDS + 1) : !below(32);
	}
	ioctl(fd, WAKESCOPE_IOC_INJECT, below(64) ? &asked : closed);
}

static void start_any(int fd)
{
	struct wakescope_grid grid = { below(4) ? 0 : number(100 * US), number(MS) };

	ioctl(fd, WAKESCOPE_IOC_START, below(64) ? &grid : closed);
}

static void map_any(int fd)
{
	size_t size = below(8) ? sizeof(struct wakescope_ring) : below(1 << 20);
	int access = below(4) ? PROT_READ : (int)below(8);
	void *ring = mmap(NULL, size, access, below(4) ? MAP_SHARED : MAP_PRIVATE, fd,
			  below(8) ? 0 : (off_t)(4096 * below(1 << 20)));

	if (ring == MAP_FAILED)
		return;
	if (below(2))
		mprotect(ring, size, below(8));
	munmap(ring, size);
}

/* A child that has all files uses one of them, and dies with them open. */
static void fork_any(int fd)
{
	struct wakescope_wakeup wakeup;
	pid_t child = fork();

	if (!child)
		_exit(read(fd, &wakeup, sizeof(wakeup)) < 0);
	if (child > 0)
		waitpid(child, NULL, 0);
}

/* Another thread may have opened a file there meanwhile. */
static void open_any(int *place)
{
	static const char *const devices[] = { "/dev/wakescope", "/dev/wakescope-inject" };
	int access = below(4) ? O_RDONLY : O_RDWR, none = -1;
	int fd = open(devices[below(2)], access | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && !__atomic_compare_exchange_n(place, &none, fd, 0, __ATOMIC_ACQ_REL,
						    __ATOMIC_ACQUIRE))
		close(fd);
}

static void close_any(int *place)
{
	int fd = __atomic_exchange_n(place, -1, __ATOMIC_ACQ_REL);

	if (fd >= 0)
		close(fd);
}

static void operate(int *place)
{
	int fd = __atomic_load_n(place, __ATOMIC_ACQUIRE);
	struct wakescope_wakeup wakeup[2];
	struct pollfd entry = { .fd = fd, .events = below(2) ? POLLIN : (short)chance() };

	if (fd < 0) {
		open_any(place);
		return;
	}
	switch (below(24)) {
	case 0:
		close_any(place);
		break;
	case 1 ... 6:
		inject_any(fd);
		break;
	case 7 ... 10:
		start_any(fd);
		break;
	case 11:
		ioctl(fd, WAKESCOPE_IOC_STOP);
		break;
	case 12 ... 16:
		if (read(fd, below(16) ? (void *)wakeup : closed, below(sizeof(wakeup))) > 0)
			break;
		break;
	case 17:
		poll(&entry, 1, 0);
		break;
	case 18:
		ioctl(fd, (unsigned long)chance(), closed);
		break;
	case 19:
		map_any(fd);
		break;
	case 20:
		if (write(fd, wakeup, below(64)) > 0)
			break;
		break;
	case 21:
		lseek(fd, (off_t)chance(), below(4));
		break;
	case 22:
		if (!below(200))
			fork_any(fd);
		break;
	default:
		if (!below(200))
			unload();
	}
}

struct fuzzer {
	uint64_t seed;
	int operations;
	int others;
	int wild;
};

/* With all closed for a moment, one of the operations may have unloaded it. */
static int is_loaded(const struct fuzzer *fuzzer)
{
	if (!access("/dev/wakescope", F_OK) || !load_with("inject=1"))
		return 1;
	/* Another thread loads it, or is still unloading it. */
	return fuzzer->others && (errno == EEXIST || errno == EBUSY);
}

static void *fuzz(void *argument)
{
	struct fuzzer *fuzzer = argument;
	int i;

	state = fuzzer->seed;
	for (i = 0; i < fuzzer->operations; i++) {
		operate(&files[below(FILES)]);
		if (i % (fuzzer->operations / 10 + 1) == 0)
			printf("selftest: operation %d\n", i);
		if (!is_loaded(fuzzer))
			fuzzer->wild++;
	}
	return NULL;
}

static void random_operations_do_no_harm(int operations)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), threads = cpus, wild = 0, i;
	struct fuzzer fuzzers[THREADS_MAX];
	pthread_t started[THREADS_MAX];

	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < FILES; i++)
		files[i] = -1;
	for (i = 0; i < threads; i++) {
		fuzzers[i] = (struct fuzzer){ .seed = SEED + i, .others = threads - 1,
					      .operations = operations / threads };
		EXPECT(!pthread_create(&started[i], NULL, fuzz, &fuzzers[i]), "thread");
	}
	while (threads > 1 && pthread_tryjoin_np(started[0], NULL))
		take_a_cpu_away(1 + below(cpus - 1));
	for (i = threads > 1; i < threads; i++)
		pthread_join(started[i], NULL);
	for (i = 0; i < threads; i++)
		wild += fuzzers[i].wild;
	for (i = 0; i < FILES; i++)
		close_any(&files[i]);
	munmap(closed, 4096);
	EXPECT(!wild, "%d loads failed", wild);
	EXPECT(!unload(), "nobody has it open");
	EXPECT(!load_with("inject=1"), "load");
}

void test_random(int operations)
{
	state = SEED;
	printf("selftest: fuzz: %d operations, seed %llu\n", operations, (unsigned long long)SEED);
	RUN(random_operations_do_no_harm(operations));
}
