#!/usr/bin/env python3
"""What measuring costs, beside cyclictest and jitterdebugger in the same minutes; what explaining
costs, and what watching costs, beside other tracers; what the lab costs, beside QEMU alone; what showing
runs costs, beside scripts; and what simulating kernels costs, beside SimSo and SPIN.

Prints a Markdown page on stdout and progress on stderr. Runs of different programs alternate,
and ratios are formed within a round, so that a machine that slows down slows all of them.
Needs root (or leave to use SCHED_FIFO, and for explaining to trace; the lab does without),
rt-tests, jitterdebugger, valgrind, perf, bpftrace, GNU time, busybox, stress-ng, SPIN and SimSo:
`scripts/setup bench` installs them.
"""

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import explain
import figures
import lab
import lab_speed
import loads
import show
import simulate
import tracer
import wakers
import watch
from figures import spread
from running import execute, publish, say

PRIORITY = 90

# The programs: each builds its command from the same few wishes. `amount` is samples per CPU, or
# seconds as text: "20s".


def cyclictest(interval_us, cpus, amount, extra=()):
    length = ["-D", amount[:-1]] if isinstance(amount, str) else ["-l", str(amount)]
    where = ["-t", str(len(cpus)), "-a", ",".join(map(str, cpus))]
    return ["cyclictest", "-m", "-q", "-p", str(PRIORITY), "-i", str(interval_us), *where, *length, *extra]


def jitterdebugger(interval_us, cpus, amount, extra=()):
    length = ["-D", amount] if isinstance(amount, str) else ["-l", str(amount)]
    where = ["-a", ",".join(map(str, cpus))]
    return ["jitterdebugger", "-p", str(PRIORITY), "-i", str(interval_us), *where, *length, *extra]


def wakescope(interval_us, cpus, amount, extra=()):
    length = ["--duration", amount] if isinstance(amount, str) else ["--samples", str(amount)]
    where = ["--cpus", ",".join(map(str, cpus))]
    how = ["--policy", "fifo", "--priority", str(PRIORITY), "--warmup", "0s"]
    # The others ask for shallow idle states without being told to.
    how += ["--idle-states", "shallow"]
    return [BINARY, "measure", "--interval", f"{interval_us}us", *where, *length, *how, *extra]


PROGRAMS = {"wakescope": wakescope, "cyclictest": cyclictest, "jitterdebugger": jitterdebugger}


def measure(name, interval_us, cpus, amount, extra=()):
    """Runs one of the programs; of wakescope the record is read."""
    expected_s = int(amount[:-1]) if isinstance(amount, str) else amount * interval_us / 1e6
    patience_s = 60 + 5 * expected_s
    if name != "wakescope":
        return execute(PROGRAMS[name](interval_us, cpus, amount, extra), patience_s)
    with tempfile.TemporaryDirectory(prefix="wakescope-bench-") as folder:
        out = Path(folder, "run")
        result = execute([*wakescope(interval_us, cpus, amount, extra), "--out", str(out)], patience_s)
        result.run = json.loads((out / "run.json").read_text())
        return result


def rounds_of(names, rounds, what):
    """Results by program, a list over rounds. The order rotates: nobody is always first."""
    results = {name: [] for name in names}
    for number in range(rounds):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            say(f"round {number + 1}/{rounds}: {name}")
            results[name].append(what(name))
    return results


def compared(values, unit):
    """Rows `program | figure | ratio`, and the ratio of wakescope to it, round by round."""
    ours = values.get("wakescope")
    rows = []
    for name, theirs in values.items():
        ratio = "" if name == "wakescope" or ours is None else spread(figures.ratios(ours, theirs))
        rows.append([name, spread(theirs), ratio])
    return figures.table(["", unit, "wakescope is × of it"], rows)


def cpu_time(plan):
    """CPU time per sample: user and system, the whole process, start and end included."""
    samples = plan.samples

    def once(name):
        extra = ["-h", "1000"] if name == "cyclictest" else []
        return measure(name, 100, [plan.cpu], samples, extra).cpu_s / samples * 1e6

    head = f"### CPU time per sample\n\n{samples:,} samples at 100 µs on one CPU, user and system time of the whole process.\n\n"
    return head + compared(rounds_of(plan.names, plan.rounds, once), "µs per sample")


def callgrind(name, plan, samples, interval_us):
    """Instructions of all threads, and of the one that sleeps the most: the one that measures."""
    with tempfile.TemporaryDirectory(prefix="wakescope-bench-") as folder:
        out = Path(folder, "callgrind")
        extra = ["-h", "1000"] if name == "cyclictest" else []
        if name == "wakescope":
            extra = ["--out", str(Path(folder, "run"))]
        tool = ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}"]
        command = [*tool, *PROGRAMS[name](interval_us, [plan.cpu], samples, extra)]
        execute(command, 60 + 10 * samples * interval_us / 1e6)
        threads = [figures.callgrind_totals(f.read_text(errors="replace")) for f in Path(folder).glob("callgrind-*")]
    total = sum(instructions for instructions, _sleeps in threads)
    loop, sleeps = max(threads, key=lambda thread: thread[1])
    return total, loop if sleeps >= samples // 2 else None


