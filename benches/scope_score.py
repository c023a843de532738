"""How explain's first blames stand to what the emulator saw: counts and differences of several cells.

Nothing here runs a program, so that all of it can be tested (test_scope_score.py). Which wakeups are the same is
said by the record of `wakescope scope` (`first_blame`); here they are only added up.
"""

from dataclasses import dataclass, field

import scoring

COMPARED = ["same cause", "same culprit", "length, error: least", "p50", "most"]
CELL_HEAD = ["cell", "held up by nothing", "by something", *COMPARED]
CAUSE_HEAD = ["first blame of explain", "wakeups", *COMPARED]


@dataclass
class Tally:
    """Wakeups that explain blamed on the same first, in one cell or in several."""

    wakeups: int = 0
    same_cause: int = 0
    same_culprit: int = 0
    # The least, the middle and the largest difference of each cell, ns.
    spreads: list = field(default_factory=list)

    def add(self, counted):
        self.wakeups += counted["wakeups"]
        self.same_cause += counted["same_cause"]
        self.same_culprit += counted["same_culprit"]
        if counted["longer_ns"]:
            self.spreads.append(counted["longer_ns"])

    def lengths(self):
        """The middle of several cells is not in their records, so of these only the ends are stated."""
        if not self.spreads:
            return ["–"] * 3
        least = min(spread["min"] for spread in self.spreads)
        most = max(spread["max"] for spread in self.spreads)
        middle = nanoseconds(self.spreads[0]["p50"]) if len(self.spreads) == 1 else "–"
        return [nanoseconds(least), middle, nanoseconds(most)]

    def row(self, name):
        same = [self.same_cause, self.same_culprit]
        return [name, str(self.wakeups), *(scoring.percent(count, self.wakeups) for count in same), *self.lengths()]


def nanoseconds(value):
    return f"{value:+,d} ns".replace("-", "−")


def words(answer):
    """A blame as it is called in a table: its cause, and the name of its culprit if it has one."""
    culprit = answer.get("culprit", {})
    name = culprit.get("name") or culprit.get("comm")
    cause = answer["cause"].replace("_", " ")
    return f"{cause}, `{name}`" if name else cause


def by_cell(records):
    """A row for each cell; `records` are pairs of its name and its record."""
    rows = []
    for name, record in records:
        tally, by_nothing = Tally(), 0
        if record["first_blame"]:
            tally.add(record["first_blame"])
            by_nothing = record["first_blame"]["held_by_nothing"]
        name, *counts = tally.row(name)
        rows.append([name, str(by_nothing), *counts])
    return rows


def by_cause(records):
    """A row for each cause that explain blamed first, the most frequent one first."""
    tallies = {}
    for _name, record in records:
        for counted in (record["first_blame"] or {"causes": []})["causes"]:
            tallies.setdefault(counted["cause"], Tally()).add(counted)
    ranked = sorted(tallies.items(), key=lambda pair: -pair[1].wakeups)
    return [tally.row(cause.replace("_", " ")) for cause, tally in ranked]


def disagreements(records):
    """A line for each wakeup that explain blames on something else first, the largest ones of a cell first."""
    lines = []
    for name, record in records:
        others = (record["first_blame"] or {"others": []})["others"]
        for other in sorted(others, key=lambda other: -other["wakeup_latency_ns"]):
            said, seen = (f"{words(other[of])} {other[of + '_ns']:,d} ns" for of in ("said", "seen"))
            due = f"due {other['expiry_ns']:,d} ns after the start, late by {other['wakeup_latency_ns']:,d} ns"
            lines.append(f"- {name}, {due}: explain says {said}; most seen: {seen}")
    return lines


def without(records):
    """A line for each cell of which no wakeup was compared, with the reason."""
    why = "explain blames nothing but handler, scheduler and tracer"
    return [f"- {name}: {record['no_episodes'] or why}" for name, record in records if not record["first_blame"]]
