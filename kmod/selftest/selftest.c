// SPDX-License-Identifier: GPL-2.0
/*
 * The first process of a guest that tries the module, and tries to hurt it.
 *
 * It says on the console what it tried, "selftest: all passed" if all of it went
 * well, and restarts the guest. What the kernel has to say about it is in the
 * same log.
 *
 *   cc -static -O2 -Wall -pthread -o selftest *.c
 *   wakescope lab run --guest-program selftest --stimulus device ...
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../wakescope.h"
#include "selftest.h"

#define DEVICE "/dev/wakescope"

/* Of syslog(2): which messages the console shows, those more urgent than a level. */
#define CONSOLE_LEVEL 8
#define NOTICES 5

static int start(int fd, uint64_t first, uint64_t period)
{
	struct wakescope_grid grid = { first, period };

	return ioctl(fd, WAKESCOPE_IOC_START, &grid);
}

static int open_device(int flags)
{
	return open(DEVICE, O_RDONLY | O_CLOEXEC | flags);
}

static void stamps_are_in_order_and_on_the_grid(void)
{
	struct wakescope_wakeup wakeup;
	uint64_t first = now() + 5 * MS, due = first, expiries = 0;
	int fd = open_device(0), i;

	EXPECT(fd >= 0, "open");
	EXPECT(!start(fd, first, MS), "start");
	for (i = 0; i < 200; i++) {
		EXPECT(read(fd, &wakeup, sizeof(wakeup)) == sizeof(wakeup), "read");
		EXPECT(wakeup.due_ns == due, "%llu", wakeup.due_ns);
		EXPECT(wakeup.expiries >= 1, "%llu", wakeup.expiries);
		EXPECT(wakeup.function_ns >= wakeup.due_ns, "early");
		EXPECT(wakeup.awake_ns >= wakeup.function_ns, "order");
		EXPECT(wakeup.awake_ns <= now(), "in the future");
		due += wakeup.expiries * MS;
		expiries += wakeup.expiries;
	}
	EXPECT(due == first + expiries * MS, "drift");
	close(fd);
}

static void a_first_read_starts_a_timer_of_ten_milliseconds(void)
{
	struct wakescope_wakeup wakeup[2];
	int fd = open_device(0), i;

	EXPECT(fd >= 0, "open");
	for (i = 0; i < 2; i++)
		EXPECT(read(fd, &wakeup[i], sizeof(wakeup[i])) > 0, "read");
	EXPECT(wakeup[0].slept == 1, "it has waited");
	EXPECT(wakeup[1].due_ns - wakeup[0].due_ns ==
		       wakeup[0].expiries * WAKESCOPE_PERIOD_NS,
	       "%llu", wakeup[1].due_ns - wakeup[0].due_ns);
	close(fd);
}

static void a_nonblocking_read_does_not_wait(void)
{
	struct wakescope_wakeup wakeup;
	struct pollfd entry = { .fd = open_device(O_NONBLOCK), .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN };
	int all = epoll_create1(0);

	EXPECT(entry.fd >= 0, "open");
	EXPECT(!start(entry.fd, now() + 20 * MS, 20 * MS), "start");
	EXPECT(read(entry.fd, &wakeup, sizeof(wakeup)) < 0 && errno == EAGAIN, "read");
	EXPECT(poll(&entry, 1, 0) == 0, "poll");
	EXPECT(poll(&entry, 1, 10000) == 1 && entry.revents == POLLIN, "poll");
	EXPECT(read(entry.fd, &wakeup, sizeof(wakeup)) > 0, "read");
	EXPECT(wakeup.slept == 0, "it has not waited");
	EXPECT(!epoll_ctl(all, EPOLL_CTL_ADD, entry.fd, &event), "epoll_ctl");
	EXPECT(epoll_wait(all, &event, 1, 10000) == 1, "epoll_wait");
	/* The file goes while epoll still knows it. */
	close(entry.fd);
	EXPECT(epoll_wait(all, &event, 1, 50) == 0, "epoll_wait");
	close(all);
}

static void a_timer_without_a_reader_rests_and_counts_all_expiries(void)
{
	struct wakescope_wakeup wakeup;
	uint64_t first = now() + MS, due;
	struct timespec second = { 1, 200 * MS };
	int fd = open_device(0), i;

	EXPECT(fd >= 0, "open");
	EXPECT(!start(fd, first, MS), "start");
	nanosleep(&second, NULL);
	EXPECT(read(fd, &wakeup, sizeof(wakeup)) > 0, "read");
	EXPECT(wakeup.due_ns == first, "%llu", wakeup.due_ns);
	EXPECT(wakeup.expiries >= 1199, "%llu", wakeup.expiries);
	due = first + wakeup.expiries * MS;
	for (i = 0; i < 5; i++) {
		EXPECT(read(fd, &wakeup, sizeof(wakeup)) > 0, "read");
		EXPECT(wakeup.due_ns == due, "%llu", wakeup.due_ns);
		due += wakeup.expiries * MS;
	}
	close(fd);
}

