#!/usr/bin/env python3
"""How often `wakescope explain` blames the right cause: late wakeups of a known cause and length.

Prints a Markdown page on stdout and progress on stderr. The load `disturb-KIND-TIME` holds CPUs
up; on this machine it tells when it did, and in guests of the lab nothing else is late. Guests in
real time are stopped as a whole, which is matched with what is late by time. This machine is left
out where there is no root; kernels that cannot be had are named and left out.
"""

import argparse
import contextlib
import itertools
import json
import os
import tempfile
from pathlib import Path

import figures
import guests
import scoring
from lab import Lab
from paused import counter_khz, paused_run, seconds
from running import end_as_by_ctrl_c, execute, publish, say

LENGTHS = {"100us": 100_000, "300us": 300_000, "1ms": 1_000_000, "3ms": 3_000_000}
KINDS = ["fifo", "timers", "syscall", "softirq"]
# What no load makes; each has lengths of its own.
OTHER_KINDS = ["throttle", "paused", "idle"]
# Debian's for arm64 are built for one model each.
GUESTS = {
    "amd64": [("6.1-cloud", "none"), ("6.1-cloud", "full"), ("7.2-cloud", "full")],
    "arm64": [("6.1-cloud", "voluntary"), ("6.1-rt", "rt"), ("7.2-cloud", "lazy")],
}

# Guests in which the kernel module makes sections: every model that these kernels have.
SECTION_GUESTS = {
    "amd64": [
        ("6.1-cloud", "none"),
        ("6.1-cloud", "voluntary"),
        ("6.1-cloud", "full"),
        ("6.1-rt", "rt"),
        ("6.12-cloud", "none"),
        ("6.12-cloud", "voluntary"),
        ("6.12-cloud", "full"),
        ("6.12-rt", "rt"),
        ("6.18-cloud", "none"),
        ("6.18-cloud", "voluntary"),
        ("6.18-cloud", "full"),
        ("6.18-cloud", "lazy"),
        ("6.18-rt", "rt"),
        ("7.2-cloud", "full"),
        ("7.2-cloud", "lazy"),
        ("7.2-rt", "rt"),
    ],
    "arm64": [
        ("6.1-cloud", "voluntary"),
        ("6.1-rt", "rt"),
        ("6.12-cloud", "voluntary"),
        ("6.12-rt", "rt"),
        ("7.2-cloud", "lazy"),
        ("7.2-rt", "rt"),
    ],
}
# Where loads of guests log when they disturbed. What the kernel does not know on its command line is the
# environment of the guest's first process.
LOGGED = "WAKESCOPE_DISTURBANCES=/tmp/disturbances"

# How long the kernel holds real-time tasks up, in guests that are told so.
THROTTLED_GUEST = {"amd64": ("6.1-cloud", "full"), "arm64": ("6.1-cloud", "voluntary")}
THROTTLED = {"3ms": 3_000_000, "50ms": 50_000_000}

# So many periods in which real-time tasks may use up their time. In about half of them they do.
THROTTLINGS = 100
# For how long guests in real time are stopped, how often, and what they do meanwhile.
PAUSED = {"3ms": 3_000_000, "20ms": 20_000_000, "50ms": 50_000_000}
PAUSES = 40
PAUSED_GUESTS = [("6.1-cloud", "full"), ("7.2-cloud", "full")]
PAUSED_LOADS = ["idle", "cpu"]

# A disturbance comes once in 20 ms, or in ten times its length. There are 18 kinds of sections and
# eight pairs of them, each with a guest of its own.
SECONDS = {"real": 16.0, "lab": 5.0, "sections": 2.0}

# Of wakeups so seldom not more are late than a run lists, where half of those on two CPUs are late by
# 50 µs at least: 40,000 in 16 s.
LEAST_INTERVAL_NS, MOST_LISTED = 800_000, 20_000

# What a late wakeup takes beside the disturbance until its probe sleeps again, in guests: handler,
# switch, stacks, the probe's own work, and handing the wakeup over come to 60 virtual us.
AFTERWARDS_NS = 80_000

# All kinds at once share the boot that tells the kernel's model, and take minutes.
PATIENCE_S = 1_800


