// SPDX-License-Identifier: GPL-2.0
/* What all tests of the module use, and the process of its own that each of them has. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "selftest.h"

#define MODULE "/modules/wakescope.ko"

int failures;

/* What the module was loaded with before the tests that run. */
static const char *usual = "";

uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000 * MS + time.tv_nsec;
}

uint64_t slower(void)
{
	const char *asked = getenv("WAKESCOPE_SLOWER");

	return asked ? strtoull(asked, NULL, 10) : 1;
}

void stay_on(unsigned int cpu)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	sched_setaffinity(0, sizeof(only), &only);
}

void go_anywhere(void)
{
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
}

int load_with(const char *parameters)
{
	int fd = open(MODULE, O_RDONLY | O_CLOEXEC);
	int result = syscall(SYS_finit_module, fd, parameters, 0);
	int error = errno;

	close(fd);
	errno = error;
	return result;
}

int load(void)
{
	return load_with("");
}

int unload(void)
{
	return syscall(SYS_delete_module, "wakescope", O_NONBLOCK);
}

void tests_need(const char *parameters)
{
	usual = parameters;
	if ((unload() && errno != ENOENT) || load_with(parameters)) {
		printf("selftest: FAILED to load with '%s' (errno %d)\n", parameters, errno);
		failures++;
	}
}

int is_in_test(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		failures = 0;
		return 1;
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		printf("selftest: FAILED to start a test (errno %d)\n", errno);
		failures++;
		return 0;
	}
	if (!status)
		return 0;
	if (!WIFEXITED(status))
		printf("selftest: FAILED: a test died of signal %d\n", WTERMSIG(status));
	failures++;
	/* This is the first process, which nobody else's children outlive. */
	kill(-1, SIGKILL);
	while (wait(NULL) > 0 || errno == EINTR)
		;
	tests_need(usual);
	return 0;
}

void end_test(void)
{
	fflush(stdout);
	_exit(!!failures);
}
