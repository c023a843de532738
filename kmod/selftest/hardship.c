// SPDX-License-Identifier: GPL-2.0
/*
 * What a kernel can meet with: memory that is exhausted at any allocation, CPUs
 * that go away, and memory that nobody gives back. Most kernels are not built to
 * fail on demand or to look for leaks; what cannot be tried is said.
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
#include <sys/mount.h>
#include <unistd.h>

#include "../inject.h"
#include "../wakescope.h"
#include "selftest.h"

#define US 1000ULL
#define DEVICE "/dev/wakescope"
#define INJECTOR "/dev/wakescope-inject"
#define DEBUG "/sys/kernel/debug/"

/* Far more than any of the operations makes. */
#define ALLOCATIONS_MAX 5000

static int write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int result = fd < 0 ? -1 : (int)write(fd, text, strlen(text));
	int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
	return result < 0 ? -1 : 0;
}

static int use_load(void)
{
	if (load_with("inject=1"))
		return -1;
	return unload();
}

static int use_device(void)
{
	struct wakescope_grid grid = { 0, MS };
	struct wakescope_wakeup wakeup;
	struct pollfd entry = { .fd = open(DEVICE, O_RDONLY | O_CLOEXEC), .events = POLLIN };
	int result = -1;

	if (entry.fd < 0)
		return -1;
	if (!ioctl(entry.fd, WAKESCOPE_IOC_START, &grid) && poll(&entry, 1, 1000) == 1 &&
	    read(entry.fd, &wakeup, sizeof(wakeup)) == sizeof(wakeup))
		result = 0;
	close(entry.fd);
	return result;
}

static int use_injector(void)
{
	struct wakescope_injection asked = {
		.version = WAKESCOPE_INJECT_VERSION,
		.kind = WAKESCOPE_WORK,
		.length_ns = 2 * US,
		.count = 1,
	};
	int fd = open(INJECTOR, O_RDONLY | O_CLOEXEC), result = -1;
	void *ring;

	if (fd < 0)
		return -1;
	ring = mmap(NULL, sizeof(struct wakescope_ring), PROT_READ, MAP_SHARED, fd, 0);
	if (ring != MAP_FAILED) {
		if (ioctl(fd, WAKESCOPE_IOC_INJECT, &asked) == 1)
			result = 0;
		munmap(ring, sizeof(struct wakescope_ring));
	}
	close(fd);
	return result;
}

/*
 * Uses it again and again, and has a later allocation of this thread fail each
 * time, until there is no later one.
 */
static void no_failed_allocation_does_harm(const char *what, int (*use)(void))
{
	int fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC), nth, failed = 0;
	char left[16];

	EXPECT(fd >= 0, "fail-nth");
	for (nth = 1; nth < ALLOCATIONS_MAX; nth++) {
		int length = snprintf(left, sizeof(left), "%d", nth), result;

		EXPECT(pwrite(fd, left, length, 0) == length, "%s: %d", what, nth);
		result = use();
		memset(left, 0, sizeof(left));
		EXPECT(pread(fd, left, sizeof(left) - 1, 0) > 0, "%s: %d", what, nth);
		EXPECT(pwrite(fd, "0", 1, 0) == 1, "%s: %d", what, nth);
		if (atoi(left) > 0) {
			EXPECT(!result, "%s: nothing failed, but it did", what);
			break;
		}
		failed += !!result;
	}
	close(fd);
	printf("selftest: %s: %d allocations, without %d of which it fails\n", what, nth - 1, failed);
	EXPECT(nth < ALLOCATIONS_MAX && failed, "%s: %d of %d", what, failed, nth - 1);
	EXPECT(!use(), "%s: afterwards", what);
}

static void memory_may_be_exhausted_at_any_allocation(void)
{
	static const char *const kinds[] = { "failslab", "fail_page_alloc" };
	char path[64];
	size_t i;

	if (access("/proc/thread-self/fail-nth", F_OK)) {
		printf("selftest: skipped: exhausted memory: the kernel has no fault injection\n");
		return;
	}
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		/* Allocations that may wait fail as well, and without a report of each. */
		snprintf(path, sizeof(path), DEBUG "%s/ignore-gfp-wait", kinds[i]);
		EXPECT(!write_to(path, "N"), "%s", path);
		snprintf(path, sizeof(path), DEBUG "%s/verbose", kinds[i]);
		EXPECT(!write_to(path, "0"), "%s", path);
	}
	EXPECT(!write_to(DEBUG "fail_page_alloc/min-order", "0"), "min-order");
	RUN(no_failed_allocation_does_harm("use of the device", use_device));
	RUN(no_failed_allocation_does_harm("use of the injector", use_injector));
	EXPECT(!unload(), "unload");
	RUN(no_failed_allocation_does_harm("load", use_load));
	tests_need("inject=1");
}

static int set_online(unsigned int cpu, int online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	return write_to(path, online ? "1" : "0");
}