static void invalid_requests_are_refused(void)
{
	static const uint64_t periods[] = {
		0, 1, WAKESCOPE_PERIOD_MIN_NS - 1, WAKESCOPE_PERIOD_MAX_NS + 1,
		INT64_MAX, 1ULL << 63, UINT64_MAX,
	};
	static const uint64_t firsts[] = { 1ULL << 62, 1ULL << 63, UINT64_MAX };
	struct wakescope_wakeup wakeup;
	char small[sizeof(wakeup) - 1];
	void *closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	int fd = open_device(0);
	uint32_t version = 0, seed = 1;
	size_t i;

	EXPECT(fd >= 0, "open");
	EXPECT(!ioctl(fd, WAKESCOPE_IOC_VERSION, &version), "version");
	EXPECT(version == WAKESCOPE_VERSION, "%u", version);
	for (i = 0; i < sizeof(periods) / sizeof(*periods); i++)
		EXPECT(start(fd, 0, periods[i]) < 0 && errno == EINVAL, "%zu", i);
	for (i = 0; i < sizeof(firsts) / sizeof(*firsts); i++)
		EXPECT(start(fd, firsts[i], MS) < 0 && errno == EINVAL, "%zu", i);
	/* One that is past, and one that is as far as it may be. */
	EXPECT(!start(fd, 1, WAKESCOPE_PERIOD_MIN_NS), "start");
	EXPECT(read(fd, &wakeup, sizeof(wakeup)) > 0 && wakeup.due_ns == 1, "read");
	EXPECT(!start(fd, now() + WAKESCOPE_PERIOD_MAX_NS - 1000 * MS, MS), "start");
	EXPECT(ioctl(fd, WAKESCOPE_IOC_START, NULL) < 0 && errno == EFAULT, "null");
	EXPECT(ioctl(fd, WAKESCOPE_IOC_START, closed) < 0 && errno == EFAULT, "closed");
	EXPECT(ioctl(fd, WAKESCOPE_IOC_START, -8L) < 0 && errno == EFAULT, "kernel");
	EXPECT(ioctl(fd, WAKESCOPE_IOC_VERSION, closed) < 0 && errno == EFAULT, "closed");
	for (i = 0; i < 20000; i++) {
		seed = seed * 1103515245 + 12345;
		if (seed == WAKESCOPE_IOC_VERSION || seed == WAKESCOPE_IOC_START ||
		    seed == WAKESCOPE_IOC_STOP)
			continue;
		EXPECT(ioctl(fd, seed, closed) < 0, "%x", seed);
	}
	for (i = 0; i < 256; i++)
		ioctl(fd, _IO(WAKESCOPE_IOC_TYPE, i), closed);
	EXPECT(!start(fd, 0, MS), "start");
	EXPECT(read(fd, small, sizeof(small)) < 0 && errno == EINVAL, "short");
	EXPECT(read(fd, closed, sizeof(wakeup)) < 0 && errno == EFAULT, "closed");
	EXPECT(read(fd, &wakeup, sizeof(wakeup)) > 0, "read");
	EXPECT(write(fd, small, 1) < 0, "write");
	EXPECT(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED, "mmap");
	EXPECT(lseek(fd, 0, SEEK_SET) < 0 && errno == ESPIPE, "lseek");
	EXPECT(pread(fd, &wakeup, sizeof(wakeup), 0) < 0, "pread");
	EXPECT(!ioctl(fd, WAKESCOPE_IOC_STOP), "stop");
	EXPECT(!ioctl(fd, WAKESCOPE_IOC_STOP), "stop");
	close(fd);
	munmap(closed, 4096);
}

struct reader {
	int fd;
	int count;
	uint64_t expiries;
	int error;
};

static void *read_some(void *argument)
{
	struct reader *reader = argument;
	struct wakescope_wakeup wakeup;
	int i;

	for (i = 0; i < reader->count; i++) {
		if (read(reader->fd, &wakeup, sizeof(wakeup)) < 0) {
			reader->error = errno;
			return NULL;
		}
		reader->expiries += wakeup.expiries;
	}
	return NULL;
}

