"""The arithmetic of the score: which late wakeups were injected, and whether they were explained right.

Nothing here runs a program, so that all of it can be tested (test_scoring.py).
"""

import statistics
from bisect import bisect_right
from dataclasses import dataclass, field

import pairs as pairing
import pauses as pausing
from pairs import PAIRS, WITHOUT_FULL

# What each kind of disturbance must be blamed as: the cause, and what its culprit must have.
CAUSES = {
    "fifo": ("higher_priority_task", {"kind": "task", "comm": "disturb-fifo"}),
    "timers": ("irq", {}),
    "syscall": ("no_preemption_point", {}),
    "softirq": ("softirq", {"kind": "softirq", "name": "NET_RX"}),
    "throttle": ("throttled", {}),
    "paused": ("steal", {"kind": "hypervisor"}),
    "idle": ("idle_exit", {}),
}


def by_function(cause, kind):
    """Blamed as `cause`, on the function that the kernel module makes the sections of this kind with."""
    return cause, {"kind": "function", "name": "wakescope_inject_" + kind.replace("-", "_")}


# Sections of kernel code that the project's kernel module makes. It logs when each began and ended.
INJECTED = {
    "irqs-off": by_function("irq_off", "irqs-off"),
    "preempt-off": by_function("preempt_off", "preempt-off"),
    "spin-lock": by_function("preempt_off", "spin-lock"),
    "raw-spin-lock": by_function("preempt_off", "raw-spin-lock"),
    "bh-off": by_function("preempt_off", "bh-off"),
    "rcu-read": by_function("no_preemption_point", "rcu-read"),
    "tasklet": ("softirq", {"kind": "softirq", "name": "TASKLET"}),
    "timer": ("softirq", {"kind": "softirq", "name": "TIMER"}),
    "hrtimer": ("irq", {"kind": "timer", "name": "wakescope_inject_hrtimer"}),
    "irq-work": ("irq", {"kind": "interrupt", "name": "irq_work"}),
    "work": by_function("no_preemption_point", "work"),
    "loop": by_function("no_preemption_point", "loop"),
    "loop-resched": by_function("no_preemption_point", "loop-resched"),
    "loop-lock-break": by_function("preempt_off", "loop-lock-break"),
    "loop-restart": by_function("preempt_off", "loop-restart"),
    "lock-wait": by_function("preempt_off", "lock-wait"),
    "lock-wait-irqs-off": by_function("irq_off", "lock-wait-irqs-off"),
    "nmi": ("nmi", {"kind": "nmi", "name": "wakescope_inject_nmi"}),
}
# Two of them at once or in succession. The cause depends on the wakeup.
INJECTED.update(dict.fromkeys(PAIRS))
CAUSES.update(INJECTED)

# They wait for another CPU, and guests that measure have one.
NEED_ANOTHER_CPU = {"lock-wait", "lock-wait-irqs-off"}

# A CPU sends itself NMIs by the local APIC, which only x86 has.
NEED_NMI = {kind for kind in INJECTED if "nmi" in kind.split("-")}


def is_unpreemptible_read(kind, model, arch):
    """Whether it is a read-side section of RCU that turns preemption off although the model preempts kernel
    code. Debian's kernels for arm64 with lazy preemption have no preemptible RCU (CONFIG_PREEMPT_RCU)."""
    return (kind, model, arch) == ("rcu-read", "lazy", "arm64")


def expected_blame(kind, model=None, arch="amd64"):
    """The cause and the culprit that a disturbance must be blamed as under this model of preemption."""
    cause, culprit = CAUSES[kind]
    if is_unpreemptible_read(kind, model, arch):
        return "preempt_off", culprit
    # These models never preempt kernel code, so the wait was for a preemption point, whether preemption
    # was on or off. The tracer knows the preempt count at the interrupt only, not of the whole wait.
    return ("no_preemption_point" if cause == "preempt_off" and model in WITHOUT_FULL else cause), culprit


# No interrupt comes in the middle of these.
UNINTERRUPTED = {"irqs-off", "hrtimer", "irq-work", "nmi"}

# Under which models a section holds a real-time probe up; those not named here do under all.
NOT_RT, NEVER = {"none", "voluntary", "full", "lazy"}, set()
HOLDS_UP = {
    "spin-lock": NOT_RT,
    "bh-off": NOT_RT,
    "tasklet": NOT_RT,
    "timer": NOT_RT,
    "rcu-read": WITHOUT_FULL,
    "work": WITHOUT_FULL,
    "loop": WITHOUT_FULL,
    "loop-resched": NEVER,
    "loop-lock-break": NEVER,
    "loop-restart": NEVER,
}