def interval_ns(length_ns):
    """No disturbance holds up more than one wakeup, nor keeps the probe from going to sleep until
    the next is due."""
    return max(length_ns * 6 // 5, length_ns + AFTERWARDS_NS)


def asked(length_ns, interval_ns, most, part=2):
    """What is late, and that all of it is listed, if that is no more than `most`."""
    return ["--above", f"{length_ns // part}ns", "--worst", str(most), "--interval", f"{interval_ns}ns"]


def on_this_machine(kind, length, length_ns):
    with tempfile.TemporaryDirectory(prefix="wakescope-score-") as folder:
        out, log = Path(folder, "run"), Path(folder, "log")
        # Where a wakeup takes half of a short disturbance by itself, all of them are late: too many
        # to be listed, if they are not rarer.
        interval = max(interval_ns(length_ns), LEAST_INTERVAL_NS)
        command = [BINARY, "explain", *asked(length_ns, interval, MOST_LISTED), "--policy", "fifo", "--priority", "90"]
        command += ["--duration", f"{SECONDS['real']}s", "--load", f"disturb-{kind}-{length}", "--out", str(out)]
        execute(command, PATIENCE_S, {**os.environ, "WAKESCOPE_DISTURBANCES": str(log)})
        run = json.loads((out / "run.json").read_text())
        if len(scoring.late_of(run)) == MOST_LISTED:
            raise SystemExit(f"more wakeups are late by half of it than the {MOST_LISTED:,} that a run lists")
        return scoring.tally(run, kind, length_ns, scoring.bursts(log.read_text()))


def possible(kinds, model):
    """Those that a model of preemption knows."""
    # It sees to timers in a thread.
    return [kind for kind in kinds if (kind, model) != ("timers", "rt")]


def in_guests(lab, arch, kernel, model, kinds, length, length_ns, seed, beside=None):
    """The tallies of a kernel's guests, one for each kind."""
    kinds = possible(kinds, model)
    command = guests_command(arch, kernel, model, kinds, length, length_ns, seed, beside=beside)
    _result, record = lab.run(*command, patience_s=PATIENCE_S)
    runs = [json.loads(Path(cell["run"], "run.json").read_text()) for cell in record["cells"]]
    return [scoring.tally(run, kind, length_ns) for kind, run in zip(kinds, runs)]


def guests_command(arch, kernel, model, kinds, length, length_ns, seed, of="lab", part=2, beside=None):
    """What a lab is asked for: a guest for each kind of disturbance, with the load `beside` it if there is
    to be one. Wakeups are late that are late by a `part` of the length."""
    interval = interval_ns(length_ns)
    samples = int(SECONDS[of] * 1e9 * max(1, length_ns / 2_000_000) / interval)
    loads = ",".join("+".join(filter(None, [f"disturb-{kind}-{length}", beside])) for kind in kinds)
    command = ["--explain", *asked(length_ns, interval, 1_000, part), "--samples", str(samples)]
    command += ["--arch", arch, "--kernel", kernel, "--preempt", model, "--load", loads, "--seeds", f"{seed},"]
    return command


def sections(lab, arch, kernel, model, kinds, length, length_ns, seed, beside=None):
    """The tallies of sections that the kernel module makes in a kernel's guests, one for each kind."""
    part = scoring.late_part(kinds[0])
    command = guests_command(arch, kernel, model, kinds, length, length_ns, seed, "sections", part, beside)
    _result, record = lab.run(*command, "--append", LOGGED, patience_s=PATIENCE_S)
    for kind, cell in zip(kinds, record["cells"]):
        run = json.loads(Path(cell["run"], "run.json").read_text())
        log = scoring.bursts(Path(cell["run"], "disturbances.log").read_text())
        result = scoring.tally(run, kind, length_ns, log, model, arch)
        result.made = sum(map(len, log.values()))
        result.harmful = scoring.holds_up(kind, model, arch)
        yield result


def throttled(lab, arch, length, length_ns, times):
    """Throttling comes once in a period, which is a second unless the kernel is told otherwise."""
    period_us = max(100_000, 4 * length_ns // 1_000)
    runtime_us = period_us - length_ns // 1_000
    samples = times * period_us // 1_000
    command = ["--explain", "--above", f"{length_ns // 2}ns", "--worst", "1000", "--interval", "1ms", "--samples", str(samples)]
    kernel, model = THROTTLED_GUEST[arch]
    command += ["--arch", arch, "--kernel", kernel, "--preempt", model, "--load", f"disturb-throttle-{length}", "--seeds", "1,"]
    # The runtime first: it may not exceed the period.
    settings = {"runtime": runtime_us, "period": period_us}
    command += ["--append", " ".join(f"sysctl.kernel.sched_rt_{name}_us={us}" for name, us in settings.items())]
    _result, record = lab.run(*command)
    run = json.loads(Path(record["cells"][0]["run"], "run.json").read_text())
    return scoring.tally(run, "throttle", length_ns)


def paused(lab, kernel, model, load, length, length_ns, times, seed):
    """A guest in real time whose emulator is stopped."""
    samples = int(seconds(length_ns, times) * 1_000)
    command = ["--explain", "--above", f"{length_ns // 2}ns", "--worst", "1000", "--interval", "1ms"]
    command += ["--arch", "amd64", "--kernel", kernel, "--preempt", model, "--load", load, "--seeds", "1,"]
    run, pauses = paused_run(guests.in_real_time(lab.emulator(*command, samples=samples), counter_khz()), length_ns, times, seed)
    result = scoring.tally_of_pauses(run, pauses, length_ns)
    if result is None:
        raise SystemExit(f"its clock could not be related to {len(pauses)} pauses by its late wakeups ({len(run['worst'])})")
    return result


def idle_states():
    """Those of the first CPU: name, exit latency in ns, whether it is off."""
    folders = sorted(Path("/sys/devices/system/cpu/cpu0/cpuidle").glob("state*"), key=lambda folder: int(folder.name[5:]))
    words = [[(folder / name).read_text().strip() for name in ("name", "latency", "disable")] for folder in folders]
    return [(name, int(latency) * 1_000, disabled != "0") for name, latency, disabled in words]


def out_of_idle():
    """This machine, doing nothing, where leaving an idle state makes wakeups late."""
    states = idle_states()
    length_ns = scoring.deepest(states)
    if length_ns is None:
        raise SystemExit(scoring.without_deep(states))
    with tempfile.TemporaryDirectory(prefix="wakescope-score-") as folder:
        out = Path(folder, "run")
        # Long enough for the kernel to expect a long sleep.
        asked = ["--above", f"{length_ns // 2}ns", "--worst", "1000", "--interval", "20ms", "--policy", "fifo", "--priority", "90"]
        execute([BINARY, "explain", *asked, "--duration", f"{SECONDS['real']}s", "--out", str(out)], PATIENCE_S)
        return scoring.tally(json.loads((out / "run.json").read_text()), "idle", length_ns)


def results(plan):
    """Tallies with the machine that each is of."""
    found, missing = [], []

    def attempt(machine, what, make):
        say(f"{machine}: {what}")
        try:
            found.extend((machine, result) for result in make())
        except SystemExit as failure:
            say(str(failure))
            missing.append(f"- {machine}: {what}: {' '.join(str(failure).split())[:300]}")

    here = f"this one, {os.uname().release}"
    loads = [kind for kind in plan.kinds if kind in KINDS]
    injected = [kind for kind in plan.kinds if kind in scoring.INJECTED and kind not in scoring.NEED_ANOTHER_CPU]
    if plan.real and os.geteuid() != 0:
        missing.append(f"- {here}: only root may trace it")
    elif plan.real:
        for kind in loads:
            for length in plan.lengths:
                ns = LENGTHS[length]
                attempt(here, f"{kind} {length}", lambda: [on_this_machine(kind, length, ns)])
        if "idle" in plan.kinds:
            attempt(here, "idle", lambda: [out_of_idle()])
    if plan.guests:
        with kept(plan.keep) as folder:
            lab = Lab(BINARY, folder)
            # All of something, or the first.
            some = slice(1 if plan.quick else None)
            for kernel, model in plan.guests[some] if loads else ():
                if "timers" in loads and model == "rt":
                    name = guest_name(plan.arch, kernel, model)
                    missing.append(f"- {name}: timers: real-time preemption sees to them in a thread")
                for length in plan.lengths:
                    make = lambda: in_guests(lab, plan.arch, kernel, model, loads, length, LENGTHS[length], plan.seed, plan.beside)
                    attempt(guest_name(plan.arch, kernel, model, plan.beside), length, make)
            if left_out := scoring.NEED_ANOTHER_CPU.intersection(plan.kinds):
                missing.append(f"- guests: {', '.join(sorted(left_out))}: they have one CPU")
            of_sections = SECTION_GUESTS[plan.arch] if plan.all_guests else plan.guests
            if plan.arch != "amd64":
                nmis = [kind for kind in injected if kind in scoring.NEED_NMI]
                if nmis:
                    missing.append(f"- guests of {plan.arch}: {', '.join(nmis)}: they have no NMI that a CPU can send itself")
                injected = [kind for kind in injected if kind not in nmis]
            # What counts as late is another part of the length for pairs.
            groups = [[kind for kind in injected if (kind in scoring.PAIRS) == paired] for paired in (False, True)]
            for (kernel, model), group in itertools.product(of_sections[some], filter(None, groups)):
                for length in plan.lengths:
                    make = lambda: sections(lab, plan.arch, kernel, model, group, length, LENGTHS[length], plan.seed, plan.beside)
                    what = "pairs of sections" if group[0] in scoring.PAIRS else "sections"
                    attempt(guest_name(plan.arch, kernel, model, plan.beside), f"{what} {length}", make)
            for length, ns in list(THROTTLED.items())[some] if "throttle" in plan.kinds else ():
                name = guest_name(plan.arch, *THROTTLED_GUEST[plan.arch])
                make = lambda: [throttled(lab, plan.arch, length, ns, 10 if plan.quick else THROTTLINGS)]
                attempt(name, f"throttle {length}", make)
            stoppable = [guest for guest in PAUSED_GUESTS if guest in plan.guests and plan.arch == "amd64"]
            if "paused" in plan.kinds and plan.arch != "amd64":
                missing.append(f"- guests of {plan.arch}: paused: guests in real time are of amd64 only")
            elif "paused" in plan.kinds and not stoppable:
                missing.append(f"- guests: paused: none of {', '.join(map(' '.join, PAUSED_GUESTS))} was asked for")
            paused_guests = list(itertools.product(stoppable, PAUSED_LOADS))[some]
            for (kernel, model), load in paused_guests if "paused" in plan.kinds else ():
                for length, ns in list(PAUSED.items())[some]:
                    make = lambda: [paused(lab, kernel, model, load, length, ns, 5 if plan.quick else PAUSES, plan.pause_seed)]
                    attempt(f"{kernel} {model}, {load}", f"paused {length}, seed {plan.pause_seed}", make)
        if "idle" in plan.kinds:
            missing.append("- guests: idle: an emulated CPU has no idle states")
    return found, missing


def guest_name(arch, kernel, model, beside=None):
    """How a row calls it. Without an architecture it is of the one that most are."""
    name = " ".join([*([arch] if arch != "amd64" else []), kernel, model])
    return f"{name}, {beside}" if beside else name


@contextlib.contextmanager
def kept(folder):
    """A folder that stays if it has a name. Cells that are there are not measured again."""
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        yield folder
    else:
        with tempfile.TemporaryDirectory(prefix="wakescope-score-") as made:
            yield made


def page(found, missing):
    parts = [figures.table(scoring.HEAD, [scoring.row(*pair) for pair in found])]
    beside = [scoring.beside_pauses(*pair) for pair in found if pair[1].kind == "paused"]
    if beside:
        parts.append("Pauses and wakeups of paused guests:\n\n" + "\n".join(beside))
    made = [scoring.beside_sections(*pair) for pair in found if pair[1].made is not None]
    if made:
        parts.append("Sections that the kernel module made:\n\n" + "\n".join(made))
    wrong = [line for pair in found for line in scoring.wrong_blames(*pair)]
    if wrong:
        parts.append("Blamed first where something else was injected:\n\n" + "\n".join(wrong))
    if missing:
        parts.append("Not measured:\n\n" + "\n".join(missing))
    return "\n\n".join(parts)


def replace_rows(path, found):
    """Replaces rows of the page at `path` by those that were measured: that of the same kind, length and machine."""
    path = Path(path)
    rows = [scoring.row(*pair) for pair in found]
    text, not_put = figures.with_rows(path.read_text(), scoring.HEAD, rows, 3)
    path.write_text(text)
    for row, places in not_put:
        say(f"not put into {path}, which has {places or 'no'} rows of it: {', '.join(row[:3])}")


def guest(text):
    kernel, _, model = text.partition("/")
    if not model:
        raise argparse.ArgumentTypeError("a guest is written KERNEL/MODEL, as in 6.1-cloud/none")
    return kernel, model


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    quick = "to see that it works, in minutes: of each kind the first length, for a shorter time, here and in one guest"
    parser.add_argument("--quick", action="store_true", help=quick)
    every = KINDS + OTHER_KINDS + list(scoring.INJECTED)
    parser.add_argument("--kinds", default=",".join(every), help=f"of: {','.join(every)}")
    lengths = f"of: {','.join(LENGTHS)}; {', '.join(OTHER_KINDS)} have lengths of their own"
    parser.add_argument("--lengths", default=",".join(LENGTHS), help=lengths)
    guests_help = f"as KERNEL/MODEL, nothing for none; default: {' '.join(map('/'.join, GUESTS['amd64']))}"
    parser.add_argument("--guests", type=guest, nargs="*", help=guests_help)
    parser.add_argument("--arch", choices=GUESTS, default="amd64", help="of the guests (default: amd64)")
    beside_help = "a load that runs in guests beside the disturbance, as in find (default: none); not beside throttle and paused"
    parser.add_argument("--beside", help=beside_help)
    parser.add_argument("--no-real", dest="real", action="store_false", help="leave this machine out")
    seed_help = "of when loads disturb guests (default: 1); not of throttle and paused"
    parser.add_argument("--seed", type=int, default=1, help=seed_help)
    parser.add_argument("--pause-seed", type=int, default=1, help="of the distances between pauses (default: 1)")
    usual = ", ".join(f"{of} {seconds:g}" for of, seconds in SECONDS.items())
    parser.add_argument("--seconds", type=float, help=f"how long each kind and length is measured (default: {usual})")
    parser.add_argument("--keep", help="where cells of the lab stay, to look at, or to go on after an end (default: nowhere)")
    parser.add_argument("--into", help="put the results into this page, between its marks")
    rows_help = "replace the rows of this page that were measured, wherever on it they are, and nothing else"
    parser.add_argument("--rows-into", metavar="PAGE", help=rows_help)
    plan = parser.parse_args(words)
    plan.all_guests = plan.guests is None
    if plan.guests is None:
        plan.guests = GUESTS[plan.arch]
    plan.kinds, plan.lengths = plan.kinds.split(","), plan.lengths.split(",")
    for name in [*set(plan.kinds) - set(every), *set(plan.lengths) - set(LENGTHS)]:
        parser.error(f"no such kind or length: {name}")
    if plan.quick:
        plan.lengths = plan.lengths[:1]
        SECONDS.update(real=2.0, lab=0.4, sections=0.4)
    if plan.seconds is not None:
        if not 0 < plan.seconds <= 3_600:
            parser.error("--seconds must be above 0, and at most an hour")
        SECONDS.update(dict.fromkeys(SECONDS, plan.seconds))
    return plan


def main():
    plan = arguments()
    end_as_by_ctrl_c()
    found, missing = results(plan)
    order = [*scoring.CAUSES]
    found.sort(key=lambda pair: (order.index(pair[1].kind), pair[1].length_ns))
    publish(page(found, missing), plan.into, "score")
    if plan.rows_into:
        replace_rows(plan.rows_into, found)


BINARY = os.environ.get("BINARY", "target/release/wakescope")

if __name__ == "__main__":
    main()