static void each_expiry_goes_to_one_of_several_readers(void)
{
	struct reader readers[4];
	pthread_t threads[4];
	uint64_t first = now() + 5 * MS, expiries = 0;
	struct wakescope_wakeup wakeup;
	int fd = open_device(0), i;

	EXPECT(fd >= 0, "open");
	EXPECT(!start(fd, first, MS), "start");
	for (i = 0; i < 4; i++) {
		readers[i] = (struct reader){ .fd = fd, .count = 25 };
		pthread_create(&threads[i], NULL, read_some, &readers[i]);
	}
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		EXPECT(!readers[i].error, "%d", readers[i].error);
		expiries += readers[i].expiries;
	}
	EXPECT(read(fd, &wakeup, sizeof(wakeup)) > 0, "read");
	EXPECT(wakeup.due_ns == first + expiries * MS, "some are lost");
	close(fd);
}

static void files_have_timers_of_their_own_and_are_bounded(void)
{
	struct wakescope_wakeup wakeup;
	static int fds[300];
	int i, most = 0;

	for (i = 0; i < 300; i++) {
		fds[i] = open_device(O_NONBLOCK);
		if (fds[i] < 0)
			break;
		most++;
		EXPECT(!start(fds[i], 0, (10 + i) * MS), "start");
	}
	EXPECT(most == 256 && errno == EMFILE, "%d", most);
	usleep(100000);
	for (i = 0; i < 50; i++) {
		EXPECT(read(fds[i], &wakeup, sizeof(wakeup)) > 0, "%d", i);
		EXPECT(wakeup.expiries >= 100 / (10 + i) - 1U, "%llu", wakeup.expiries);
	}
	for (i = 0; i < most; i++)
		close(fds[i]);
	i = open_device(0);
	EXPECT(i >= 0, "they are given back");
	close(i);
}

static void on_signal(int number)
{
	(void)number;
}

static void a_signal_interrupts_a_read_and_loses_no_expiry(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct reader reader = { .count = 1 };
	uint64_t first = now() + 300 * MS;
	struct wakescope_wakeup wakeup;
	pthread_t thread;

	reader.fd = open_device(0);
	EXPECT(reader.fd >= 0, "open");
	EXPECT(!start(reader.fd, first, 300 * MS), "start");
	/* Without SA_RESTART, and then with it. */
	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&thread, NULL, read_some, &reader);
	usleep(50000);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	EXPECT(reader.error == EINTR, "%d", reader.error);
	action.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &action, NULL);
	reader.error = 0;
	pthread_create(&thread, NULL, read_some, &reader);
	usleep(50000);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	EXPECT(!reader.error && reader.expiries, "%d", reader.error);
	EXPECT(read(reader.fd, &wakeup, sizeof(wakeup)) > 0, "read");
	EXPECT(wakeup.due_ns == first + reader.expiries * 300 * MS, "lost");
	close(reader.fd);
}

static void a_file_may_be_closed_in_the_middle_of_a_read(void)
{
	struct reader reader = { .count = 1 };
	pthread_t thread;

	reader.fd = open_device(0);
	EXPECT(reader.fd >= 0, "open");
	EXPECT(!start(reader.fd, 0, 100 * MS), "start");
	pthread_create(&thread, NULL, read_some, &reader);
	usleep(20000);
	close(reader.fd);
	pthread_join(thread, NULL);
	EXPECT(!reader.error && reader.expiries == 1, "%d", reader.error);
}

static void timers_may_be_set_while_others_read(void)
{
	struct reader reader = { .count = 200 };
	pthread_t thread;
	int i;

	reader.fd = open_device(0);
	EXPECT(reader.fd >= 0, "open");
	EXPECT(!start(reader.fd, 0, WAKESCOPE_PERIOD_MIN_NS), "start");
	pthread_create(&thread, NULL, read_some, &reader);
	for (i = 0; i < 200; i++) {
		EXPECT(!ioctl(reader.fd, WAKESCOPE_IOC_STOP), "stop");
		EXPECT(!start(reader.fd, 0, WAKESCOPE_PERIOD_MIN_NS), "start");
		usleep(100);
	}
	pthread_join(thread, NULL);
	EXPECT(!reader.error, "%d", reader.error);
	close(reader.fd);
}

static void a_child_keeps_the_file_open_until_it_dies(void)
{
	struct wakescope_wakeup wakeup;
	int fd = open_device(0), status;
	pid_t child;

	EXPECT(fd >= 0, "open");
	EXPECT(!start(fd, 0, 50 * MS), "start");
	child = fork();
	if (!child) {
		for (;;)
			read(fd, &wakeup, sizeof(wakeup));
	}
	usleep(120000);
	EXPECT(read(fd, &wakeup, sizeof(wakeup)) > 0, "read");
	close(fd);
	EXPECT(unload() < 0 && (errno == EWOULDBLOCK || errno == EBUSY),
	       "the child has it open");
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	EXPECT(WIFSIGNALED(status), "%x", status);
	EXPECT(!unload(), "nobody has it open");
	EXPECT(!load(), "load");
}

