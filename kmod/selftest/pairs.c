// SPDX-License-Identifier: GPL-2.0
/* The tests of two sections at once, or one after the other. */
#include <errno.h>
#include <unistd.h>

#include "injecting.h"
#include "selftest.h"

static const struct wakescope_injection pairs[] = {
#define PAIR(one, how, other) \
	{ .kind = WAKESCOPE_##one, .pairing = WAKESCOPE_##how, .second = WAKESCOPE_##other }
	PAIR(PREEMPT_OFF, NESTED, IRQS_OFF),
	PAIR(PREEMPT_OFF, NESTED, IRQ_WORK),
	PAIR(PREEMPT_OFF, NESTED, NMI),
	PAIR(IRQS_OFF, NESTED, PREEMPT_OFF),
	PAIR(IRQS_OFF, NESTED, NMI),
	PAIR(PREEMPT_OFF, OVERLAPPING, IRQS_OFF),
	PAIR(IRQS_OFF, OVERLAPPING, PREEMPT_OFF),
	PAIR(PREEMPT_OFF, BACK_TO_BACK, IRQS_OFF),
	PAIR(IRQS_OFF, BACK_TO_BACK, PREEMPT_OFF),
};

/* The machine cannot make it. */
static int is_missing(const struct wakescope_injection *asked)
{
	return asked->second == WAKESCOPE_NMI && !HAS_NMI;
}

static int is_pair(const struct wakescope_injection *asked)
{
	size_t i;

	for (i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
		if (pairs[i].kind == asked->kind && pairs[i].pairing == asked->pairing &&
		    pairs[i].second == asked->second)
			return 1;
	return 0;
}

/* Where the second one lies, by the documentation of enum wakescope_pairing. */
static void expect_pair(uint32_t pairing, uint64_t length, const struct wakescope_section *first,
			const struct wakescope_section *second)
{
	const uint64_t near = slower() * 20 * US;
	uint64_t begin = second->begin_ns - first->begin_ns, end = second->end_ns - first->begin_ns;
	uint64_t ended = first->end_ns - first->begin_ns, from, until, whole = length;

	switch (pairing) {
	case WAKESCOPE_NESTED:
		from = length / 4;
		until = 3 * length / 4;
		break;
	case WAKESCOPE_OVERLAPPING:
		from = length / 3;
		until = length;
		whole = 2 * length / 3;
		break;
	default:
		from = length / 2;
		until = length;
		whole = length / 2;
	}
	/* A section counts in whole nanoseconds. */
	EXPECT(begin + 2 >= from && begin <= from + near, "%u: begin %llu", pairing,
	       (unsigned long long)begin);
	EXPECT(end + 2 >= until && end <= until + near, "%u: end %llu", pairing,
	       (unsigned long long)end);
	EXPECT(ended + 2 >= whole && ended <= whole + near, "%u: %llu", pairing,
	       (unsigned long long)ended);
	EXPECT(!first->flags && !second->flags, "%u: %u %u", pairing, first->flags, second->flags);
	EXPECT(first->turns > 10 && first->work == first->turns, "%u: %llu", pairing, first->turns);
	EXPECT(second->turns > 10 && second->work == second->turns, "%u: %llu", pairing,
	       second->turns);
}

static void both_sections_of_a_pair_lie_as_they_are_to(void)
{
	const uint64_t length = slower() * 240 * US;
	struct wakescope_injection asked;
	uint32_t i, count = 10, at;

	for (i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		int fd = open_device();
		const struct wakescope_ring *ring = ring_of(fd);

		EXPECT(fd >= 0 && ring, "open");
		asked = request_for(pairs[i].kind, length, count);
		asked.pairing = pairs[i].pairing;
		asked.second = pairs[i].second;
		if (is_missing(&asked)) {
			unmap(ring);
			close(fd);
			continue;
		}
		EXPECT(inject(fd, asked) == (int)count, "%u", i);
		EXPECT(written(ring) == 2 * count, "%u: %llu", i, ring->written);
		for (at = 0; at < 2 * count; at += 2) {
			EXPECT(ring->sections[at].kind == asked.kind, "%u", i);
			EXPECT(ring->sections[at + 1].kind == asked.second, "%u", i);
			expect_pair(asked.pairing, length, &ring->sections[at], &ring->sections[at + 1]);
		}
		unmap(ring);
		close(fd);
	}
}

static void only_documented_pairs_are_made(void)
{
	int fd = open_device();
	const struct wakescope_ring *ring = ring_of(fd);
	struct wakescope_injection asked;
	uint32_t made = 0, missing = 0;

	EXPECT(fd >= 0 && ring, "open");
	asked = request_for(WAKESCOPE_IRQS_OFF, 12 * US, 1);
	for (asked.kind = 1; asked.kind <= WAKESCOPE_KINDS; asked.kind++)
		for (asked.pairing = 0; asked.pairing <= WAKESCOPE_PAIRINGS; asked.pairing++)
			for (asked.second = 0; asked.second <= WAKESCOPE_KINDS; asked.second++) {
				asked.every = has_points(asked.kind) ? 100 : 0;
				if (!asked.pairing && !asked.second)
					continue;
				if (is_pair(&asked) && is_missing(&asked)) {
					EXPECT(inject(fd, asked) < 0 && errno == EOPNOTSUPP,
					       "%u %u %u", asked.kind, asked.pairing, asked.second);
					missing++;
					continue;
				}
				if (is_pair(&asked)) {
					EXPECT(inject(fd, asked) == 1, "%u %u %u", asked.kind,
					       asked.pairing, asked.second);
					made++;
					continue;
				}
				EXPECT(inject(fd, asked) < 0 && errno == EINVAL, "%u %u %u", asked.kind,
				       asked.pairing, asked.second);
			}
	EXPECT(made + missing == sizeof(pairs) / sizeof(*pairs), "%u", made);
	EXPECT(written(ring) == 2 * made, "%llu", ring->written);
	unmap(ring);
	close(fd);
}

void test_pairs(void)
{
	RUN(both_sections_of_a_pair_lie_as_they_are_to());
	RUN(only_documented_pairs_are_made());
}
