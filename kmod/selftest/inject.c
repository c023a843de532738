// SPDX-License-Identifier: GPL-2.0
/* The tests of the injector. They run in a guest whose clock counts instructions. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injecting.h"
#include "selftest.h"

#define DEVICE "/dev/wakescope-inject"

int open_device(void)
{
	return open(DEVICE, O_RDONLY | O_CLOEXEC);
}

const struct wakescope_ring *ring_of(int fd)
{
	void *ring = mmap(NULL, sizeof(struct wakescope_ring), PROT_READ, MAP_SHARED,
			  fd, 0);

	return ring == MAP_FAILED ? NULL : ring;
}

void unmap(const struct wakescope_ring *ring)
{
	munmap((void *)ring, sizeof(*ring));
}

uint64_t written(const struct wakescope_ring *ring)
{
	return __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE);
}

int has_points(uint32_t kind)
{
	return kind >= WAKESCOPE_LOOP_RESCHED && kind <= WAKESCOPE_LOOP_RESTART;
}

/* It waits for a lock that another CPU holds. */
static int needs_other(uint32_t kind)
{
	return kind == WAKESCOPE_LOCK_WAIT || kind == WAKESCOPE_LOCK_WAIT_IRQS_OFF;
}

struct wakescope_injection request_for(uint32_t kind, uint64_t length, uint32_t count)
{
	return (struct wakescope_injection){
		.version = WAKESCOPE_INJECT_VERSION,
		.kind = kind,
		.length_ns = length,
		.interval_ns = count > 1 ? 10 * length : 0,
		.seed = 7,
		.count = count,
		.every = has_points(kind) ? 100 : 0,
		.again = kind == WAKESCOPE_LOOP_RESTART ? 500 : 0,
	};
}

int inject(int fd, struct wakescope_injection injection)
{
	return ioctl(fd, WAKESCOPE_IOC_INJECT, &injection);
}

static void the_device_exists_only_with_the_parameter(void)
{
	int fd;

	EXPECT(open_device() < 0 && errno == ENOENT, "without a parameter");
	EXPECT(!unload() && !load_with("inject=0"), "load");
	EXPECT(open_device() < 0 && errno == ENOENT, "inject=0");
	EXPECT(!unload() && !load_with("inject=1"), "load");
	fd = open_device();
	EXPECT(fd >= 0, "open");
	EXPECT(unload() < 0, "it is open");
	close(fd);
}

/* Binds this thread to the CPU that it is on. */
static uint32_t stay_here(void)
{
	uint32_t cpu = sched_getcpu();

	stay_on(cpu);
	return cpu;
}

/* Nothing can preempt these, so they take exactly their length. */
static int is_exact(uint32_t kind)
{
	return kind == WAKESCOPE_IRQS_OFF || kind == WAKESCOPE_HRTIMER ||
	       kind == WAKESCOPE_IRQ_WORK || kind == WAKESCOPE_NMI;
}

static void the_ring_reports_sections_of_all_kinds(void)
{
	const uint64_t length = slower() * 200 * US, near = slower() * 20 * US;
	uint32_t kind, i, count = 20, cpu = stay_here();

	for (kind = 1; kind < WAKESCOPE_KINDS; kind++) {
		int fd = open_device();
		const struct wakescope_ring *ring = ring_of(fd);
		uint64_t last = now();

		EXPECT(fd >= 0 && ring, "open");
		if (needs_other(kind)) {
			EXPECT(inject(fd, request_for(kind, length, count)) < 0 && errno == ENODEV,
			       "%u: there is no other CPU", kind);
			unmap(ring);
			close(fd);
			continue;
		}
		if (kind == WAKESCOPE_NMI && !HAS_NMI) {
			EXPECT(inject(fd, request_for(kind, length, count)) < 0 &&
			       errno == EOPNOTSUPP, "there is no NMI");
			unmap(ring);
			close(fd);
			continue;
		}
		EXPECT(inject(fd, request_for(kind, length, count)) == (int)count, "%u", kind);
		EXPECT(written(ring) == count && !ring->overwritten, "%u", kind);
		for (i = 0; i < count; i++) {
			const struct wakescope_section *section = &ring->sections[i];
			uint64_t took = section->end_ns - section->begin_ns;

			EXPECT(section->sequence == i + 1, "%u: %llu", kind, section->sequence);
			EXPECT(section->kind == kind && !section->flags, "%u: %u", kind, section->flags);
			EXPECT(section->length_ns == length, "%u", kind);
			EXPECT(section->begin_ns >= last, "%u: order", kind);
			EXPECT(took >= length, "%u: %llu ns", kind, (unsigned long long)took);
			EXPECT(!is_exact(kind) || took <= length + near, "%u: %llu ns", kind,
			       (unsigned long long)took);
			EXPECT(section->turns > 10, "%u: %llu turns", kind, section->turns);
			EXPECT(section->work <= section->turns, "%u: %llu", kind, section->work);
			EXPECT(kind == WAKESCOPE_LOOP_RESTART || section->work == section->turns,
			       "%u: %llu", kind, section->work);
			EXPECT(section->cpu == cpu && section->end_cpu == cpu, "%u", kind);
			/* Chance varies the interval by half in both directions. */
			if (i)
				EXPECT(section->begin_ns - section[-1].begin_ns >= 5 * length - near,
				       "%u: too early", kind);
			last = section->end_ns;
		}
		EXPECT(last <= now(), "%u: in the future", kind);
		unmap(ring);
		close(fd);
	}
	go_anywhere();
}

