"""What explaining costs: the throughput that a machine loses to it, beside other tracers; what the
probe itself sees of it; and whether it keeps up."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import figures
from figures import spread
from lab import rounds_of
from programs import accounts, accounts_of, costs, ns_per_run
from running import execute, say

# The peer that most people use for the question, in its shortest form: one histogram of the time
# from wakeup to switch, over all tasks.
RUNQLAT = """
tracepoint:sched:sched_wakeup, tracepoint:sched:sched_wakeup_new { @since[args->pid] = nsecs; }
tracepoint:sched:sched_switch {
  if (args->prev_state == 0) { @since[args->prev_pid] = nsecs; }
  $since = @since[args->next_pid];
  if ($since) { @us = hist((nsecs - $since) / 1000); delete(@since[args->next_pid]); }
}
END { clear(@since); }
"""

# Longer than anything that is measured beside it. Whoever looks on is told to end.
UNTIL_TOLD_S = 3600
# A tracer that has not begun by then does not begin.
PATIENCE_S = 60
# Nobody attaches anything more once nothing has changed for so long.
SETTLED_S = 1.0


def in_memory():
    """Where files can be written that no disk sees, if there is such a place."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@dataclass
class Onlooker:
    """A program that looks on while something else is measured."""

    command: list
    # Whether it holds events of the kernel once it has begun.
    traces: bool = True


