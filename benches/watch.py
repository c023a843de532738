"""What watching a machine costs: the throughput that it loses to `wakescope watch`, beside an empty program in
the same place and the usual histogram of run queue latency; and what the command itself takes."""

import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import explain
import figures
import programs
from explain import PATIENCE_S, RUNQLAT, UNTIL_TOLD_S, Looking, Onlooker, hackbench, in_memory, met, pipe, read
from figures import spread
from lab import rounds_of
from running import say

WATCH = "`wakescope watch`"
# Its program that runs at each switch.
AT_SWITCH = "watch_switch"
EMPTY = "an empty program at `sched_switch`"
RUNQLAT_OF_ALL = "bpftrace, runqlat"

# What of another's loss ours may be.
AIMS = {EMPTY: 1.25, RUNQLAT_OF_ALL: 0.25}

# Of a CPU, percent: the command alone, and with its program where the machine switches so often.
MOST_AGENT, MOST_ALL, SWITCHES_PER_S = 0.1, 0.2, 10_000
# Of the command itself, and of the kernel for it, MiB.
MOST_OWN, MOST_MAPS = 16, 32


def onlookers(binary, folder):
    """Those who look on, by name; the first one is nobody."""
    return {
        "nothing": None,
        EMPTY: Onlooker([sys.executable, str(Path(__file__).with_name("nothing.py")), "sched_switch"]),
        WATCH: Onlooker(watching(binary, folder)),
        RUNQLAT_OF_ALL: Onlooker(["bpftrace", "-e", RUNQLAT]),
    }


# What the command has by itself, and what contrib/wakescope-watch.service gives it.
INTERVALS = ["2s", "10s"]


def watching(binary, folder, interval=INTERVALS[0]):
    """The command as a service has it: it stores, and says a line for each interval."""
    lasting = ["--duration", f"{UNTIL_TOLD_S}s", "--interval", interval]
    return [binary, "watch", *lasting, "--out", str(Path(folder, "windows"))]


@contextlib.contextmanager
def sleepers(count, interval_ms):
    """Within it, so many tasks with names of their own wake up so often."""
    program = str(Path(__file__).with_name("sleepers.py"))
    process = subprocess.Popen([sys.executable, program, str(count), str(interval_ms)], stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE_S
        while len(list(Path(f"/proc/{process.pid}/task").glob("*"))) <= count:
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"bench: {program}: has not begun")
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=PATIENCE_S)


def await_first_interval(looking):
    """Until it has said a line: in its first interval the kernel measures its program, which takes longer."""
    end = time.monotonic() + PATIENCE_S
    while "\n" not in looking.complaints.read_text(errors="replace"):
        looking.must_run()
        if time.monotonic() > end:
            raise SystemExit("bench: wakescope watch: has said nothing")
        time.sleep(0.05)


def throughput(plan, binary, benchmark):
    """What is lost of a benchmark while somebody looks on, beside 200 series."""
    said = []

    def once(name):
        with tempfile.TemporaryDirectory(prefix="wakescope-bench-", dir=in_memory()) as folder:
            looking = Looking(onlookers(binary, folder)[name], folder)
            with sleepers(200, 1000), looking:
                if name == WATCH:
                    await_first_interval(looking)
                seconds, command = benchmark(plan)
        said.append(command)
        return seconds

    names = list(onlookers(binary, "."))
    seconds = rounds_of(plan.rounds, {name: lambda name=name: once(name) for name in names})
    head = f"`{said[0]}`, beside 200 tasks with names of their own; seconds, and the share of throughput that is lost against nobody looking on in the same round.\n\n"
    return "### Throughput lost to a watch\n\n" + head + losses(seconds, with_aims=benchmark is pipe)


def losses(seconds, with_aims):
    """The table of losses, with what ours is of the others'."""
    lost = {name: figures.losses(seconds["nothing"], of) for name, of in seconds.items() if name != "nothing"}
    rows = [["nothing", spread(seconds["nothing"]), "", "", ""]]
    for name, of in lost.items():
        share = figures.shares(lost[WATCH], of) if name in AIMS and with_aims else []
        aim = f"{figures.significant(AIMS[name])}: {met(share, AIMS[name])}" if name in AIMS and with_aims else ""
        rows.append([name, spread(seconds[name]), spread(of), spread(share) if share else "", aim])
    return figures.table(["", "s", "lost, %", "`watch` loses × of it", "at most"], rows)


