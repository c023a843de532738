/* SPDX-License-Identifier: GPL-2.0 */
/* How a section passes its time. */
#ifndef _WAKESCOPE_SPIN_H
#define _WAKESCOPE_SPIN_H

#include <linux/ktime.h>
#include <linux/smp.h>

#include "injector.h"

/*
 * Makes turns until the length is over by the clock, or until there were too
 * many turns, because the clock stands still. Calls @point every so many turns.
 * If that returns true, the loop has to repeat some turns.
 */
static __always_inline void
wakescope_spin_by(u64 (*clock)(void), struct injector *injector,
		  bool (*point)(struct injector *))
{
	struct wakescope_section *section = injector->spins;
	u64 length = section->length_ns, most = injector->turns_max;
	u32 every = injector->asked.every, left = every, again = 0;
	u64 begin, now, turns = 0, work = 0;

	section->cpu = raw_smp_processor_id();
	begin = clock();
	do {
		cpu_relax();
		if (point && !--left) {
			left = every;
			if (point(injector))
				again = injector->asked.again;
		}
		turns++;
		if (again)
			again--;
		else
			work++;
		now = clock();
	} while (now - begin < length && turns < most);
	section->end_cpu = raw_smp_processor_id();
	section->begin_ns = begin;
	section->end_ns = now;
	section->turns = turns;
	section->work = work;
	if (now - begin < length)
		section->flags |= WAKESCOPE_SECTION_CUT;
}

static __always_inline void
wakescope_spin(struct injector *injector, bool (*point)(struct injector *))
{
	wakescope_spin_by(ktime_get_ns, injector, point);
}

#endif /* _WAKESCOPE_SPIN_H */