static void invalid_requests_are_refused(void)
{
	static const uint64_t wild[] = { 0, 1, 2, 999, 1ULL << 31, 1ULL << 32,
					 INT64_MAX, 1ULL << 63, UINT64_MAX };
	void *closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct wakescope_injection good = request_for(WAKESCOPE_IRQS_OFF, 2 * US, 2), bad;
	const struct wakescope_ring *ring;
	uint32_t seed = 1, i, rest;
	int fd = open_device();

	ring = ring_of(fd);
	EXPECT(fd >= 0 && ring, "open");
#define REFUSED(field, value)                                                 \
	do {                                                                  \
		bad = good;                                                   \
		bad.field = (value);                                          \
		EXPECT(inject(fd, bad) < 0 && errno == EINVAL, #field " %llu", \
		       (unsigned long long)(value));                          \
	} while (0)
	for (i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
		REFUSED(length_ns, wild[i]);
		if (wild[i] > WAKESCOPE_INTERVAL_MAX_NS || wild[i] < US)
			REFUSED(interval_ns, wild[i]);
		REFUSED(version, (uint32_t)wild[i] == WAKESCOPE_INJECT_VERSION ? 0 : wild[i]);
		REFUSED(kind, (uint32_t)wild[i] < WAKESCOPE_KINDS ? 0 : (uint32_t)wild[i]);
		REFUSED(count, (uint32_t)wild[i] <= 2 ? 0 : (uint32_t)wild[i] | 1U << 30);
		REFUSED(every, (uint32_t)wild[i] | 1);
		REFUSED(pairing, (uint32_t)wild[i] | 4);
		REFUSED(second, (uint32_t)wild[i] | 1);
	}
	REFUSED(length_ns, WAKESCOPE_SECTION_MIN_NS - 1);
	REFUSED(length_ns, WAKESCOPE_SECTION_MAX_NS + 1);
	REFUSED(interval_ns, WAKESCOPE_INJECT_SHARE * good.length_ns - 1);
	REFUSED(interval_ns, WAKESCOPE_INTERVAL_MAX_NS + 1);
	REFUSED(kind, WAKESCOPE_KINDS);
	REFUSED(kind, WAKESCOPE_LOOP_RESCHED); /* without a number of turns */
	REFUSED(count, WAKESCOPE_COUNT_MAX + 1);
	REFUSED(count, 1); /* with an interval */
	good = request_for(WAKESCOPE_LOOP_RESCHED, 2 * US, 2);
	REFUSED(every, 0);
	REFUSED(every, WAKESCOPE_EVERY_MAX + 1);
	REFUSED(kind, WAKESCOPE_LOOP); /* has no points */
	REFUSED(again, 1); /* does not restart */
	REFUSED(reserved, 1);
	good = request_for(WAKESCOPE_LOOP_RESTART, 2 * US, 2);
	REFUSED(again, WAKESCOPE_AGAIN_MAX + 1);
	REFUSED(every, 0);
	good = request_for(WAKESCOPE_LOCK_WAIT, 2 * US, 1);
	REFUSED(length_ns, WAKESCOPE_SECTION_MAX_NS - WAKESCOPE_HOLD_MAX_NS + 1);
	REFUSED(length_ns, UINT64_MAX);
	EXPECT(ioctl(fd, WAKESCOPE_IOC_INJECT, NULL) < 0 && errno == EFAULT, "null");
	EXPECT(ioctl(fd, WAKESCOPE_IOC_INJECT, closed) < 0 && errno == EFAULT, "closed");
	EXPECT(ioctl(fd, WAKESCOPE_IOC_INJECT, -8L) < 0 && errno == EFAULT, "kernel");
	for (i = 0; i < 20000; i++) {
		/* Random bytes, except for the fields that are checked first. */
		for (rest = 0; rest < sizeof(bad) / 4; rest++) {
			seed = seed * 1103515245 + 12345;
			memcpy((char *)&bad + 4 * rest, &seed, 4);
		}
		bad.version = WAKESCOPE_INJECT_VERSION;
		bad.kind = seed % WAKESCOPE_KINDS;
		EXPECT(inject(fd, bad) < 0 && errno == EINVAL, "random");
		EXPECT(ioctl(fd, seed, closed) < 0, "%x", seed);
	}
	EXPECT(!written(ring), "%llu", ring->written);
	EXPECT(read(fd, &seed, 4) < 0 && write(fd, &seed, 4) < 0, "read");
	unmap(ring);
	close(fd);
	munmap(closed, 4096);
}