def instructions(plan):
    """User instructions per sample, as slopes over two sample counts."""
    low, high = (2_000, 12_000) if plan.quick else (10_000, 60_000)
    # As many samples in the same time: what a program does per second then falls out.
    few = high // 10

    def once(name):
        total_low, loop_low = callgrind(name, plan, low, 100)
        total_high, loop_high = callgrind(name, plan, high, 100)
        total_few, _ = callgrind(name, plan, few, 1_000)
        loop = None
        if loop_low is not None and loop_high is not None:
            loop = figures.slope((low, loop_low), (high, loop_high))
        same_interval = figures.slope((low, total_low), (high, total_high))
        same_time = figures.slope((few, total_few), (high, total_high))
        return loop, same_time, same_interval

    # Instructions hardly vary: three rounds show that.
    results = rounds_of(plan.names, min(plan.rounds, 3), once)
    parts = ["### User instructions per sample\n\ncallgrind, slopes between two sample counts."]
    heads = [
        f"The measuring thread, {low:,} and {high:,} samples at 100 µs:",
        f"All threads, {few:,} samples at 1 ms and {high:,} at 100 µs, which take the same time:",
        f"All threads, {low:,} and {high:,} samples at 100 µs: with what they do per second, saving the record "
        "above all, spread over 10,000 samples. It grows with the number of different values that are seen:",
    ]
    for rank, head in enumerate(heads):
        values = {name: [figure[rank] for figure in of] for name, of in results.items()}
        values = {name: of for name, of in values.items() if None not in of}
        parts += [head, compared(values, "instructions per sample")]
    return "\n\n".join(parts)


def memory(plan):
    """Peak resident memory, for several lengths and numbers of CPUs."""
    cases = [([plan.cpu], 10_000), ([plan.cpu], plan.samples)]
    if len(plan.cpus) > 1:
        cases.append((plan.cpus, 10_000))
    rows = []
    for cpus, samples in cases:
        def once(name, cpus=cpus, samples=samples):
            extra = ["-h", "1000"] if name == "cyclictest" else []
            return measure(name, 100, cpus, samples, extra).peak_kib / 1024

        results = rounds_of(plan.names, min(plan.rounds, 3), once)
        row = [f"{len(cpus)} CPU{'s' * (len(cpus) > 1)}, {samples:,} samples each"]
        rows.append(row + [spread(results[name]) for name in plan.names] + [8 + 2 * len(cpus)])
    head = "### Resident memory\n\nPeak of the process, MiB; the limit is 8 MiB and 2 MiB per CPU.\n\n"
    return head + figures.table(["", *plan.names, "limit"], rows)


def recorder(plan):
    """Memory of a process that feeds a recorder up to 10^8 samples."""
    feeder = Path(BINARY).parent / "examples" / "feed_recorder"
    lines = execute([str(feeder)], 600).output.split("\n")
    rows = [line.split() for line in lines if line]
    rows = [[f"{int(fed):,}", f"{int(kib):,}", f"{int(ps) / 1000:.1f}"] for fed, kib, ps in rows]
    head = (
        "### The recorder alone\n\nA process that only feeds a recorder, with lateness of every magnitude and stalls: "
        "its memory after so many samples. The time is that of such samples; a wakeup in time takes less.\n\n"
    )
    return head + figures.table(["samples", "resident KiB", "ns per sample"], rows)


def keeping_up(plan):
    """Wakeups obtained at 50 µs in a given time."""
    seconds = 2 if plan.quick else 20
    results = rounds_of(plan.names, plan.rounds, lambda name: measure(name, 50, [plan.cpu], f"{seconds}s"))
    wakeups = {name: [r.wakeups() for r in of] for name, of in results.items()}
    ours = wakeups.get("wakescope")
    rows = []
    for name in plan.names:
        missed = "not told"
        if name == "wakescope":
            missed = spread([sum(t["missed"] for t in r.run["threads"]) for r in results[name]])
        ratio = "" if name == "wakescope" or ours is None else spread(figures.ratios(ours, wakeups[name]))
        rows.append([name, spread(wakeups[name]), missed, ratio])
    due = seconds * 20_000
    head = f"### Keeping up\n\nWakeups in {seconds} s at 50 µs on one CPU, of {due:,} periods; and periods reported as missed.\n\n"
    return head + figures.table(["", "wakeups", "missed periods", "wakescope gets × of it"], rows)


