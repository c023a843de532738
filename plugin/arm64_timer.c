// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When the kernel sets the CPU's own timer, and when it will fire: when the clock reaches what it is
 * compared with. The lab's machines count in ns.
 */
#include "arm64.h"

/* In the timer's control register. */
#define ENABLE 1
#define MASKED 2

static uint64_t compare;
static bool is_on;

static void put_timer(const struct place *place)
{
	uint64_t count = count_at(place), now = ns_at(count), after = 0;

	/* What is due already fires at once. */
	if (is_on)
		after = compare > now ? compare - now : 1;
	put_edge(TIMER_SET, place, count, arch->caller_at(place),
		 after > UINT32_MAX ? UINT32_MAX : after);
}

void arm64_at_timer_compare(unsigned int cpu, void *data)
{
	const struct place *place = data;
	uint64_t before = compare;

	compare = arm64_general(place->how);
	if (is_on && compare != before)
		put_timer(place);
}

void arm64_at_timer_control(unsigned int cpu, void *data)
{
	const struct place *place = data;
	bool was_on = is_on;

	is_on = (arm64_general(place->how) & (ENABLE | MASKED)) == ENABLE;
	if (is_on != was_on)
		put_timer(place);
}