void *call(void *argument)
{
	struct caller *caller = argument;

	caller->made = inject(caller->fd, caller->asked);
	caller->error = errno;
	return NULL;
}

/* Wakes every 200 us, at a priority above what it preempts, until it is told to end. */
static void *sleep_often(void *argument)
{
	struct sched_param priority = { .sched_priority = 50 };
	struct timespec time = { 0, 200 * US };
	struct caller *sleeper = argument;

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
	while (!__atomic_load_n(&sleeper->made, __ATOMIC_ACQUIRE))
		nanosleep(&time, NULL);
	return NULL;
}

/* Whether spin locks can be preempted: with PREEMPT_RT nobody waits for a break. */
static int is_preemptible(void)
{
	struct utsname name;

	return !uname(&name) && strstr(name.version, "PREEMPT_RT");
}

/* It repeats turns after a break, and only then. */
static void a_loop_that_restarts_repeats_turns_after_wakeups(void)
{
	struct wakescope_injection asked = request_for(WAKESCOPE_LOOP_RESTART, 20 * MS, 1);
	int fd = open_device();
	const struct wakescope_ring *ring = ring_of(fd);
	struct caller sleeper = { .made = 0 };
	pthread_t thread;

	EXPECT(fd >= 0 && ring, "open");
	asked.every = 1;
	asked.again = WAKESCOPE_AGAIN_MAX;
	stay_here();
	EXPECT(!pthread_create(&thread, NULL, sleep_often, &sleeper), "thread");
	EXPECT(inject(fd, asked) == 1, "inject");
	__atomic_store_n(&sleeper.made, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	go_anywhere();
	EXPECT(ring->sections[0].turns > 1000, "%llu", ring->sections[0].turns);
	EXPECT(is_preemptible() || ring->sections[0].work < ring->sections[0].turns / 2,
	       "%llu of %llu", ring->sections[0].work, ring->sections[0].turns);
	unmap(ring);
	close(fd);
}

static void the_ring_is_mapped_read_only_and_within_its_size(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	size_t size = (sizeof(struct wakescope_ring) + 4095) & ~4095UL;
	void *ring;

	EXPECT(fd >= 0, "open");
	EXPECT(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED, "w");
	EXPECT(mmap(NULL, size + 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED, "long");
	EXPECT(mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 4096) == MAP_FAILED, "offset");
	EXPECT(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 1L << 40) == MAP_FAILED, "far");
	ring = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	EXPECT(ring != MAP_FAILED, "mmap");
	EXPECT(mprotect(ring, size, PROT_READ | PROT_WRITE) < 0, "mprotect");
	/* The mapping stays valid after the file was closed. */
	EXPECT(inject(fd, request_for(WAKESCOPE_LOOP, 2 * US, 1)) == 1, "inject");
	close(fd);
	EXPECT(written(ring) == 1, "closed");
	EXPECT(unload() < 0, "it is mapped");
	munmap(ring, size);
}