def late_part(kind):
    """A wakeup is late that is late by one part in so many of the length. Each section of a pair back to
    back takes half of it, and a wakeup that falls into one of them waits for less."""
    return 4 if kind in PAIRS else 2


def holds_up(kind, model, arch="amd64"):
    """Whether sections of this kind hold a real-time probe up under this model of preemption."""
    return kind not in HOLDS_UP or model in HOLDS_UP[kind] or is_unpreemptible_read(kind, model, arch)


def name_of(share):
    """The cause of a share with its culprit, or with the part of the path to the task that it is."""
    culprit = share["culprit"]
    name = culprit.get("name") or culprit.get("comm") or share.get("phase", "").replace("_", " ")
    return f"{share['cause']} {name}".strip()


# Disturbances of unknown length: throttling begins at a tick of the kernel and ends with a period, so
# it may be a tick shorter or longer than was asked for.
UNKNOWN_LENGTH = ["throttle"]

# How near a length must be, and how many must be right.
NEAR_SHARE, NEAR_NS, RIGHT = 0.05, 2_000, 0.99

# A wakeup that was due so shortly before a burst may have been caught by it before it was done.
BEFORE_NS = 10_000


def bursts(text):
    """Of a load's log the begins and ends of disturbances by CPU, in order of time."""
    found = {}
    for line in text.splitlines():
        # Sections of the kernel module have their turns, too.
        cpu, begin, end = (int(word) for word in line.split()[:3])
        found.setdefault(cpu, []).append((begin, end))
    return {cpu: sorted(pairs) for cpu, pairs in found.items()}


def burst_at(pairs, moment):
    """The burst that a wakeup due at `moment` was held up by, if any."""
    at = bisect_right(pairs, (moment + BEFORE_NS, float("inf"))) - 1
    if at >= 0 and pairs[at][0] - BEFORE_NS <= moment < pairs[at][1]:
        return pairs[at]
    return None


def section_met(pairs, moment, episode):
    """The first section that went on while a wakeup waited that was due at `moment`, if any."""
    at = bisect_right(pairs, moment, key=lambda pair: pair[1])
    met = at < len(pairs) and pairs[at][0] < moment + episode["wakeup_latency_ns"]
    return pairs[at] if met else None


# Those that tell the time only when they are back on the CPU, after the wakeup that they held up.
# `fifo` gives the CPU up when its time has come, so that what it tells is what it took.
TELL_LATE = {"timers", "syscall", "softirq"}


def scheduled_ns(run, episode):
    """When the scheduler was entered for the probe, as the probe's own clock would have said: what held
    the wakeup up was over then."""
    response = run["origin_ns"] + episode["expiry_ns"] + episode["wakeup_latency_ns"]
    return response - (episode.get("components", {}).get("sched_duration_ns") or 0)


def way_back_ns(run, kind, injected):
    """How long it usually takes from a disturbance's end until it tells of it: from the scheduler to the
    probe, and from there back to the disturbance. `injected` are wakeups with the bursts that they fell
    into."""
    back = [end - scheduled_ns(run, episode) for episode, (_, end) in injected]
    later = [ns for ns in back if ns > 0]
    return statistics.median(later) if kind in TELL_LATE and later else 0


def traced_at_switch_ns(episode):
    """How long the tracer took stacks from the scheduler on, which no disturbance lasted longer for."""
    scheduling = episode.get("components", {}).get("sched_duration_ns") or 0
    told = sum(share["ns"] for share in episode["blame"] if share["cause"] == "scheduler" and share.get("phase") == "switch")
    return max(0, scheduling - told)


def handled_ns(episode, begin, end):
    """How long interrupts and the tracer had the CPU between two moments, nanoseconds since the wakeup was due:
    that and the wait for the wakeup's own interrupt are shares of their own, in whatever they came. None if the
    middle of the timeline was left out."""
    steps = [(step["at_ns"], step["event"]) for step in episode["timeline"]]
    if any(event["kind"] == "left_out" for _at, event in steps):
        return None
    handled, depth, entered = [(0, episode["components"]["irq_latency_ns"])], 0, 0
    for at, event in steps:
        if event["kind"] == "interrupt":
            entered = at if depth == 0 else entered
            depth += 1
        elif event["kind"] == "interrupt_exit" and depth > 0:
            depth -= 1
            handled += [(entered, at)] if depth == 0 else []
        elif event["kind"] == "tracer" and depth == 0:
            handled.append((at - event["ns"], at))
    return sum(max(0, min(to, end) - max(of, begin)) for of, to in handled)


