// SPDX-License-Identifier: GPL-2.0
/* The tests of waits for locks that another CPU holds. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "injecting.h"
#include "selftest.h"

/* Times above a least one in which a thread did not have its CPU. */
struct gaps {
	uint32_t cpu;
	uint64_t least;
	int looks;
	int stop;
	uint32_t count;
	struct {
		uint64_t begin, end;
	} all[10000];
};

static void *find_gaps(void *argument)
{
	struct gaps *gaps = argument;
	uint64_t last, next;
	int stop;

	stay_on(gaps->cpu);
	last = now();
	__atomic_store_n(&gaps->looks, 1, __ATOMIC_RELEASE);
	/* Looks once more after the end: it may have been away until then. */
	do {
		stop = __atomic_load_n(&gaps->stop, __ATOMIC_ACQUIRE);
		next = now();
		if (next - last > gaps->least && gaps->count < sizeof(gaps->all) / sizeof(*gaps->all)) {
			gaps->all[gaps->count].begin = last;
			gaps->all[gaps->count++].end = next;
		}
		last = next;
	} while (!stop);
	return NULL;
}

/* Whether the thread was away from its CPU for all of this time. */
static int is_in_gap(const struct gaps *gaps, uint64_t begin, uint64_t end)
{
	uint32_t i;

	for (i = 0; i < gaps->count; i++)
		if (gaps->all[i].begin <= begin && end <= gaps->all[i].end)
			return 1;
	return 0;
}

/*
 * While a CPU waits, nothing else runs on the next one. The emulator runs the
 * CPUs in turns, so waits may be longer than they are to be.
 */