def agent(plan, binary):
    """What the command and its program take, beside 1,000 series."""
    seconds = 6 if plan.quick else 60

    def once(interval):
        with tempfile.TemporaryDirectory(prefix="wakescope-bench-", dir=in_memory()) as folder:
            looking = Looking(Onlooker(watching(binary, folder, interval)), folder)
            with sleepers(1_000, 200), looking:
                await_first_interval(looking)
                pid = looking.process.pid
                begin, before = time.monotonic(), (run_ns_of(pid), switches())
                time.sleep(seconds)
                passed, after = time.monotonic() - begin, (run_ns_of(pid), switches())
                own = own_mib(read(f"/proc/{pid}/status"))
                maps = programs.bytes_of_maps(pid) / 2**20
                with programs.accounts():
                    accounts = [programs.accounts_of(pid)]
                    time.sleep(2)
                    accounts.append(programs.accounts_of(pid))
            switch_ns = ns_per_switch(*accounts)
            return {**taken(before, after, passed), **own, "switch_ns": switch_ns, "maps": maps}

    runs = rounds_of(plan.rounds, {interval: lambda interval=interval: once(interval) for interval in INTERVALS})
    head = f"### What the command itself takes\n\n`watch --out` for {seconds} s beside 1,000 tasks that each wake up five times a second. Start and end do not count."
    tables = [f"With `--interval {interval}`:\n\n{costs(runs[interval])}" for interval in INTERVALS]
    return "\n\n".join([head, *tables])


def ns_per_switch(before, after):
    """How long the programs of a watch ran for each switch, ns, by their accounts before and after. The program that
    sees tasks moved counts as well."""
    of = lambda number: before.get(number, ("", 0, 0))
    ns = sum(now[1] - of(number)[1] for number, now in after.items())
    return ns / sum(now[2] - of(number)[2] for number, now in after.items() if now[0] == AT_SWITCH)


def run_ns_of(pid):
    """How long all threads of a process have run."""
    return sum(int(place.read_text().split()[0]) for place in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def switches():
    """How often all CPUs have switched."""
    return int(next(line for line in read("/proc/stat").splitlines() if line.startswith("ctxt")).split()[1])


def taken(before, after, passed):
    """Percent of a CPU that the command took, and switches per second, by its run time and the switches of the
    machine before and after."""
    return {"agent": (after[0] - before[0]) / passed / 1e7, "switches": (after[1] - before[1]) / passed}


def own_mib(status):
    """Memory by the text of /proc/PID/status, MiB: all that is resident, and what is the process's own."""
    keys = {"VmRSS": "resident", "RssAnon": "own"}
    lines = (line.split() for line in status.splitlines())
    return {keys[words[0][:-1]]: int(words[1]) / 1024 for words in lines if words and words[0][:-1] in keys}


def costs(runs):
    """The table of these."""
    of = lambda key: [run[key] for run in runs]
    scaled = [run["agent"] + run["switch_ns"] * SWITCHES_PER_S / 1e9 * 100 for run in runs]
    rows = [
        ["switches per second", spread(of("switches")), ""],
        ["its programs, ns of a switch, by the kernel's account", spread(of("switch_ns")), ""],
        ["the command, % of a CPU", spread(of("agent")), f"{MOST_AGENT} %: {met(of('agent'), MOST_AGENT)}"],
        [f"both at {SWITCHES_PER_S:,} switches per second, % of a CPU", spread(scaled), f"{MOST_ALL} %: {met(scaled, MOST_ALL)}"],
        ["resident memory, with what it shares and with mapped rows of the kernel, MiB", spread(of("resident")), ""],
        ["memory of its own, MiB", spread(of("own")), f"{MOST_OWN} MiB: {met(of('own'), MOST_OWN)}"],
        ["the kernel's maps, MiB", spread(of("maps")), f"{MOST_MAPS} MiB: {met(of('maps'), MOST_MAPS)}"],
    ]
    return figures.table(["", "", "at most"], rows)


PARTS = {
    "watch-pipe": lambda plan, binary: throughput(plan, binary, pipe),
    "watch-hackbench": lambda plan, binary: throughput(plan, binary, hackbench),
    "watch-agent": agent,
}


def results_of(names, plan, binary):
    """The results of these parts, as Markdown."""
    return explain.results_of(names, plan, binary, PARTS)