def is_named(share, culprit):
    """Whether a share has this culprit. A function may have been called by it: a section of the kernel
    module reads the clock, over and over."""
    if culprit.get("kind") != "function":
        return culprit.items() <= share["culprit"].items()
    return any(frame.get("function") == culprit["name"] for frame in share.get("frames", []))


@dataclass
class Tally:
    """What became of the injected late wakeups."""

    kind: str
    length_ns: int
    injected: int = 0
    # Late ones that were injected and do not count, because too little of the disturbance was left
    # when they were due, or because something else held it up. None where nobody knows when it was.
    left_out: int | None = None
    # Late ones that nothing was injected into, and injected ones without an explanation.
    others: int = 0
    # Pauses that count, those that made nobody late, and those whose length is not known.
    pauses: int = 0
    harmless: int = 0
    unsure: int = 0
    unexplained: int = 0
    right: int = 0
    named: int = 0
    # Wrong first blames, how many of each.
    wrong: dict = field(default_factory=dict)
    # Blamed length less the injected one, by wakeup; and the largest blamed length.
    errors_ns: list = field(default_factory=list)
    # The same of wakeups that were due before a section began and waited for all of it.
    whole_errors_ns: list = field(default_factory=list)
    largest_ns: int = 0
    late_ns: int = 0
    nobody_ns: int = 0
    # Sections that were made, and whether they were to hold anybody up. None where nobody knows.
    made: int | None = None
    harmful: bool = True
    # The preemption model and the architecture, where they make a difference to the cause.
    model: str | None = None
    arch: str = "amd64"

    def add(self, episode, expected_ns, expected=None):
        """Counts an injected episode; `expected_ns` is None where that is not known. `expected` is the
        cause and the culprit, where they differ from one wakeup to the next."""
        blame = episode.get("blame", [])
        self.injected += 1
        if not blame:
            self.unexplained += 1
            return
        cause, culprit = expected or expected_blame(self.kind, self.model, self.arch)
        first = blame[0]
        if first["cause"] == cause:
            self.right += 1
            self.named += is_named(first, culprit)
        else:
            name = name_of(first)
            self.wrong[name] = self.wrong.get(name, 0) + 1
        blamed = self.blamed_ns(episode, cause, culprit, expected, expected_ns is not None)
        self.largest_ns = max(self.largest_ns, blamed)
        if expected_ns is not None:
            self.errors_ns.append(blamed - expected_ns)
        self.late_ns += episode["wakeup_latency_ns"]
        self.nobody_ns += sum(share["ns"] for share in blame if share["cause"] == "unexplained")

    def add_whole(self, episode, due, section):
        """Takes the edges of a section from an episode that does not count, because other code may have held
        it up before the section did."""
        if not episode.get("blame"):
            return
        begin, end = (edge - due for edge in section)
        blamed = self.blamed_ns(episode, *expected_blame(self.kind, self.model, self.arch), None, False)
        if self.kind not in UNINTERRUPTED:
            handled = handled_ns(episode, begin, end)
            if handled is None:
                return
            blamed += handled
        self.whole_errors_ns.append(blamed - (end - begin))

    def blamed_ns(self, episode, cause, culprit, expected, is_known):
        """The time of an episode that is attributed to the injected cause, with interrupts in the middle of it
        if the load's log says how long it should be (`is_known`)."""
        blame = episode["blame"]
        blamed = sum(share["ns"] for share in blame if share["cause"] == cause)
        own = lambda share: share["cause"] == cause and culprit.items() <= share["culprit"].items()
        if expected:
            # Interrupts of others in the middle of it belong to it; those that are the other section do not.
            if cause in {"irq", "nmi"}:
                blamed = sum(share["ns"] for share in blame if own(share))
            elif cause != "irq_off":
                others = lambda share: share["cause"] in {"irq", "tracer"} and share["culprit"].get("name") != "irq_work"
                blamed += sum(share["ns"] for share in blame if others(share)) - traced_at_switch_ns(episode)
        elif self.kind in UNINTERRUPTED:
            # The probe's own interrupt, which comes after it, is no part of it.
            blamed = sum(share["ns"] for share in blame if own(share))
        elif is_known:
            # What the load's clock says has the interrupts in it that came meanwhile.
            blamed += sum(share["ns"] for share in blame if share["cause"] in {"irq", "tracer"} - {cause})
            if self.kind not in TELL_LATE:
                blamed -= traced_at_switch_ns(episode)
        return blamed

    def error_ns(self):
        """The error of the blamed length: the median of what is known of each, or that of the largest.
        None if it is not known."""
        if self.kind in UNKNOWN_LENGTH:
            return None
        if self.errors_ns:
            return statistics.median(self.errors_ns)
        return self.largest_ns - self.length_ns if self.largest_ns else None

    def is_near(self):
        if self.kind in UNKNOWN_LENGTH:
            return True
        error = self.error_ns()
        return error is not None and abs(error) <= max(NEAR_NS, NEAR_SHARE * self.length_ns)

    def is_right(self):
        return self.injected > 0 and self.right >= RIGHT * self.injected