static void the_next_cpu_holds_the_lock_for_all_of_the_wait(uint32_t kind, uint32_t cpu)
{
	const uint32_t count = 20, cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t i, whole = 0;
	static struct gaps gaps;
	const struct wakescope_ring *ring;
	pthread_t thread;
	int fd = open_device();

	ring = ring_of(fd);
	EXPECT(fd >= 0 && ring, "open");
	stay_on(cpu);
	gaps = (struct gaps){ .cpu = (cpu + 1) % cpus, .least = MS / 10 };
	EXPECT(!pthread_create(&thread, NULL, find_gaps, &gaps), "thread");
	while (!__atomic_load_n(&gaps.looks, __ATOMIC_ACQUIRE))
		usleep(1000);
	EXPECT(inject(fd, request_for(kind, MS, count)) == (int)count, "%u", kind);
	__atomic_store_n(&gaps.stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	EXPECT(written(ring) == count, "%u", kind);
	for (i = 0; i < count; i++) {
		const struct wakescope_section *section = &ring->sections[i];

		EXPECT(section->kind == kind, "%u", section->kind);
		EXPECT(section->cpu == cpu && section->end_cpu == cpu, "%u", section->cpu);
		if (section->flags)
			continue;
		whole++;
		EXPECT(section->end_ns - section->begin_ns >= MS, "%u: short", kind);
		EXPECT(is_in_gap(&gaps, section->begin_ns, section->begin_ns + MS),
		       "%u on CPU %u: %u, %u gaps", kind, cpu, i, gaps.count);
	}
	/* The lock was given up early for few, because this CPU came too late. */
	EXPECT(whole >= count * 9 / 10, "%u on CPU %u: %u of %u", kind, cpu, whole, count);
	unmap(ring);
	close(fd);
	go_anywhere();
}

/*
 * Takes its CPU for 2 ms again and again, at a priority above what runs there, and
 * leaves it for 20 to 400 us: others do not fall into step with it.
 */
static void *take_the_cpu(void *argument)
{
	struct sched_param priority = { .sched_priority = 50 };
	struct timespec time = { 0, 0 };
	struct gaps *gaps = argument;
	uint64_t began;
	int turn;

	stay_on(gaps->cpu);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
	__atomic_store_n(&gaps->looks, 1, __ATOMIC_RELEASE);
	for (turn = 0; !__atomic_load_n(&gaps->stop, __ATOMIC_ACQUIRE); turn++) {
		for (began = now(); now() - began < 2 * MS;)
			;
		time.tv_nsec = (1 + turn * 7 % 20) * 20 * US;
		nanosleep(&time, NULL);
	}
	return NULL;
}

/*
 * A caller that comes more than 1 ms late finds the lock given up, and has not waited
 * for it: however short the section was to be, and however long it took to look.
 */
static void a_wait_for_a_lock_that_was_given_up_is_marked(void)
{
	const uint32_t count = 40;
	static struct gaps gaps, taken;
	const struct wakescope_ring *ring;
	pthread_t finder, taker;
	uint32_t i, late = 0;
	int fd = open_device();

	ring = ring_of(fd);
	EXPECT(fd >= 0 && ring, "open");
	stay_on(0);
	gaps.cpu = 1;
	/* The other CPU holds the lock for no longer than it takes the caller to come. */
	gaps.least = slower() * US;
	EXPECT(!pthread_create(&finder, NULL, find_gaps, &gaps), "thread");
	EXPECT(!pthread_create(&taker, NULL, take_the_cpu, &taken), "thread");
	while (!__atomic_load_n(&gaps.looks, __ATOMIC_ACQUIRE) ||
	       !__atomic_load_n(&taken.looks, __ATOMIC_ACQUIRE))
		usleep(1000);
	EXPECT(inject(fd, request_for(WAKESCOPE_LOCK_WAIT, US, count)) == (int)count, "inject");
	__atomic_store_n(&gaps.stop, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&taken.stop, 1, __ATOMIC_RELEASE);
	pthread_join(finder, NULL);
	pthread_join(taker, NULL);
	for (i = 0; i < count; i++) {
		const struct wakescope_section *section = &ring->sections[i];

		late += section->flags == WAKESCOPE_SECTION_CUT;
		EXPECT(section->flags ||
		       is_in_gap(&gaps, section->begin_ns, section->begin_ns + US),
		       "%u: nobody held the lock for %llu ns", i, section->end_ns - section->begin_ns);
	}
	printf("selftest: %u of %u came too late for the lock\n", late, count);
	EXPECT(late, "all came in time");
}

/* A CPU holds the lock before anybody waits for it. That time counts as well. */
static void the_share_of_a_cpu_includes_the_locks_that_it_holds(void)
{
	const uint32_t count = 20;
	uint64_t began = now(), least;
	int fd = open_device();

	EXPECT(fd >= 0, "open");
	EXPECT(inject(fd, request_for(WAKESCOPE_LOCK_WAIT, US, count)) == (int)count, "inject");
	/* After the last one nobody waits. */
	least = (count - 1) * WAKESCOPE_INJECT_SHARE * (US + WAKESCOPE_HOLD_MAX_NS);
	EXPECT(now() - began >= least, "%llu ns", (unsigned long long)(now() - began));
	close(fd);
}

/* A wait that has to wait for the other CPU holds up no section on its own. */
static void a_wait_that_was_not_made_takes_no_share(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct caller caller = { .asked = request_for(WAKESCOPE_LOCK_WAIT, 50 * MS, 1) };
	const struct wakescope_ring *ring;
	pthread_t thread;
	uint64_t began;

	sigaction(SIGUSR1, &action, NULL);
	caller.fd = open_device();
	ring = ring_of(caller.fd);
	EXPECT(caller.fd >= 0 && ring, "open");
	/* After this one CPU 1 is left alone for 300 ms. */
	stay_on(1);
	EXPECT(inject(caller.fd, request_for(WAKESCOPE_LOOP, 100 * MS, 1)) == 1, "inject");
	stay_on(0);
	pthread_create(&thread, NULL, call, &caller);
	usleep(50000);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	EXPECT(caller.made == -1 && caller.error == EINTR, "%d", caller.made);
	began = now();
	EXPECT(inject(caller.fd, request_for(WAKESCOPE_LOOP, US, 1)) == 1, "inject");
	EXPECT(ring->sections[1].begin_ns - began < 50 * MS, "%llu ns",
	       (unsigned long long)(ring->sections[1].begin_ns - began));
	unmap(ring);
	close(caller.fd);
	go_anywhere();
}

void test_waits(void)
{
	uint32_t cpu, cpus = sysconf(_SC_NPROCESSORS_ONLN);

	tests_need("inject=1");
	for (cpu = 0; cpu < cpus; cpu++) {
		printf("selftest: waits on CPU %u\n", cpu);
		RUN(the_next_cpu_holds_the_lock_for_all_of_the_wait(WAKESCOPE_LOCK_WAIT, cpu));
		RUN(the_next_cpu_holds_the_lock_for_all_of_the_wait(WAKESCOPE_LOCK_WAIT_IRQS_OFF, cpu));
	}
	RUN(a_wait_for_a_lock_that_was_given_up_is_marked());
	RUN(the_share_of_a_cpu_includes_the_locks_that_it_holds());
	RUN(a_wait_that_was_not_made_takes_no_share());
}
