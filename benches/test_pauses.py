"""Tests of the arithmetic behind pauses of a guest."""

import random
import unittest

import pauses
from pauses import Clocks, Pause

MS = 1_000_000


def made_up(seed, rate, late=lambda _: 0, times=40, length=3 * MS):
    """Pauses, and when their wakeups' interrupts came by a clock of this rate that began elsewhere."""
    chance, now, made = random.Random(seed), 10**12, []
    for gap in pauses.plan(chance, length, times):
        now += gap
        made.append(Pause(now, now + length))
        now += length
    offset = 5 * 10**9 - rate * 10**12
    return made, [rate * pause.end_ns + offset + late(chance) for pause in made], offset


class Relating(unittest.TestCase):
    def test_offset_and_rate_are_found_beside_stalls_that_nobody_made(self):
        for seed in range(5):
            for rate in (1.0, 1.0004, 0.9993):
                made, arrivals, offset = made_up(seed, rate, lambda chance: chance.randrange(200_000))
                chance = random.Random(seed)
                others = [5 * 10**9 + chance.randrange(10**10) for _ in range(20)]
                found = pauses.related([pause.end_ns for pause in made], arrivals[3:] + others)
                for pause in made:
                    error = found.in_guest(pause.end_ns) - (rate * pause.end_ns + offset)
                    self.assertLess(abs(error), 300_000, (seed, rate))

    def test_very_many_stalls_take_no_time_without_end(self):
        made, arrivals, _ = made_up(2, 1.0002)
        chance = random.Random(2)
        others = [5 * 10**9 + chance.randrange(10**10) for _ in range(600)]
        found = pauses.related([pause.end_ns for pause in made], arrivals + others)
        self.assertAlmostEqual(found.rate, 1.0002, 6)

    def test_what_has_nothing_to_do_with_each_other_does_not_fit(self):
        made, _, _ = made_up(1, 1.0)
        chance = random.Random(7)
        ends = [pause.end_ns for pause in made]
        self.assertIsNone(pauses.related(ends, [chance.randrange(10**10) for _ in range(40)]))
        self.assertIsNone(pauses.related(ends, []))
        self.assertIsNone(pauses.related([], [1, 2, 3]))
        # Two pairs always fit.
        self.assertIsNone(pauses.related(ends[:2], [5, 5 + ends[1] - ends[0]]))


class Matching(unittest.TestCase):
    def test_a_wakeup_is_a_pauses_if_that_held_it_up_for_half_its_length(self):
        clocks = Clocks(1.0, 100)
        made = [Pause(1_000, 2_000), Pause(5_000, 6_000)]
        for due, response, want in [
            (1_200, 2_150, (0, 900)),
            (1_050, 2_150, (0, 1_000)),
            (1_700, 2_150, None),
            (3_000, 4_500, None),
            (5_100, 5_500, None),
            (5_100, 5_700, (1, 600)),
        ]:
            found = pauses.held_up_by(made, clocks, due, response)
            self.assertEqual(found, want and (made[want[0]], want[1]), (due, response))
        self.assertIsNone(pauses.held_up_by([], clocks, 1, 2))

    def test_a_pause_whose_begin_is_not_known_is_left_out(self):
        self.assertTrue(pauses.is_sure(Pause(0, 1_000, 100)))
        self.assertFalse(pauses.is_sure(Pause(0, 1_000, 101)))

    def test_an_interrupt_comes_when_it_was_waited_for(self):
        run = {"origin_ns": 100}
        late = {"expiry_ns": 10, "components": {"irq_latency_ns": 5}}
        self.assertEqual(pauses.arrival_ns(run, late), 115)
        self.assertIsNone(pauses.arrival_ns(run, {"expiry_ns": 10}))


if __name__ == "__main__":
    unittest.main()