static void the_oldest_sections_are_overwritten_and_counted(void)
{
	const uint32_t more = 100, count = WAKESCOPE_RING_SECTIONS + more;
	int fd = open_device();
	const struct wakescope_ring *ring = ring_of(fd);
	uint64_t sequence;

	EXPECT(fd >= 0 && ring, "open");
	EXPECT(inject(fd, request_for(WAKESCOPE_IRQS_OFF, US, count)) == (int)count, "inject");
	EXPECT(written(ring) == count && ring->overwritten == more, "%llu", ring->overwritten);
	for (sequence = more + 1; sequence <= count; sequence++) {
		uint32_t at = (sequence - 1) % WAKESCOPE_RING_SECTIONS;

		EXPECT(ring->sections[at].sequence == sequence, "%llu", (unsigned long long)sequence);
	}
	unmap(ring);
	close(fd);
}

/* Starts a call that makes very many sections, and waits for the first three. */
static int start_many(struct caller *caller, pthread_t *thread, const struct wakescope_ring *ring)
{
	uint64_t before = written(ring);
	int tries;

	pthread_create(thread, NULL, call, caller);
	for (tries = 0; tries < 1000 && written(ring) < before + 3; tries++)
		usleep(10000);
	return tries < 1000;
}

void on_signal(int number)
{
	(void)number;
}

static void a_close_or_a_signal_ends_a_call_and_no_second_call_begins(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct caller caller = { .asked = request_for(WAKESCOPE_IRQS_OFF, MS, WAKESCOPE_COUNT_MAX) };
	const struct wakescope_ring *ring;
	pthread_t thread;
	uint64_t made;

	sigaction(SIGUSR1, &action, NULL);
	caller.fd = open_device();
	ring = ring_of(caller.fd);
	EXPECT(caller.fd >= 0 && ring, "open");
	EXPECT(start_many(&caller, &thread, ring), "begin");
	EXPECT(inject(caller.fd, request_for(WAKESCOPE_LOOP, US, 1)) < 0 && errno == EBUSY, "twice");
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	EXPECT(caller.made >= 3 && written(ring) == (uint64_t)caller.made, "%d", caller.made);
	made = written(ring);
	EXPECT(start_many(&caller, &thread, ring), "begin again");
	close(caller.fd);
	pthread_join(thread, NULL);
	EXPECT(caller.made >= 3 && written(ring) == made + caller.made, "%d", caller.made);
	made = written(ring);
	usleep(50000);
	EXPECT(written(ring) == made, "it goes on");
	unmap(ring);
}

static void a_signal_ends_a_call_that_waits_for_its_share(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct caller caller = { .asked = request_for(WAKESCOPE_IRQS_OFF, US, 1) };
	const struct wakescope_ring *ring;
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	caller.fd = open_device();
	ring = ring_of(caller.fd);
	EXPECT(caller.fd >= 0 && ring, "open");
	/* After this one the CPU is left alone for 300 ms. */
	EXPECT(inject(caller.fd, request_for(WAKESCOPE_LOOP, 100 * MS, 1)) == 1, "inject");
	pthread_create(&thread, NULL, call, &caller);
	usleep(50000);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	EXPECT(caller.made == -1 && caller.error == EINTR, "%d", caller.made);
	EXPECT(written(ring) == 1, "%llu", (unsigned long long)written(ring));
	unmap(ring);
	close(caller.fd);
}

static void a_child_that_closes_the_file_does_not_end_the_call_of_its_parent(void)
{
	struct caller caller = { .asked = request_for(WAKESCOPE_PREEMPT_OFF, MS, 30) };
	const struct wakescope_ring *ring;
	pthread_t thread;
	int status;
	pid_t child;

	caller.fd = open_device();
	ring = ring_of(caller.fd);
	EXPECT(caller.fd >= 0 && ring, "open");
	EXPECT(start_many(&caller, &thread, ring), "begin");
	child = fork();
	if (!child)
		_exit(close(caller.fd) != 0);
	waitpid(child, &status, 0);
	EXPECT(!status, "%x", status);
	pthread_join(thread, NULL);
	EXPECT(caller.made == 30, "%d", caller.made);
	child = fork();
	if (!child)
		_exit(inject(caller.fd, request_for(WAKESCOPE_LOOP, US, 1)) != 1);
	waitpid(child, &status, 0);
	EXPECT(!status && written(ring) == 31, "%x", status);
	unmap(ring);
	close(caller.fd);
}

