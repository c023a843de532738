"""What wakeups by another thread cost to measure, beside the programs of rt-tests that measure the same."""

import json
import tempfile
from pathlib import Path

import figures
from figures import spread
from lab import rounds_of
from running import execute, say

PRIORITY = 90
INTERVAL_US = 200
# What is done per second then falls out of a comparison of so much longer intervals.
LONGER = 10
# svsematest uses semaphores under a name that all its instances share: another one may end it, with success and
# no report.
TRIES = 5

# Each stimulus, and the program that it replaces.
PAIRS = {
    "mqueue": "pmqtest",
    "semaphore": "ptsematest",
    "sysv-semaphore": "svsematest",
    "kill": "sigwaittest",
}


class Pair:
    """A stimulus and its peer, with both threads of either on one CPU and at one priority."""

    def __init__(self, stimulus, program, cpu, binary):
        self.stimulus, self.program, self.cpu, self.binary = stimulus, program, cpu, binary

    def ours(self, samples, interval_us, folder):
        length = ["--interval", f"{interval_us}us", "--samples", str(samples), "--warmup", "0s"]
        how = ["--cpus", str(self.cpu), "--policy", "fifo", "--priority", str(PRIORITY), "--out", str(folder / "run")]
        return [self.binary, "measure", "--stimulus", self.stimulus, *length, *how]

    def theirs(self, samples, interval_us, folder):
        # svsematest has no -q.
        quiet = [] if self.program == "svsematest" else ["-q"]
        where = ["-a", str(self.cpu), "-t", "1", "-p", str(PRIORITY)]
        length = ["-i", str(interval_us), "-l", str(samples)]
        return [self.program, *quiet, *where, *length, f"--json={folder / 'peer.json'}"]

    def run(self, is_ours, samples, interval_us, under=()):
        """Runs one of both. What it cost, what it saw (samples, minimum and mean in µs), and instructions if counted."""
        for _ in range(TRIES):
            try:
                return self.run_once(is_ours, samples, interval_us, under)
            except FileNotFoundError as error:
                say(f"{self.program} left no report: {error.filename}; again")
        raise SystemExit(f"bench: {self.program} left no report in {TRIES} runs")

    def run_once(self, is_ours, samples, interval_us, under):
        patience_s = 60 + 10 * samples * interval_us / 1e6
        with tempfile.TemporaryDirectory(prefix="wakescope-bench-") as folder:
            folder = Path(folder)
            command = (self.ours if is_ours else self.theirs)(samples, interval_us, folder)
            result = execute([*(word.format(folder=folder) for word in under), *command], patience_s)
            if is_ours:
                seen = figures.woken_us(json.loads((folder / "run" / "run.json").read_text()))
            else:
                seen = figures.rt_tests_us(json.loads((folder / "peer.json").read_text()))
            counted = [figures.callgrind_totals(file.read_text(errors="replace"))[0] for file in folder.glob("callgrind*")]
        return result, seen, sum(counted)

    def timed(self, is_ours, samples):
        """CPU time per sample, minimum and mean, in µs."""
        result, (count, low, mean), _ = self.run(is_ours, samples, INTERVAL_US)
        return result.cpu_s / count * 1e6, low, mean

    def instructions(self, is_ours, few, low, high):
        """User instructions per sample of all threads: without what is done per second, and with it."""
        tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file={folder}/callgrind"]

        def point(samples, interval_us):
            _, (count, _low, _mean), total = self.run(is_ours, samples, interval_us, tool)
            return count, total

        end = point(high, INTERVAL_US)
        same_time = point(few, LONGER * INTERVAL_US)
        return figures.slope(same_time, end), figures.slope(point(low, INTERVAL_US), end)


def rows_of(pair, plan, samples, counts):
    """The rows of both: what they cost, and what they saw."""
    ours, theirs = f"--stimulus {pair.stimulus}", pair.program
    runs = {theirs: lambda: pair.timed(False, samples), ours: lambda: pair.timed(True, samples)}
    rounds = {name: list(zip(*of)) for name, of in rounds_of(plan.rounds, runs).items()}
    say(f"instructions: {pair.stimulus} and {pair.program}")
    counted = {name: pair.instructions(name == ours, *counts) for name in runs}
    costs, latencies = [], []
    for name, (cpu, low, mean) in rounds.items():
        timeless, all_of_it = counted[name]
        beside = {"cpu": "", "timeless": "", "all": "", "low": "", "mean": ""}
        if name == ours:
            beside = {
                "cpu": spread(figures.ratios(cpu, rounds[theirs][0])),
                "timeless": f"{timeless / counted[theirs][0]:.2f}",
                "all": f"{all_of_it / counted[theirs][1]:.2f}",
                "low": spread(figures.differences(low, rounds[theirs][1])),
                "mean": spread(figures.differences(mean, rounds[theirs][2])),
            }
        costs.append(
            [name, spread(cpu), beside["cpu"], f"{timeless:,.0f}", beside["timeless"], f"{all_of_it:,.0f}", beside["all"]]
        )
        latencies.append([name, spread(low), beside["low"], spread(mean), beside["mean"]])
    return costs, latencies


def wakers(plan, binary):
    """Wakeups by another thread, beside four programs of rt-tests."""
    samples = plan.samples // 4
    low, high = (2_000, 6_000) if plan.quick else (4_000, 20_000)
    few = high // LONGER
    costs, latencies = [], []
    for stimulus, program in PAIRS.items():
        of_costs, of_latencies = rows_of(Pair(stimulus, program, plan.cpu, binary), plan, samples, (few, low, high))
        costs += of_costs
        latencies += of_latencies
    head = (
        f"### Cost of a wakeup by another thread\n\n{samples:,} samples at {INTERVAL_US} µs, both threads on one CPU, "
        "alternating. User and system time of the whole process, both threads, start and end included. User "
        f"instructions of all threads by callgrind, once: as slopes between {few:,} samples at "
        f"{LONGER * INTERVAL_US / 1000:g} ms and {high:,} at {INTERVAL_US} µs, which take the same time; and between "
        f"{low:,} and {high:,} at {INTERVAL_US} µs, with what is done per second.\n\n"
    )
    titles = ["", "CPU µs per sample", "× of it", "instructions in the same time", "× of it", "and per second", "× of it"]
    seen = (
        "\n\n### Agreement with programs of rt-tests\n\nThe same runs, µs. These programs read a clock of whole µs "
        "before and after, so each of their samples, and their minimum, may be up to 1 µs off either way; the mean "
        "evens that out. They tell no median, so means are compared. wakescope's minimum and mean are of ns.\n\n"
    )
    return (
        head
        + figures.table(titles, costs)
        + seen
        + figures.table(["", "minimum", "difference", "mean", "difference"], latencies)
    )