def agreement(plan):
    """Minimum and median beside cyclictest, in µs."""
    names = [name for name in plan.names if name != "jitterdebugger"]

    def once(name):
        # -N counts in ns; 200,000 rows then reach to 200 µs, far beyond any median.
        extra = ["-N", "-h", "200000"] if name == "cyclictest" else []
        result = measure(name, 100, [plan.cpu], plan.samples, extra)
        if name == "cyclictest":
            counts, beyond = figures.cyclictest_histogram(result.output)
            low = figures.cyclictest_minimum(result.output)
        else:
            woken = result.run["threads"][0]["woken"]
            counts, beyond = figures.buckets_as_counts(woken["histogram"]), 0
            low = woken["min_ns"]
        median = figures.median_of_counts(counts, beyond)
        if median is None:
            raise SystemExit(f"bench: the median of {name} is beyond its histogram; this machine is too slow for it")
        return low / 1000, median / 1000

    results = rounds_of(names, plan.rounds, once)
    rows = [[name, *(spread([r[i] for r in results[name]]) for i in (0, 1))] for name in names]
    if "wakescope" in names:
        pairs = list(zip(results["wakescope"], results["cyclictest"]))
        rows.append(["difference", *(spread([ours[i] - theirs[i] for ours, theirs in pairs]) for i in (0, 1))])
    head = f"### Agreement\n\nThe same CPU, alternating; {plan.samples:,} samples at 100 µs, one value per wakeup, µs.\n\n"
    return head + figures.table(["", "minimum", "median"], rows)


def gaps(plan):
    """Gaps of 1 µs and more that a busy loop sees, beside oslat."""
    seconds = 2 if plan.quick else 20
    names = ["wakescope", "oslat"][0 if "wakescope" in plan.names else 1 :]

    def once(name):
        if name == "oslat":
            command = ["oslat", "-D", str(seconds), "-c", str(plan.cpu)]
            return figures.oslat_gaps(execute(command, 60 + 5 * seconds).output) / seconds
        with tempfile.TemporaryDirectory(prefix="wakescope-bench-") as folder:
            out = Path(folder, "run")
            how = ["--stimulus", "spin", "--cpus", str(plan.cpu), "--duration", f"{seconds}s", "--out", str(out)]
            execute([BINARY, "measure", *how], 60 + 5 * seconds)
            thread = json.loads((out / "run.json").read_text())["threads"][0]
            return thread["woken"]["count"] / (thread["spin"]["observed_ns"] / 1e9)

    results = rounds_of(names, plan.rounds, once)
    head = f"### Gaps in a busy loop\n\nGaps of 1 µs and more on one CPU in {seconds} s, SCHED_OTHER, alternating.\n\n"
    return head + compared(results, "gaps per second")


PARTS = {
    "cpu": cpu_time,
    "instructions": instructions,
    "memory": memory,
    "recorder": recorder,
    "keeping-up": keeping_up,
    "agreement": agreement,
}
# These have pages of their own, so that each can be made anew alone.
OWN_PLACES = {
    "wakers": lambda plan: wakers.wakers(plan, BINARY),
    "gaps": gaps,
    "loads": lambda plan: loads.loads(plan, BINARY),
}


# The results of these are kept apart, each between marks of its own: one can be made anew without the other.
PAGES = {
    "results": list(PARTS),
    **{part: [part] for part in OWN_PLACES},
    "explain": list(explain.PARTS),
    "tracer": list(tracer.PARTS),
    "watch": list(watch.PARTS),
    "lab": list(lab.PARTS),
    "lab-speed": list(lab_speed.PARTS),
    "show": list(show.PARTS),
    "model": list(simulate.PARTS),
}
# Pages that can be asked for by their name: they are wakescope's alone.
OWN_PAGES = ["wakers", "loads", "explain", "tracer", "watch", "lab", "lab-speed", "show", "model"]