def longest(injected, length_ns):
    """What a disturbance may take by its own clock, nanoseconds. If half its length more than usual, for
    which it was not made, something held it up itself: that may have held the wakeup up for longer."""
    return statistics.median([end - begin for _, (begin, end) in injected] or [0]) + length_ns / 2


def late_of(run):
    """Those wakeups that were to be explained; a run also lists others, if there is room for them."""
    least = run["explanation"]["above_ns"]
    return [episode for episode in run["worst"] if episode["wakeup_latency_ns"] >= least]


def tally(run, kind, length_ns, log=None, model=None, arch="amd64"):
    """Counts the late wakeups of a run. With the load's log, those that it held up; without, all."""
    result = Tally(kind, length_ns, model=model, arch=arch)
    late = late_of(run)
    if log is None:
        for episode in late:
            result.add(episode, None)
        return result
    due = lambda episode: run["origin_ns"] + episode["expiry_ns"]
    if kind in PAIRS:
        add_pairs(result, [(episode, due(episode)) for episode in late], log)
        return result
    met = [(episode, burst_at(log.get(episode["cpu"], []), due(episode))) for episode in late]
    if kind in INJECTED:
        met = [(episode, section_met(log.get(episode["cpu"], []), due(episode), episode)) for episode in late]
    injected = [(episode, burst) for episode, burst in met if burst is not None]
    result.others = len(met) - len(injected)
    result.left_out = 0
    back = way_back_ns(run, kind, injected)
    longest_ns = longest(injected, length_ns)
    for episode, (begin, end) in injected:
        expected_ns = end - back - max(begin, due(episode))
        # With less left of it, the wakeup itself may have taken longer.
        # One that was due before a section, whose begin is exact, was held up by other code first.
        is_inside = kind not in INJECTED or begin <= due(episode)
        if is_inside and expected_ns >= length_ns / 2 and end - begin <= longest_ns:
            result.add(episode, expected_ns)
        else:
            result.left_out += 1
            # It was still waiting when the section ended.
            if kind in INJECTED and due(episode) < begin and end <= due(episode) + episode["wakeup_latency_ns"]:
                result.add_whole(episode, due(episode), (begin, end))
    return result


def add_pairs(result, late, log):
    """Counts the late wakeups, each with when it was due, that pairs of sections held up."""
    pair = PAIRS[result.kind]
    by_cpu = {cpu: pairing.logged(pair, bursts) for cpu, bursts in log.items()}
    whole = lambda sections: (sections[0][1], max(end for _kind, _begin, end in sections))
    result.left_out = 0
    for episode, due in late:
        all_pairs = by_cpu.get(episode["cpu"], [])
        met = section_met([whole(sections) for sections in all_pairs], due, episode)
        if met is None:
            result.others += 1
            continue
        sections = next(sections for sections in all_pairs if whole(sections) == met)
        expected = pairing.expected(pair, sections, due, result.model) if met[0] <= due else None
        if expected is None or expected.total_ns < result.length_ns / late_part(result.kind):
            result.left_out += 1
        else:
            result.add(episode, expected.ns, (expected.cause, expected.culprit))


