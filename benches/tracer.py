"""What tracing costs in instructions, beside programs that do nothing at the same tracepoints: in guests of the
lab, whose clock counts instructions. Other work on the machine changes nothing in these figures."""

import json
import os
import statistics
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import figures
from figures import spread
from lab import Lab
from running import say

# Without and with a tracepoint at the scheduler's entry.
KERNELS = ["6.1-cloud", "7.2-cloud"]

# What scripts/old-kernels has fetched: kernels that the lab's catalogue does not have.
OLD_KERNELS = Path("target/old-kernels")

# What the guest calls its patterns, and what one operation of each is.
PATTERNS = {
    "pipe": "two threads wake each other through pipes; a turn",
    "messages": "20 threads send messages to 20 others, as hackbench does; a message",
    "latency": "a probe wakes up each 500 µs; the mean latency of its wakeups",
}

# What it calls its tracers.
TRACERS = {
    "probe": "`explain`",
    "process": "`explain --pid` of a sleeper",
    "comm": "`explain --comm` of it",
    "cgroup": "`explain --cgroup` of it",
    "watch": "`watch`",
    "waiting": "`explain --pid` of a thread that waits for the CPU",
}

# What of the loss to programs that do nothing theirs may be, where hardly anything is followed: who runs while a
# thread waits is added up at each switch, which has its price.
AIMS = {"probe": 1.1, "process": 1.1, "comm": 1.1, "cgroup": 1.1, "watch": 1.25}

BEGINS = "tracer: "


def measured(console):
    """What a guest has printed: ns for an operation by pattern, tracer and round, and the number of
    tracepoints that each tracer has a program at."""
    ns, places, is_done = {}, {}, False
    for line in console.splitlines():
        words = line.partition(BEGINS)[2].split()
        if words[:1] == ["done"]:
            is_done = True
        elif words[:1] == ["places"]:
            places[words[1]] = len(words) - 2
        elif len(words) == 4 and words[0] in PATTERNS:
            ns.setdefault(words[0], {}).setdefault(words[2], []).append(float(words[3]))
    if not is_done:
        raise ValueError("\n".join(console.splitlines()[-10:]))
    return ns, places


def losses(pattern, ns):
    """The table of a pattern: ns of an operation, what is lost to the programs that do nothing and to the tracer,
    and the ratio of both."""
    head = [pattern, "virtual ns", "lost", "× of what nothing loses", "at most"]
    rows = [["nobody", spread(ns["nobody"]), "", "", ""]]
    for tracer, name in TRACERS.items():
        if tracer not in ns:
            continue
        nothing, lost = (figures.differences(ns[of], ns["nobody"]) for of in (f"{tracer}-nothing", tracer))
        shares = figures.shares(lost, nothing)
        # A wakeup that is followed costs something, which is no matter of the places. And where little is lost
        # at all, the order in which many threads run decides.
        aim = AIMS.get(tracer) if pattern == "pipe" else None
        verdict = ""
        if aim:
            met = "met" if shares and statistics.median(shares) <= aim else "**missed**"
            verdict = f"{figures.significant(aim)}: {met}"
        rows.append([f"{name}: nothing in its places", spread(ns[f"{tracer}-nothing"]), spread(nothing), "", ""])
        rows.append([name, spread(ns[tracer]), spread(lost), spread(shares) if shares else "", verdict])
    return figures.table(head, rows)


def report(kernel, console):
    """A guest's figures as Markdown."""
    ns, places = measured(console)
    said = ", ".join(f"{TRACERS[tracer]} {count}" for tracer, count in places.items())
    parts = [f"### Instructions, {kernel}\n\nTracepoints with a program: {said}."]
    for pattern, what in PATTERNS.items():
        parts.append(f"{what[0].upper()}{what[1:]}:\n\n" + losses(pattern, ns[pattern]))
    return "\n\n".join(parts)


def console_of(lab, program, kernel):
    """What a guest of that kernel prints, in a lab of its own. It sends no result: to the lab, it has failed."""
    how = ["--preempt", "default", "--load", "idle", "--seeds", "1", "--samples", "100", "--timeout", "120min"]
    command = [*lab.command("--kernel", kernel, *how, "--guest-program", str(program)), "--json"]
    done = subprocess.run(command, env=lab.environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.stdout:
        lab.note(json.loads(done.stdout))
    consoles = list((lab.folder / "cells").glob("*/console.log"))
    if not consoles:
        raise SystemExit(f"bench: {' '.join(command)}: no guest\n{done.stderr.decode(errors='replace')[-2000:]}")
    return consoles[0].read_text(errors="replace")


def instructions(plan, lab):
    """Each kernel's figures. Guests run at once: their clocks do not notice."""
    program = Path(os.environ.get("TRACER_GUEST", "target/release/examples/tracer_guest")).absolute()
    if not program.exists():
        raise SystemExit(f"bench: there is no {program}\n  → make bench builds it")
    old = {image.name.removeprefix("vmlinuz-"): image for image in sorted(OLD_KERNELS.glob("*/boot/vmlinuz-*"))}
    kernels = {KERNELS[0]: KERNELS[0]} if plan.quick else old | {kernel: kernel for kernel in KERNELS}

    def measured_in(kernel):
        own = lab.folder / "guests-of" / kernel
        own.mkdir(parents=True)
        own = Lab(lab.binary, own)
        say(f"tracer: {kernel}")
        console = console_of(own, program, str(kernels[kernel]))
        lab.seen |= own.seen
        return console

    # The lab sees to it that each kernel and the emulator are fetched once.
    with ThreadPoolExecutor() as pool:
        consoles = dict(zip(kernels, pool.map(measured_in, kernels), strict=True))
    parts = []
    for kernel, console in consoles.items():
        try:
            parts.append(report(kernel, console))
        except ValueError as why:
            raise SystemExit(f"bench: {kernel}: the guest has not measured all\n{why}") from why
    return "\n\n".join(parts)


PARTS = {"tracer-instructions": instructions}
