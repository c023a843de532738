"""The arithmetic of pauses of a whole guest: how its clock relates to this machine's, and which late
wakeups were due while it stood still.

Nothing here runs a program; it is tested in test_pauses.py. All times are nanoseconds.
"""

import statistics
from bisect import bisect_left
from dataclasses import dataclass


@dataclass(frozen=True)
class Pause:
    """A stop of the emulator by this machine's clock: from when it was told to stop until it was
    told to go on. It really stopped up to `unsure_ns` after the begin."""

    begin_ns: int
    end_ns: int
    unsure_ns: int = 0

    def length_ns(self):
        return self.end_ns - self.begin_ns


@dataclass(frozen=True)
class Clocks:
    """The guest's clock by this machine's: `rate` × time + `offset_ns`."""

    rate: float
    offset_ns: float

    def in_guest(self, moment_ns):
        return self.rate * moment_ns + self.offset_ns


# A kernel measures the rate of its clock while it boots, to better than this.
RATE_ERROR = 1e-3

# How long after a pause the guest may get to run again, and still be taken for woken by its end.
RESUMED_NS = 2_000_000

# Fewer moments of both clocks, or a smaller share of pauses, could be chance.
FEWEST, LEAST_SHARE = 3, 0.5

# With each of so many ends at least, every arrival is tried.
TRIED = 10


def is_sure(pause):
    """Whether the pause's length is known to a tenth."""
    return pause.unsure_ns * 10 <= pause.length_ns()


def arrival_ns(run, episode):
    """When the interrupt of a late wakeup came, by the guest's clock. None if it was not seen."""
    waited = episode.get("components", {}).get("irq_latency_ns")
    return None if waited is None else run["origin_ns"] + episode["expiry_ns"] + waited


def related(ends, arrivals):
    """How the clocks relate in which pauses ended at `ends` (this machine's) and interrupts that
    had been held up came at `arrivals` (the guest's). None if they fit in no way.

    Pauses come at random distances, so that only one offset makes most of them meet an arrival.
    Nobody arrives before a pause's end: the least difference is the offset.
    """
    ends, arrivals = sorted(ends), sorted(arrivals)
    best = []
    # One of them must be right. If half of them are, ten that are not are one chance in a thousand.
    for end in ends[:: max(1, len(ends) // TRIED)]:
        for arrival in arrivals:
            pairs = met(ends, arrivals, lambda moment: arrival + (moment - end), lambda moment: RESUMED_NS + RATE_ERROR * abs(moment - end))
            best = max(best, pairs, key=lambda found: (len(found), -sum(abs(a - e - arrival + end) for e, a in found)))
    if len(best) < max(FEWEST, LEAST_SHARE * len(ends)):
        return None
    # Some of these met by chance, for the rate was not known.
    rate = slope(best)
    middle = statistics.median(a - rate * e for e, a in best)
    best = [(e, a) for e, a in best if abs(a - rate * e - middle) <= RESUMED_NS]
    rate = slope(best)
    return Clocks(rate, min(a - rate * e for e, a in best))


def met(ends, arrivals, guess, tolerance):
    """Each end with the arrival that is next to where it is guessed to be, if that is near."""
    pairs = []
    for end in ends:
        moment = guess(end)
        at = bisect_left(arrivals, moment)
        near = min(arrivals[max(0, at - 1) : at + 1], key=lambda arrival: abs(arrival - moment))
        if abs(near - moment) <= tolerance(end):
            pairs.append((end, near))
    return pairs


def slope(pairs):
    """The median slope between pairs that are far from each other (Theil and Sen): some that came
    late do not bend it."""
    half = len(pairs) // 2
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(pairs, pairs[half:]) if b[0] > a[0])
    return slopes[len(slopes) // 2] if slopes else 1.0


def overlap_ns(pause, clocks, due, response):
    """How much of a wakeup lies within a pause."""
    begin, end = clocks.in_guest(pause.begin_ns), clocks.in_guest(pause.end_ns)
    return min(end, response) - max(begin, due)


def held_up_by(pauses, clocks, due, response):
    """The pause that held a wakeup up most, and for how long; None if for less than half of it."""
    found = max(pauses, key=lambda pause: overlap_ns(pause, clocks, due, response), default=None)
    if found is None:
        return None
    held = overlap_ns(found, clocks, due, response)
    return (found, held) if held >= found.length_ns() / 2 else None


def plan(random, length_ns, times, least_ns=100_000_000, most_ns=300_000_000):
    """How long to wait before each pause, in nanoseconds."""
    return [length_ns + random.randrange(least_ns, most_ns) for _ in range(times)]