/* Expiries are neither lost nor moved where the CPU of a timer goes. */
static void a_cpu_may_go_while_a_timer_runs_on_it(unsigned int cpu)
{
	struct wakescope_grid grid = { 0, MS };
	struct wakescope_wakeup wakeup;
	uint64_t due = 0;
	int fd = open(DEVICE, O_RDONLY | O_CLOEXEC), i, online = 1;

	EXPECT(fd >= 0, "open");
	stay_on(cpu);
	EXPECT(!ioctl(fd, WAKESCOPE_IOC_START, &grid), "start");
	stay_on(0);
	for (i = 0; i < 200; i++) {
		if (i % 25 == 12) {
			online = !online;
			EXPECT(!set_online(cpu, online), "CPU %u: %d", cpu, online);
		}
		EXPECT(read(fd, &wakeup, sizeof(wakeup)) == sizeof(wakeup), "read %d", i);
		EXPECT(!due || wakeup.due_ns == due, "%d: %llu", i, wakeup.due_ns);
		EXPECT(wakeup.function_ns >= wakeup.due_ns, "early");
		due = wakeup.due_ns + wakeup.expiries * MS;
	}
	EXPECT(online || !set_online(cpu, 1), "CPU %u", cpu);
	close(fd);
	go_anywhere();
}

struct caller {
	int fd;
	unsigned int cpu;
	struct wakescope_injection asked;
	int made;
};

static void *call(void *argument)
{
	struct caller *caller = argument;

	stay_on(caller->cpu);
	caller->made = ioctl(caller->fd, WAKESCOPE_IOC_INJECT, &caller->asked);
	return NULL;
}

/* Its caller is moved, or does without the CPU that is to hold a lock. */
static void a_cpu_may_go_while_sections_are_made(uint32_t kind, unsigned int on, unsigned int gone)
{
	struct caller caller = { .fd = open(INJECTOR, O_RDONLY | O_CLOEXEC), .cpu = on };
	const int count = 100;
	pthread_t thread;
	int i;

	EXPECT(caller.fd >= 0, "open");
	caller.asked = (struct wakescope_injection){
		.version = WAKESCOPE_INJECT_VERSION,
		.kind = kind,
		.length_ns = 100 * US,
		.interval_ns = 5 * MS,
		.seed = 3,
		.count = count,
	};
	EXPECT(!pthread_create(&thread, NULL, call, &caller), "thread");
	for (i = 0; i < 6; i++) {
		usleep(40000);
		EXPECT(!set_online(gone, i % 2), "CPU %u", gone);
	}
	pthread_join(thread, NULL);
	EXPECT(caller.made == count, "%u on CPU %u: %d", kind, on, caller.made);
	close(caller.fd);
}

static int can_go(unsigned int cpus)
{
	return cpus > 1 && !access("/sys/devices/system/cpu/cpu1/online", W_OK);
}

void take_a_cpu_away(unsigned int cpu)
{
	if (can_go(cpu + 1)) {
		EXPECT(!set_online(cpu, 0), "CPU %u", cpu);
		usleep(20000);
		EXPECT(!set_online(cpu, 1), "CPU %u", cpu);
	}
	usleep(100000);
}

static void cpus_may_go(void)
{
	static const uint32_t kinds[] = { WAKESCOPE_IRQS_OFF, WAKESCOPE_TASKLET, WAKESCOPE_TIMER,
					  WAKESCOPE_HRTIMER, WAKESCOPE_IRQ_WORK, WAKESCOPE_WORK,
					  WAKESCOPE_LOCK_WAIT, WAKESCOPE_NMI };
	unsigned int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t i;

	if (!can_go(cpus)) {
		printf("selftest: skipped: CPUs that go: there is none that can\n");
		return;
	}
	RUN(a_cpu_may_go_while_a_timer_runs_on_it(1));
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (kinds[i] == WAKESCOPE_NMI && !HAS_NMI)
			continue;
		printf("selftest: CPU 1 goes: kind %u\n", kinds[i]);
		RUN(a_cpu_may_go_while_sections_are_made(kinds[i], 1, 1));
	}
	/* With two CPUs there would be none left to hold a lock. */
	if (cpus > 2)
		RUN(a_cpu_may_go_while_sections_are_made(WAKESCOPE_LOCK_WAIT, 0, 1));
}

void test_hardships(void)
{
	tests_need("inject=1");
	printf("selftest: hardships\n");
	cpus_may_go();
	memory_may_be_exhausted_at_any_allocation();
}

#define LEAKS DEBUG "kmemleak"

/* It reports what is older than five seconds, and what two scans have found. */
static int scan_for_leaks(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		sleep(6);
		if (write_to(LEAKS, "scan"))
			return -1;
	}
	return 0;
}

void forget_leaks(void)
{
	if (access(LEAKS, F_OK)) {
		printf("selftest: skipped: leaks: the kernel has no kmemleak\n");
		return;
	}
	EXPECT(!scan_for_leaks(), "scan");
	EXPECT(!write_to(LEAKS, "clear"), "clear");
}

/*
 * Nothing but the module's use was going on, and code of an unloaded module has
 * no name in a stack: so whatever is found counts.
 */
static void nothing_was_leaked(void)
{
	static char found[1 << 16];
	ssize_t length;
	int fd;

	EXPECT(!scan_for_leaks(), "scan");
	fd = open(LEAKS, O_RDONLY | O_CLOEXEC);
	EXPECT(fd >= 0, "open");
	length = read(fd, found, sizeof(found) - 1);
	close(fd);
	printf("selftest: leaks: %zd bytes of report\n", length);
	EXPECT(!length, "%s", found);
}

void test_leaks(void)
{
	if (access(LEAKS, F_OK))
		return;
	tests_need("inject=1");
	RUN(nothing_was_leaked());
}