def tally_of_pauses(run, pauses, length_ns):
    """Counts the late wakeups of a guest that stood still in `pauses`. None if its clock cannot be
    related to them. What stood still for another time than it should have is held against that."""
    late = late_of(run)
    arrivals = [pausing.arrival_ns(run, episode) for episode in late]
    clocks = pausing.related([pause.end_ns for pause in pauses], [at for at in arrivals if at is not None])
    if clocks is None:
        return None
    sure = [pause for pause in pauses if pausing.is_sure(pause)]
    result = Tally("paused", length_ns, pauses=len(sure), unsure=len(pauses) - len(sure))
    harmful = set()
    for episode in late:
        due = run["origin_ns"] + episode["expiry_ns"]
        found = pausing.held_up_by(pauses, clocks, due, due + episode["wakeup_latency_ns"])
        if found is None:
            result.others += 1
        elif pausing.is_sure(found[0]):
            harmful.add(found[0])
            result.add(episode, found[1])
    result.harmless = len(sure) - len(harmful)
    return result


# What takes less to leave is no deep idle state, nanoseconds.
DEEP_NS = 50_000


def deepest(states):
    """The length to leave the deepest idle state that is in use, if it is deep. `states` are
    `(name, exit latency in ns, disabled)`."""
    used = [latency for _name, latency, disabled in states if not disabled]
    return max(used) if used and max(used) >= DEEP_NS else None


def without_deep(states):
    """Why no wakeup of this machine waits for an idle state."""
    if not states:
        return "it tells of no idle states (cpuidle)"
    listed = ", ".join(f"{name} {latency / 1_000:g} µs{' off' * disabled}" for name, latency, disabled in states)
    return f"no idle state in use takes {DEEP_NS / 1_000:g} µs to leave: {listed}"


def beside_pauses(machine, result):
    """What the row of a paused guest does not say, in words."""
    what = f"{result.kind} {shown_length(result.length_ns)}, {machine}"
    wakeups = "1 wakeup" if result.others == 1 else f"{result.others} wakeups"
    return (
        f"- {what}: {result.pauses} pauses, of which {result.harmless} made no wakeup late by half their length; "
        f"{result.unsure} more of no certain length; {wakeups} as late outside of pauses"
    )


def shown_length(ns):
    return f"{ns // 1_000_000} ms" if ns % 1_000_000 == 0 else f"{ns // 1_000} µs"


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "–"


def row(machine, result):
    """A row of the table."""
    error = result.error_ns()
    near = "–" if error is None else f"{error / 1_000:+.1f} µs, {100 * error / result.length_ns:+.1f} %"
    goal = "–"
    if result.made is not None and result.harmful != (result.injected > 0):
        goal = "**missed**: held nobody up" if result.harmful else "**missed**: held wakeups up"
    elif result.made is not None and not result.harmful:
        goal = "met: held nobody up"
    elif result.injected:
        missed = [name for name, met in [("blame", result.is_right()), ("length", result.is_near())] if not met]
        goal = "**missed**: " + ", ".join(missed) if missed else "met"
    return [
        result.kind,
        shown_length(result.length_ns),
        machine,
        f"{result.injected:,}",
        "–" if result.left_out is None else f"{result.left_out:,}",
        percent(result.right, result.injected),
        percent(result.named, result.injected),
        near,
        percent(result.nobody_ns, result.late_ns),
        goal,
    ]


HEAD = [
    "disturbance",
    "length",
    "machine",
    "injected",
    "left out",
    "first blame right",
    "culprit right",
    "length, error",
    "unexplained",
    "aim",
]


def beside_sections(machine, result):
    """What the row of injected sections does not say, in words."""
    what = f"{result.kind} {shown_length(result.length_ns)}, {machine}"
    parts = [f"{result.made} sections", f"wakeups as late outside of them: {result.others}"]
    if result.errors_ns:
        parts.append(f"lengths off by {span_of(result.errors_ns)}")
    if result.whole_errors_ns:
        wakeups = "1 wakeup" if len(result.whole_errors_ns) == 1 else f"{len(result.whole_errors_ns)} wakeups"
        parts.append(f"from begin to end off by {span_of(result.whole_errors_ns)} ({wakeups})")
    return f"- {what}: {'; '.join(parts)}"


def span_of(errors_ns):
    """The least and the largest of errors, in words."""
    least, most = min(errors_ns) / 1_000, max(errors_ns) / 1_000
    return f"{least:+.1f} to {most:+.1f} µs"


def wrong_blames(machine, result):
    """The wrong first blames in words, the most frequent first."""
    listed = sorted(result.wrong.items(), key=lambda item: -item[1])
    if result.unexplained:
        listed.append(("not explained", result.unexplained))
    what = f"{result.kind} {shown_length(result.length_ns)}, {machine}"
    return [f"- {what}: {count} × {name}" for name, count in listed[:5]]
