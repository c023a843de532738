"""What rtla's automatic analysis of late wakeups (`rtla timerlat -a`) says, and whether it is right.

Nothing here runs a program, so that all of it can be tested (test_rtla.py).
"""

import re
from dataclasses import dataclass, field

# What each kind of disturbance must come out as: what rtla calls the largest part, and the name that its text
# must have anywhere. rtla does not tell code with interrupts off from an interrupt or an NMI that comes
# before: all of them delay its interrupt, and so that counts as right for all.
DELAYED = {"IRQ latency", "IRQ handler delay"}
EXPECTED = {
    "irqs-off": (DELAYED, "wakescope_inject_irqs_off"),
    "preempt-off": ({"Blocking thread"}, "wakescope_inject_preempt_off"),
    "raw-spin-lock": ({"Blocking thread"}, "wakescope_inject_raw_spin_lock"),
    "hrtimer": (DELAYED | {"IRQ interference"}, "wakescope_inject_hrtimer"),
    "irq-work": (DELAYED | {"IRQ interference"}, "irq_work"),
    "nmi": (DELAYED | {"NMI interference"}, "_nmi"),
    "fifo": ({"Blocking thread", "Thread interference"}, "disturb-fifo"),
}

# A part of the latency with its share: `  Blocking thread:  59.60 us (51.22 %)`.
PART = re.compile(r"^\s*([A-Z][A-Za-z ]*?)\s*:?\s+(?:\(exit from idle\)\s+)?([\d.]+) us \(([\d.]+) %\)")
TOTAL = re.compile(r"^\s*(IRQ|Thread) latency:\s+([\d.]+) us \(100 ?%\)")


@dataclass
class Hit:
    """One late wakeup in rtla's words: its latency, the parts with their times, all of its text."""

    latency_us: float = 0.0
    parts: list = field(default_factory=list)
    text: str = ""

    def first(self):
        """The largest part; None if there is none."""
        return max(self.parts, key=lambda part: part[1])[0] if self.parts else None


def hits(console):
    """The late wakeups in what a guest printed, by load, in order; None for each run of rtla that met none."""
    found, load, lines, inside = {}, "", [], False
    for line in console.splitlines():
        # The console may put its own messages before it on the line.
        _before, mark, rest = line.partition("rtla: ")
        if not mark:
            continue
        if rest.startswith("load "):
            load = rest.removeprefix("load ")
        elif rest.startswith("begin "):
            lines, inside = [], True
        elif rest.startswith("end ") and inside:
            found.setdefault(load, []).append(hit_of(lines))
            inside = False
        elif inside:
            lines.append(rest.removeprefix("|").removeprefix(" "))
    return found


def hit_of(lines):
    """The late wakeup that one run of rtla stopped at; None if it met none."""
    if not any("hit stop tracing" in line for line in lines):
        return None
    hit = Hit(text="\n".join(lines))
    for line in lines:
        if total := TOTAL.match(line):
            hit.latency_us = float(total[2])
            if total[1] == "IRQ":
                # Its parts are not told apart then.
                hit.parts = [("IRQ latency", hit.latency_us)]
        elif part := PART.match(line):
            hit.parts.append((part[1], float(part[2])))
    return hit


@dataclass
class Score:
    """How often rtla was right about one kind of disturbance."""

    kind: str
    hits: int = 0
    none: int = 0
    right: int = 0
    named: int = 0
    wrong: dict = field(default_factory=dict)


def judge(kind, found):
    """Counts the late wakeups that were injected by disturbances of a kind."""
    heads, name = EXPECTED[kind]
    score = Score(kind)
    for hit in found:
        if hit is None:
            score.none += 1
            continue
        score.hits += 1
        first = hit.first()
        if first in heads:
            score.right += 1
            score.named += name in hit.text
        else:
            score.wrong[first or "nothing"] = score.wrong.get(first or "nothing", 0) + 1
    return score