static void the_module_is_not_unloaded_in_use_and_not_loaded_twice(void)
{
	int fd = open_device(0);

	EXPECT(fd >= 0, "open");
	EXPECT(!start(fd, 0, MS), "start");
	EXPECT(unload() < 0 && (errno == EWOULDBLOCK || errno == EBUSY), "unload");
	EXPECT(load() < 0 && errno == EEXIST, "load");
	close(fd);
	EXPECT(!unload(), "unload");
	EXPECT(open_device(0) < 0 && errno == ENOENT, "the device is gone");
	EXPECT(!load(), "load");
	EXPECT(unload() == 0 && load() == 0, "again");
}

static void only_root_can_open_the_device(void)
{
	struct stat about;
	int status;
	pid_t child;

	EXPECT(!stat(DEVICE, &about) && (about.st_mode & 0777) == 0600, "%o",
	       about.st_mode);
	child = fork();
	if (!child)
		_exit(setuid(65534) || open_device(0) >= 0);
	waitpid(child, &status, 0);
	EXPECT(!status, "%x", status);
}

/*
 * Guests boot with `quiet`, which keeps warnings from the console: those of
 * lockdep, WARN() and the stacks of both. Whoever reads the console looks for
 * this one, to know that there were no others.
 */
static void show_warnings(void)
{
	static const char warning[] = "<4>selftest: warnings are shown\n";
	const ssize_t length = sizeof(warning) - 1;
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

	EXPECT(!klogctl(CONSOLE_LEVEL, NULL, NOTICES), "console");
	EXPECT(fd >= 0 && write(fd, warning, length) == length, "kmsg");
	close(fd);
}

/*
 * What is printed goes to the console by the kernel's log. By the terminal of the
 * serial line, the line's interrupt would wake the writer with the port's lock held:
 * 6.12's lockdep takes that for a circle, and printing its report waits for that lock.
 */
static void print_by_the_log(void)
{
	int fd = open("/proc/sys/kernel/printk_devkmsg", O_WRONLY | O_CLOEXEC);

	/* Otherwise only some lines a second get through. */
	EXPECT(fd >= 0 && write(fd, "on\n", 3) == 3, "printk_devkmsg");
	close(fd);
	fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	EXPECT(fd >= 0 && dup2(fd, STDOUT_FILENO) == STDOUT_FILENO, "kmsg");
	close(fd);
}

/*
 * So many random operations, which is what the kernel's command line says, and
 * otherwise `usual`. On a kernel that checks itself each takes longer.
 */
static int operations(int usual)
{
	const char *asked = getenv("WAKESCOPE_OPERATIONS");

	return asked ? atoi(asked) : usual;
}

int main(void)
{
	static void (*const tests[])(void) = {
		stamps_are_in_order_and_on_the_grid,
		a_first_read_starts_a_timer_of_ten_milliseconds,
		a_nonblocking_read_does_not_wait,
		a_timer_without_a_reader_rests_and_counts_all_expiries,
		invalid_requests_are_refused,
		each_expiry_goes_to_one_of_several_readers,
		files_have_timers_of_their_own_and_are_bounded,
		a_signal_interrupts_a_read_and_loses_no_expiry,
		a_file_may_be_closed_in_the_middle_of_a_read,
		timers_may_be_set_while_others_read,
		a_child_keeps_the_file_open_until_it_dies,
		the_module_is_not_unloaded_in_use_and_not_loaded_twice,
		only_root_can_open_the_device,
	};
	size_t i;

	if (getpid() != 1) {
		fprintf(stderr, "selftest: only for a guest of its own\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	mount("devtmpfs", "/dev", "devtmpfs", 0, "");
	mount("proc", "/proc", "proc", 0, "");
	mount("sysfs", "/sys", "sysfs", 0, "");
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, "");
	show_warnings();
	print_by_the_log();
	RUN(forget_leaks());
	tests_need("");
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1) {
		/* The emulator runs one CPU at a time: the other tests need only one. */
		test_waits();
		test_hardships();
		test_random(operations(200000));
	} else {
		for (i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
			printf("selftest: %zu\n", i + 1);
			RUN(tests[i]());
		}
		test_injector();
		test_hardships();
		test_random(operations(1000000));
	}
	test_leaks();
	if (!failures)
		printf("selftest: all passed\n");
	fflush(stdout);
	sync();
	reboot(RB_AUTOBOOT);
	return 1;
}