def first_line(*command):
    """The first line that a program prints, on either channel."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, check=False)
    except OSError:
        return "not there"
    return (done.stdout.decode(errors="replace").strip().splitlines() or ["?"])[0].strip()


def machine(plan, page):
    """What the figures were made on."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    model = re.search(r"^(?:model name|Model|Processor)\s*: (.*)", cpuinfo, re.MULTILINE)
    guest = re.search(r"^flags.*\bhypervisor\b", cpuinfo, re.MULTILINE)
    clock = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    rows = [
        ["processor", (model[1] if model else platform.machine()) + (", a virtual machine" if guest else "")],
        ["CPUs", f"{os.cpu_count()}" + (f", measured: {plan.cpu}" if page not in ("lab", "lab-speed", "tracer", "model") else "")],
        ["kernel", f"{platform.release()} {platform.version()}"],
        ["clocksource", clock.read_text().strip() if clock.exists() else "?"],
        ["load average", " ".join(f"{load:.2f}" for load in os.getloadavg())],
    ]
    if page == "show":
        rows.append(["gnuplot", first_line("gnuplot", "--version")])
    elif page == "model":
        rows.append(["SPIN", first_line("spin", "-V")])
        rows.append(["SimSo", first_line(simulate.PYTHON, "-c", "from importlib.metadata import version; print(version('simso'))")])
    elif page not in ("explain", "tracer", "watch", "loads"):
        rows.append(["cyclictest", first_line("cyclictest", "--help")])
    if page == "results":
        rows.append(["jitterdebugger", first_line("jitterdebugger", "--version")])
    if page == "loads":
        rows.append(["stress-ng", first_line("stress-ng", "--version")])
    if page in ("results", "wakers"):
        rows.append(["valgrind", first_line("valgrind", "--version")])
    if page in ("explain", "watch"):
        rows.append(["perf", first_line("perf", "--version")])
        rows.append(["bpftrace", first_line("bpftrace", "--version")])
    if "wakescope" in plan.names:
        rows.append(["wakescope", first_line(BINARY, "--version")])
    return "### Machine\n\n" + figures.table(["", ""], rows).replace("---:", "---")


def may_use_fifo():
    """Whether programs started from here may run at the priority that all are to have."""
    child = os.fork()
    if child == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    default = int(os.environ.get("BENCH_ROUNDS", "5"))
    parser.add_argument("--rounds", type=int, default=default, help="runs of each program (BENCH_ROUNDS; default 5)")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works")
    known = [part for parts in PAGES.values() for part in parts]
    parser.add_argument("--only", default=",".join(known), help=f"parts, of: {','.join(known)}; explain, tracer, watch, lab, lab-speed, show and model are all of theirs")
    parser.add_argument(
        "--explain-seconds", type=int, default=20, help="how long explain is to keep up (default 20; an hour is 3600)"
    )
    parser.add_argument("--cpu", type=int, help="the CPU to measure (default: the last one allowed)")
    parser.add_argument("--peers-only", action="store_true", help="leave wakescope out")
    parser.add_argument("--into", help="put the results into this page, between its marks")
    plan = parser.parse_args()
    wanted = [part for word in plan.only.split(",") for part in (PAGES[word] if word in OWN_PAGES else [word])]
    unknown = set(wanted) - set(known)
    if unknown or plan.rounds < 1:
        parser.error(f"no such part: {', '.join(sorted(unknown))}" if unknown else "--rounds is at least 1")
    plan.pages = {page: [part for part in wanted if part in parts] for page, parts in PAGES.items()}
    if plan.peers_only:
        plan.pages.update({page: [] for page in OWN_PAGES})
    plan.cpus = sorted(os.sched_getaffinity(0))
    plan.cpu = plan.cpus[-1] if plan.cpu is None else plan.cpu
    if plan.cpu not in plan.cpus:
        parser.error(f"--cpu {plan.cpu}: this process may use {plan.cpus}")
    plan.rounds = 1 if plan.quick else plan.rounds
    plan.samples = 10_000 if plan.quick else 100_000
    plan.names = list(PROGRAMS)[1 if plan.peers_only else 0 :]
    return plan


def results_of(plan, page):
    """All that is to be measured for a page, as Markdown."""
    if of_guests := {"lab": lab, "lab-speed": lab_speed, "tracer": tracer}.get(page):
        return lab.results_of(plan.pages[page], plan, BINARY, of_guests.PARTS)
    if page == "model":
        return simulate.results_of(plan.pages[page], plan, BINARY)
    if not may_use_fifo():
        raise SystemExit(
            f"bench: may not use SCHED_FIFO {PRIORITY}\n"
            f"  → make build, then as root: BINARY={BINARY} python3 benches/bench.py"
        )
    if page == "show":
        return show.results_of(plan.pages[page], plan, BINARY)
    if page == "explain":
        return explain.results_of(plan.pages[page], plan, BINARY)
    if page == "watch":
        return watch.results_of(plan.pages[page], plan, BINARY)
    parts = []
    for name in plan.pages[page]:
        say(name)
        parts.append({**PARTS, **OWN_PLACES}[name](plan))
    return parts


def main():
    plan = arguments()
    # As Ctrl-C does: nothing that runs is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: ended"))
    # A shell has its jobs in the background ignore Ctrl-C, by which whoever looks on is told to end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for page in (page for page, parts in plan.pages.items() if parts):
        text = "\n\n".join([machine(plan, page), *results_of(plan, page)])
        publish(text, plan.into, page)


BINARY = os.environ.get("BINARY", "target/release/wakescope")

if __name__ == "__main__":
    main()