class Looking:
    """Within it, an onlooker looks on, with all that it attaches. None: nobody does."""

    def __init__(self, onlooker, folder):
        self.onlooker, self.complaints = onlooker, Path(folder, "onlooker")
        self.process = None

    def __enter__(self):
        if self.onlooker is None:
            return
        with open(self.complaints, "wb") as out:
            self.process = subprocess.Popen(
                self.onlooker.command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        try:
            self.wait_until_begun()
        except BaseException:
            self.kill()
            raise

    def wait_until_begun(self):
        end = time.monotonic() + PATIENCE_S
        seen, since = None, time.monotonic()
        while time.monotonic() < end:
            self.must_run()
            now = state(self.process.pid)
            if now != seen:
                seen, since = now, time.monotonic()
            begun = seen[0] > 0 or not self.onlooker.traces
            if begun and time.monotonic() - since >= SETTLED_S:
                return
            time.sleep(0.05)
        raise SystemExit(f"bench: {' '.join(self.onlooker.command)}: has not begun after {PATIENCE_S} s")

    def must_run(self):
        if self.process.poll() is not None:
            said = self.complaints.read_text(errors="replace")[-2000:]
            raise SystemExit(f"bench: {' '.join(self.onlooker.command)}: ended too early\n{said}")

    def __exit__(self, kind, _error, _trace):
        if self.onlooker is None:
            return
        try:
            if kind is None:
                self.must_run()
            os.killpg(self.process.pid, signal.SIGINT)
            self.process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            say(f"{self.onlooker.command[0]} does not end when told to: killed")
        finally:
            self.kill()

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def state(pid):
    """How many events and programs of the kernel a process holds, and how many threads it has."""
    held = 0
    for place in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            target = os.readlink(place)
        except OSError:
            continue
        held += figures.is_tracing_handle(target)
    try:
        threads = len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        threads = 0
    return held, threads


def onlookers(binary, folder, sleeper):
    """Those who look on, by name; the first one is nobody. They write into `folder`."""
    run, data = str(Path(folder, "run")), str(Path(folder, "perf.data"))
    forever = ["--duration", f"{UNTIL_TOLD_S}s", "--out", run]
    probes = ["--interval", "1ms", *forever]
    nothing = [sys.executable, str(Path(__file__).with_name("nothing.py"))]
    return {
        "nothing": None,
        FOLLOWING: Onlooker([binary, "explain", "--pid", str(sleeper), *forever]),
        CALLS: Onlooker([*nothing, *EACH_SWITCH]),
        SELDOM: Onlooker([binary, "explain", "--interval", "100ms", *forever]),
        CALLS_FOR_PROBES: Onlooker([*nothing, *EACH_SWITCH_FOR_PROBES]),
        "`explain`, probes at 1 ms": Onlooker([binary, "explain", *probes]),
        "`measure` at 1 ms": Onlooker([binary, "measure", *probes], traces=False),
        "bpftrace, runqlat": Onlooker(["bpftrace", "-e", RUNQLAT]),
        "`perf sched record`": Onlooker(["perf", "sched", "record", "-o", data, "--", "sleep", str(UNTIL_TOLD_S)]),
    }


# What hardly wakes up by itself, so that what every switch runs through is what it costs: a follower
# of others' threads, and probes.
FOLLOWING = "`explain --pid` of a sleeper"
SELDOM = "`explain`, probes at 100 ms"
# Programs that do nothing where these have theirs that every switch runs through.
CALLS = "programs that do nothing"
CALLS_FOR_PROBES = "programs that do nothing, where probes need them"
EACH_SWITCH = ["sched_waking", "sched_wakeup", "sched_entry_tp", "sched_switch"]
EACH_SWITCH_FOR_PROBES = ["sched_entry_tp", "sched_switch"]

# What of another's loss ours may be; and of ours, percent.
AIMS = {CALLS: 1.1, CALLS_FOR_PROBES: 1.1, "bpftrace, runqlat": 1 / 3, "`perf sched record`": 1 / 10}
MOST_LOST = 6
# Whose loss is ours, in comparison with each of these.
OURS = {**{name: FOLLOWING for name in AIMS}, CALLS_FOR_PROBES: SELDOM}


def pipe_loops(plan):
    return 200_000 if plan.quick else 1_000_000


def pipe(plan):
    """Seconds of a benchmark that switches between two processes, about a microsecond each."""
    loops = str(pipe_loops(plan))
    command = ["taskset", "-c", str(plan.cpu), "perf", "bench", "-f", "simple", "sched", "pipe", "-l", loops]
    return float(execute(command, 600).output.split()[-1]), " ".join(command)


def hackbench(plan):
    """Seconds of one that sends between many processes, on every CPU."""
    command = ["hackbench", "-g", "4", "-l", "500" if plan.quick else "4000"]
    return figures.hackbench_seconds(execute(command, 600).output), " ".join(command)


def throughput(plan, binary):
    """What is lost of two benchmarks while somebody looks on."""
    parts = ["### Throughput lost"]
    for benchmark in (pipe, hackbench):
        said = []

        def once(name, benchmark=benchmark, said=said):
            with tempfile.TemporaryDirectory(prefix="wakescope-bench-", dir=in_memory()) as folder:
                asleep = subprocess.Popen(["sleep", str(UNTIL_TOLD_S)], stdin=subprocess.DEVNULL)
                try:
                    with Looking(onlookers(binary, folder, asleep.pid)[name], folder):
                        seconds, command = benchmark(plan)
                finally:
                    asleep.kill()
                    asleep.wait()
            said.append(command)
            return seconds

        names = list(onlookers(binary, ".", 0))
        seconds = rounds_of(plan.rounds, {name: lambda name=name: once(name) for name in names})
        head = f"`{said[0]}`; seconds, and the share of throughput that is lost against nobody looking on in the same round.\n\n"
        parts.append(head + losses(seconds, with_aims=benchmark is pipe))
    return "\n\n".join(parts)


def losses(seconds, with_aims):
    """The table of losses, with what ours is of the others'."""
    lost = {name: figures.losses(seconds["nothing"], of) for name, of in seconds.items() if name != "nothing"}
    rows = [["nothing", spread(seconds["nothing"]), "", "", ""]]
    for name, of in lost.items():
        share = figures.shares(lost[OURS[name]], of) if name in OURS else []
        aim = ""
        if with_aims and name in (FOLLOWING, SELDOM):
            aim = f"{MOST_LOST} %, 3 % wanted: {met(of, MOST_LOST)}"
        elif with_aims and name in AIMS:
            aim = f"{figures.significant(AIMS[name])}: {met(share, AIMS[name])}"
        rows.append([name, spread(seconds[name]), spread(of), spread(share) if share else "", aim])
    return figures.table(["", "s", "lost, %", "`explain` loses × of it", "at most"], rows)


def met(values, limit):
    """Whether the median keeps to a limit, in words."""
    if not values:
        return "not known"
    return "met" if statistics.median(values) <= limit else "**missed**"


def programs(plan, binary):
    """What the programs take that every switch of the pipe runs through."""

    def once(name):
        with tempfile.TemporaryDirectory(prefix="wakescope-bench-", dir=in_memory()) as folder:
            asleep = subprocess.Popen(["sleep", str(UNTIL_TOLD_S)], stdin=subprocess.DEVNULL)
            try:
                looking = Looking(onlookers(binary, folder, asleep.pid)[name], folder)
                with accounts(), looking:
                    before = accounts_of(looking.process.pid)
                    pipe(plan)
                    after = accounts_of(looking.process.pid)
            finally:
                asleep.kill()
                asleep.wait()
        # The pipe switches twice for each of its loops.
        return ns_per_run(before, after, pipe_loops(plan))

    pairs = {FOLLOWING: CALLS, SELDOM: CALLS_FOR_PROBES}
    names = [name for pair in pairs.items() for name in pair]
    taken = rounds_of(plan.rounds, {name: lambda name=name: once(name) for name in names})
    return "### What each program takes\n\n" + costs(taken, pairs)


# Where the probe is looked at: its interval, µs; the load beside it; and how long that runs alone, so
# that its files are there.
PROBES = [(100, None, "0s"), (1_000, None, "0s"), (500, "file-move", "1s")]


# The last of them hands nothing over, and its watchdog, which expires in half of that, never does.
OWN = ("measure", "explain", "explain --above 10s")


def own_latency(plan, binary):
    """Minimum and median of the probe, with and without an explanation."""
    seconds = 0.5 if plan.quick else 6
    parts = ["### The probe, explained and not\n\nThe same CPU, alternating; one value per wakeup, µs. Nothing is subtracted anywhere."]
    for interval_us, load, warmup in PROBES:
        count = round(seconds * 1_000_000 / interval_us)
        how = ["--interval", f"{interval_us}us", "--samples", str(count), "--cpus", str(plan.cpu), "--warmup", warmup]
        how += ["--load", load] if load else []

        def once(command, load=load, how=how):
            # A load runs on any CPU that is allowed: it is to be where the probe is.
            here = ["taskset", "-c", str(plan.cpu)] if load else []
            return floor_of(record_of([*here, binary, *command.split(), *how])[0])

        results = rounds_of(plan.rounds, {name: lambda name=name: once(name) for name in OWN})
        under = f" under the load `{load}` on that CPU" if load else ""
        parts.append(f"{count:,} samples at {interval_us:,} µs{under}:\n\n" + differences(results))
    return "\n\n".join(parts)


def differences(results):
    """The table of minimum and median, and of how far apart these are in each round."""
    rows = [[f"`{name}`", *(spread([run[i] for run in of]) for i in (0, 1)), ""] for name, of in results.items()]
    pairs = list(zip(results["explain"], results["measure"]))
    apart = [[ours[i] - theirs[i] for ours, theirs in pairs] for i in (0, 1)]
    # Either way: whoever explains must see what was there without.
    verdict = met([max(abs(statistics.median(of)) for of in apart)], 2)
    rows.append(["`explain`, less `measure`", *map(spread, apart), f"2 µs: {verdict}"])
    return figures.table(["", "minimum", "median", "at most"], rows)


def floor_of(run):
    woken = run["threads"][0]["woken"]
    return woken["min_ns"] / 1000, figures.median_of_counts(figures.buckets_as_counts(woken["histogram"])) / 1000


def record_of(command):
    """Runs wakescope to its end: its record, and resident memory meanwhile, KiB by second."""
    with tempfile.TemporaryDirectory(prefix="wakescope-bench-") as folder:
        out, complaints = Path(folder, "run"), Path(folder, "said")
        resident = []
        with open(complaints, "wb") as said:
            process = subprocess.Popen([*command, "--out", str(out)], stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            while process.poll() is None:
                kib = figures.resident_kib(read(f"/proc/{process.pid}/status"))
                if kib:
                    resident.append(kib)
                try:
                    process.wait(timeout=1)
                except subprocess.TimeoutExpired:
                    pass
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(timeout=PATIENCE_S)
        if process.returncode != 0:
            text = complaints.read_text(errors="replace")
            raise SystemExit(f"bench: {' '.join(command)}: exit {process.returncode}\n{text[-2000:]}")
        return json.loads((out / "run.json").read_text()), resident


def read(path):
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def keeping_up(plan, binary):
    """Whether records are lost, and memory grows, at 100 µs on every CPU."""
    seconds = 3 if plan.quick else plan.explain_seconds
    command = [binary, "explain", "--interval", "100us", "--duration", f"{seconds}s", "--warmup", "0s"]
    run, resident = record_of(command)
    seen = run["explanation"]
    # Whatever is set up is set up in the first fifth.
    early, late = figures.early_and_late(resident)
    rows = [
        ["wakeups followed", f"{seen['wakeups']:,}", ""],
        ["not followed", f"{seen['not_followed']:,}", ""],
        ["records", f"{seen['records']:,}", ""],
        ["lost records", f"{seen['lost_records']:,}", f"0: {met([seen['lost_records']], 0)}"],
        ["late wakeups, explained", f"{seen['explained']:,} of {seen['late']:,}", ""],
        ["resident after a fifth of the time, KiB", f"{early:,}", ""],
        ["at the end, KiB", f"{late:,}", "the same, but for the text of the record"],
        ["verdict", run["validity"]["verdict"], ""],
    ]
    head = f"### Keeping up\n\n`explain` at 100 µs on {len(run['plan']['cpus'])} CPUs for {seconds:,} s.\n\n"
    return head + figures.table(["", "", "at most"], rows)


PARTS = {
    "explain-throughput": throughput,
    "explain-programs": programs,
    "explain-probe": own_latency,
    "explain-keeping-up": keeping_up,
}


def results_of(names, plan, binary, of=PARTS):
    """The results of these parts, as Markdown."""
    binary = str(Path(binary).absolute())
    missing = [name for name in ("perf", "bpftrace", "hackbench", "taskset") if not shutil.which(name)]
    if missing:
        raise SystemExit(f"bench: not installed: {', '.join(missing)}\n  → scripts/setup bench")
    parts = []
    for name in names:
        say(name)
        parts.append(of[name](plan, binary))
    return parts