static void a_killed_caller_makes_no_more_sections(void)
{
	static const uint32_t each[] = { WAKESCOPE_IRQS_OFF, WAKESCOPE_TIMER, WAKESCOPE_WORK,
					 WAKESCOPE_LOOP_LOCK_BREAK };
	size_t i;

	for (i = 0; i < sizeof(each) / sizeof(*each); i++) {
		int fd = open_device(), status, tries;
		const struct wakescope_ring *ring = ring_of(fd);
		uint64_t made;
		pid_t child;

		EXPECT(fd >= 0 && ring, "open");
		child = fork();
		if (!child)
			_exit(inject(fd, request_for(each[i], 50 * MS, WAKESCOPE_COUNT_MAX)));
		for (tries = 0; tries < 1000 && written(ring) < 2; tries++)
			usleep(10000);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		EXPECT(WIFSIGNALED(status), "%x", status);
		made = written(ring);
		usleep(1500000);
		EXPECT(made >= 2 && written(ring) == made, "%zu: it goes on", i);
		EXPECT(inject(fd, request_for(each[i], US, 1)) == 1, "%zu: the next one", i);
		unmap(ring);
		close(fd);
	}
}

static void several_callers_share_the_bound_of_a_cpu(void)
{
	struct caller callers[3];
	pthread_t threads[3];
	uint64_t began = now(), least, took;
	int i;

	for (i = 0; i < 3; i++) {
		callers[i] = (struct caller){ .fd = open_device() };
		callers[i].asked = request_for(WAKESCOPE_IRQS_OFF, MS, 20);
		callers[i].asked.interval_ns = WAKESCOPE_INJECT_SHARE * MS;
		EXPECT(callers[i].fd >= 0, "open");
		pthread_create(&threads[i], NULL, call, &callers[i]);
	}
	for (i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		EXPECT(callers[i].made == 20, "%d", callers[i].made);
		close(callers[i].fd);
	}
	/* After the last one nobody waits. */
	least = (60 - 1) * WAKESCOPE_INJECT_SHARE * MS;
	took = now() - began;
	EXPECT(took >= least, "%llu ns", (unsigned long long)took);
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

	/* It still may open root's files: only CAP_SYS_ADMIN is gone. */
	none[0].effective = none[0].permitted = 1U << CAP_DAC_OVERRIDE;
	return syscall(SYS_capset, &header, none);
}

static void callers_without_the_capability_are_refused(void)
{
	int fd = open_device(), status;
	pid_t child;

	EXPECT(fd >= 0, "open");
	child = fork();
	if (!child) {
		if (drop_capabilities())
			_exit(1);
		if (inject(fd, request_for(WAKESCOPE_LOOP, US, 1)) >= 0 || errno != EPERM)
			_exit(2);
		_exit(open_device() >= 0 || errno != EPERM ? 3 : 0);
	}
	waitpid(child, &status, 0);
	EXPECT(!status, "%x", status);
	child = fork();
	if (!child)
		_exit(setuid(65534) || open_device() >= 0);
	waitpid(child, &status, 0);
	EXPECT(!status, "%x", status);
	close(fd);
}

static void open_files_are_bounded(void)
{
	int fds[100], i, most;

	for (most = 0; most < 100; most++) {
		fds[most] = open_device();
		if (fds[most] < 0)
			break;
	}
	EXPECT(most == 64 && errno == EMFILE, "%d", most);
	for (i = 0; i < most; i++)
		close(fds[i]);
	i = open_device();
	EXPECT(i >= 0, "they are given back");
	close(i);
	EXPECT(!unload(), "nobody has it open");
	EXPECT(!load_with("inject=1"), "load");
}

void test_injector(void)
{
	static void (*const tests[])(void) = {
		the_ring_reports_sections_of_all_kinds,
		invalid_requests_are_refused,
		a_loop_that_restarts_repeats_turns_after_wakeups,
		the_ring_is_mapped_read_only_and_within_its_size,
		the_oldest_sections_are_overwritten_and_counted,
		a_close_or_a_signal_ends_a_call_and_no_second_call_begins,
		a_signal_ends_a_call_that_waits_for_its_share,
		a_child_that_closes_the_file_does_not_end_the_call_of_its_parent,
		a_killed_caller_makes_no_more_sections,
		several_callers_share_the_bound_of_a_cpu,
		callers_without_the_capability_are_refused,
		open_files_are_bounded,
	};
	size_t i;

	tests_need("");
	RUN(the_device_exists_only_with_the_parameter());
	tests_need("inject=1");
	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		printf("selftest: injector %zu\n", i + 1);
		RUN(tests[i]());
	}
	test_pairs();
}
