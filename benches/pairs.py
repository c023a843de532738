"""Two sections of the kernel module at once: which of them a wakeup waits for, and for how long.

At each instant a wakeup waits for one section. Until its interrupt is delivered that is the one that keeps
interrupts out; of several, the one that began last. Afterwards it is an interrupt that has the CPU, then
the section with preemption off, then the one with interrupts off. The wakeup must be blamed first on the
cause that it waited for longest.
"""

from dataclasses import dataclass

# These models of preemption preempt no kernel code.
WITHOUT_FULL = {"none", "voluntary"}

# With these, no interrupt is delivered; and these two are themselves interrupts.
DEAF = {"irqs-off", "irq-work", "nmi"}
INTERRUPTS = {"irq-work", "nmi"}

# Such a short time after a section its successor begins, if the wakeup does not run in between.
GAP_NS = 10_000

# With less between them, two causes are equally long.
MARGIN_NS = 10_000


@dataclass(frozen=True)
class Pair:
    pairing: str
    first: str
    second: str


PAIRS = {
    f"{pair.pairing}-{pair.first}-{pair.second}": pair
    for pair in [
        Pair("nested", "preempt-off", "irqs-off"),
        Pair("nested", "preempt-off", "irq-work"),
        Pair("nested", "preempt-off", "nmi"),
        Pair("nested", "irqs-off", "nmi"),
        Pair("overlapping", "preempt-off", "irqs-off"),
        Pair("overlapping", "irqs-off", "preempt-off"),
        Pair("back-to-back", "preempt-off", "irqs-off"),
        Pair("back-to-back", "irqs-off", "preempt-off"),
    ]
}


def waited(sections, due):
    """What a wakeup due at `due` waits for, as `(kind, delivered, ns)` in order of time; `delivered` is
    whether its interrupt had come. `sections` are `(kind, begin, end)`."""
    parts, moment, delivered = [], due, False
    while True:
        there = [section for section in sections if section[1] <= moment < section[2]]
        deaf = [section for section in there if section[0] in DEAF]
        delivered = delivered or not deaf
        if not delivered:
            owner = max(deaf, key=lambda section: section[1])
        elif there:
            owner = min(there, key=lambda section: (section[0] not in INTERRUPTS, section[0] != "preempt-off"))
        else:
            soon = [begin for _kind, begin, _end in sections if moment < begin <= moment + GAP_NS]
            if not soon:
                return parts
            moment = min(soon)
            continue
        until = min(edge for section in sections for edge in section[1:] if edge > moment)
        parts.append((owner[0], delivered, until - moment))
        moment = until


def cause_of(kind, delivered, model):
    """What the wait for a section is to be blamed as."""
    if kind in INTERRUPTS:
        return {"irq-work": "irq", "nmi": "nmi"}[kind]
    if kind == "irqs-off" and not delivered:
        return "irq_off"
    # These models never preempt kernel code, whatever it does.
    if model in WITHOUT_FULL:
        return "no_preemption_point"
    return "irq_off" if kind == "irqs-off" else "preempt_off"


def culprit_of(pair, cause):
    if cause == "irq":
        return {"kind": "interrupt", "name": "irq_work"}
    if cause == "nmi":
        return {"kind": "nmi", "name": "wakescope_inject_nmi"}
    return {"kind": "function", "name": "wakescope_inject_" + pair.pairing.replace("-", "_")}


@dataclass(frozen=True)
class Expected:
    """What a wakeup must be blamed first as, on whom, and for how long; and how long it waits in all."""

    cause: str
    culprit: dict
    ns: int
    total_ns: int


def expected(pair, sections, due, model):
    """What a wakeup must be blamed first as; None if no cause is longest."""
    by_cause = {}
    for kind, delivered, ns in waited(sections, due):
        cause = cause_of(kind, delivered, model)
        by_cause[cause] = by_cause.get(cause, 0) + ns
    ranked = sorted(by_cause.items(), key=lambda item: -item[1])
    if not ranked or (len(ranked) > 1 and ranked[0][1] - ranked[1][1] < MARGIN_NS):
        return None
    cause, ns = ranked[0]
    return Expected(cause, culprit_of(pair, cause), ns, sum(by_cause.values()))


def logged(pair, bursts):
    """The pairs of a CPU's log, each as two sections of `(kind, begin, end)`."""
    return [[(pair.first, *first), (pair.second, *second)] for first, second in zip(bursts[::2], bursts[1::2])]
