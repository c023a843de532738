"""What the lab costs: its cells beside bare QEMU that runs the same guests, its boots beside those
of QEMU's default machine, its probe beside cyclictest in the same guest."""

import contextlib
import itertools
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import figures
import guests
from figures import spread
from running import execute, say

# The cell that is run again and again, and the least that a cell can be.
CELL = ["--kernel", "6.1-cloud", "--preempt", "full", "--load", "find", "--interval", "500us"]
BOOT = ["--load", "idle", "--seeds", "1", "--samples", "100", "--interval", "1ms", "--warmup", "0s"]
KERNELS = [("6.1-cloud", "full"), ("6.1-rt", "rt"), ("6.12-cloud", "full"), ("7.2-cloud", "full")]
FLOORS = [("6.1-cloud", "full"), ("6.1-rt", "rt"), ("7.2-cloud", "full")]

# No boot takes that long, on any machine that one would do this on.
PATIENCE_S = 600


def users_folder():
    """Where wakescope keeps what the lab needs."""
    if named := os.environ.get("WAKESCOPE_CACHE"):
        return Path(named).absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches, "wakescope").absolute()


class Lab:
    """A lab with cells and guests of its own; kernels and the emulator are those of the user."""

    def __init__(self, binary, folder):
        self.binary, self.folder = str(Path(binary).absolute()), Path(folder)
        # What figures rest on, by name: the emulator and kernels.
        self.seen = {}
        self.orders = itertools.count(1)
        self.share("kernels", "qemu", "apt", "locks", "headers", "modules", "images")

    def share(self, *names):
        """Takes what the user has of these, but for those that the folder has itself."""
        for name in names:
            shared = users_folder() / name
            shared.mkdir(parents=True, exist_ok=True)
            link = self.folder / name
            if not os.path.lexists(link):
                link.symlink_to(shared)

    def command(self, *asked):
        return [self.binary, "lab", "run", *asked]

    def environment(self):
        return {**os.environ, "WAKESCOPE_CACHE": str(self.folder)}

    def run(self, *asked, patience_s=PATIENCE_S):
        """Runs a lab. What it took, and its record."""
        complaints = self.folder / "complaints"
        result = execute(self.command(*asked, "--json"), patience_s, self.environment(), complaints)
        record = json.loads(result.output)
        self.seen["emulator"] = record["settings"]["emulator"]
        for cell in record["cells"]:
            if cell["status"] != "ok":
                raise SystemExit(f"bench: {cell['kernel']} {cell['asked']}: {cell['status']}: {cell['reason']}")
        return result, record

    def note(self, record):
        """Notes what the figures of a record rest on."""
        self.seen["emulator"] = record["settings"]["emulator"]
        self.seen.update((kernel["release"], kernel["version"]) for kernel in record["kernels"])

    def basis(self):
        """The same as one line."""
        return "; ".join(version if name == "emulator" else f"{name} {version}" for name, version in sorted(self.seen.items()))

    def forget_all(self):
        """Forgets all cells, those that failed, too."""
        shutil.rmtree(self.folder / "cells", ignore_errors=True)

    def forget(self):
        """Forgets the cells that were measured; not those in which kernels told what they run."""
        for record in (self.folder / "cells").glob("*/run.json"):
            shutil.rmtree(record.parent)

    @contextlib.contextmanager
    def booting(self):
        """Within it, each guest boots: a saved machine that is empty is taken for none."""
        states, aside = self.folder / "states", self.folder / "states-aside"
        states.rename(aside)
        states.mkdir()
        try:
            for state in aside.iterdir():
                (states / state.name).touch()
            yield
        finally:
            shutil.rmtree(states)
            aside.rename(states)

    def emulator(self, *asked, samples=None):
        """The command of the emulator that boots the guest that measures what is asked, with so many samples if
        that is said."""
        few = ["--samples", "100"] if samples else []
        _result, record = self.run(*asked, *few)
        self.note(record)
        file = self.folder / f"order-{next(self.orders)}"
        return guests.command_of_cell(self.folder, record["cells"][0]["run"], file, samples)


@dataclass
class Booted:
    """What a guest took, and what came out of it."""

    cpu_s: float
    wall_s: float
    results: bytes

    def seconds(self):
        """When the program began and when the first sample was due, virtual seconds, as text."""
        files = guests.unpacked(self.results)
        moments = guests.moments(*(json.loads(files[name]) for name in ("guest.json", "run.json")))
        return [f"{moment:.3f}" for moment in moments]


def boot(command):
    """Runs the emulator alone, with the environment that the lab gives it: none."""
    with tempfile.TemporaryDirectory(prefix="wakescope-bench-") as folder:
        result = execute(guests.into(command, folder), PATIENCE_S, {})
        return Booted(result.cpu_s, result.wall_s, Path(folder, "results").read_bytes())


def at_once(tasks):
    """Seconds that pass until all of `tasks`, which run side by side, are done."""
    failures = []

    def attempt(task):
        try:
            task()
        except SystemExit as failure:
            failures.append(failure)

    threads = [threading.Thread(target=attempt, args=[task]) for task in tasks]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return time.monotonic() - began


def asked_cell(plan, seeds):
    return [*CELL, "--samples", "200" if plan.quick else "600", "--seeds", seeds]


def met(values, limit, above=False):
    """Whether the median keeps to a limit, in words."""
    middle = statistics.median(values)
    return "met" if (middle >= limit if above else middle <= limit) else "**missed**"


def cost(plan, lab):
    """CPU time of a cell, beside the emulator alone with the same guest."""
    asked = asked_cell(plan, "1,")
    alone = lab.emulator(*asked)

    def resumed():
        lab.forget()
        return lab.run(*asked)[0].cpu_s

    def booted():
        with lab.booting():
            return resumed()

    runs = {"`lab run`, booted": booted, "`lab run`, resumed": resumed, "QEMU alone, booted": lambda: boot(alone).cpu_s}
    results = rounds_of(plan.rounds, runs)
    rows = []
    for name, of in results.items():
        ratios = figures.ratios(of, results["QEMU alone, booted"])
        aim = "" if name.startswith("QEMU") else f"1.05: {met(ratios, 1.05)}"
        rows.append([name, spread(of), spread(ratios) if aim else "", aim])
    head = (
        f"### CPU time of a cell\n\nUser and system time of all processes, host seconds; one guest: `{' '.join(asked)}`. "
        "QEMU alone has the very arguments that `lab run` gave it. A lab boots the first guest of a kernel and model, and resumes the others.\n\n"
    )
    return head + figures.table(["", "s", "ratio", "at most"], rows)


def pair(plan, lab):
    """Two cells at once, beside one after the other."""
    head = "### Two cells at once\n\n"
    if len(plan.cpus) < 2:
        return head + "Not measured: this process may use one CPU only."
    asked = asked_cell(plan, "1,2")
    commands = [lab.emulator(*asked_cell(plan, seed)) for seed in ("1,", "2,")]

    def by_lab(jobs):
        lab.forget()
        return lab.run(*asked, "--jobs", jobs)[0].wall_s

    boots = [lambda command=command: boot(command) for command in commands]
    runs = {
        "one by one": lambda: by_lab("1"),
        "at once": lambda: by_lab("2"),
        "QEMU one by one": lambda: sum(boot(command).wall_s for command in commands),
        "QEMU at once": lambda: at_once(boots),
    }
    # Each of them is four guests' work: three rounds must do.
    results = rounds_of(min(plan.rounds, 3), runs)
    rows = []
    for name, one, both in [("`lab run`, `--jobs` 1 and 2", "one by one", "at once"), ("QEMU alone", "QEMU one by one", "QEMU at once")]:
        times = figures.ratios(results[one], results[both])
        aim = f"1.8: {met(times, 1.8, above=True)}" if one == "one by one" else ""
        rows.append([name, spread(results[one]), spread(results[both]), spread(times), aim])
    head += (
        "Seconds that pass for two cells. What QEMU alone gains by a second CPU is what this machine has to give: other work on it "
        f"and hyperthreads take their share (load average {os.getloadavg()[0]:.1f}).\n\n"
    )
    return head + figures.table(["", "one by one, s", "at once, s", "times as fast", "at least"], rows)


def cached(plan, lab):
    """The whole command, where all cells are there already; and where the guest's image is not."""
    asked = lab.command(*asked_cell(plan, "1,"))
    lab.run(*asked_cell(plan, "1,"))

    def once():
        began = time.monotonic()
        done = subprocess.run(asked, env=lab.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S)
        passed = (time.monotonic() - began) * 1e3
        if done.returncode != 0:
            raise SystemExit(f"bench: {done.stderr.decode(errors='replace')}")
        return passed

    def without_image():
        shutil.rmtree(lab.folder / "guests")
        (lab.folder / "sums.json").unlink(missing_ok=True)
        return once()

    once()
    warm = [once() for _ in range(20 if plan.quick else 100)]
    cold = [without_image() for _ in range(3 if plan.quick else 10)]
    images = list((lab.folder / "guests").glob("*.cpio"))
    sizes = [image.stat().st_size / 2**20 for image in images]
    rows = [
        ["a cell that is there, ms", spread(warm), f"50: {met(warm, 50)}"],
        ["and the guest's image is not, nor a checksum, ms", spread(cold), f"1,000: {met(cold, 1000)}"],
        ["the guest's image, MiB", spread(sizes), f"4: {met(sizes, 4)}"],
    ]
    head = f"### What is there already\n\nThe whole command, from its start to its end; {len(warm)} and {len(cold)} runs.\n\n"
    return head + figures.table(["", "", "at most"], rows)


def boots(plan, lab):
    """From the start to the first sample, beside the emulator's default machine."""
    rows, steps = [], []
    for kernel, model in KERNELS[:1] if plan.quick else KERNELS:
        say(f"boot: {kernel}")
        path = guests.taken_out(lab.emulator("--kernel", kernel, "--preempt", model, *BOOT))
        ends = {"`pc`": path[0][1], "the lab's": path[-1][1]}
        # Virtual seconds do not vary, and there are many boots: two rounds must do.
        runs = {name: lambda command=command: boot(command) for name, command in ends.items()}
        results = rounds_of(min(plan.rounds, 2), runs)
        cpu_s = {name: [booted.cpu_s for booted in of] for name, of in results.items()}
        for name, of in results.items():
            ratio = "" if name == "`pc`" else spread(figures.ratios(cpu_s[name], cpu_s["`pc`"]))
            rows.append([kernel, name, *of[0].seconds(), spread(cpu_s[name]), ratio])
        if not steps:
            between = [boot(command) for _name, command in path[1:-1]]
            steps = list(zip((name for name, _command in path), [results["`pc`"][0], *between, results["the lab's"][0]]))
    head = (
        "### Boot to first sample\n\nVirtual seconds of the kernel's clock until the guest's program begins, and until its first "
        "sample is due; CPU seconds of the host for the whole guest, which takes 100 samples of an idle machine. `pc` is QEMU's "
        "default machine with its devices, and a kernel that is told nothing but its console and model.\n\n"
    )
    units = ["program, virtual s", "sample, virtual s", "host, CPU s"]
    return (
        head
        + figures.table(["kernel", "machine", *units, "× of `pc`"], rows)
        + f"\n\nWhat was taken out of the boot of {KERNELS[0][0]}, one after the other:\n\n"
        + figures.table(["taken out", *units], [[name, *of.seconds(), f"{of.cpu_s:.2f}"] for name, of in steps])
    )


def floor(plan, lab):
    """The least and the median lateness in an idle guest, beside cyclictest in the same guest."""
    samples = 500 if plan.quick else 4000
    kernels, seeds = (FLOORS[:1], [1]) if plan.quick else (FLOORS, [1, 2, 3])
    asked = ["--load", "idle", "--interval", "500us", "--samples", str(samples), "--priority", "90"]
    guest = lab.folder / "cyclictest.cpio"
    histogram = ["-N", "-h", "40000"]
    guest.write_bytes(guests.with_cyclictest(["-m", "-q", "-p", "90", "-i", "500", "-l", str(samples), *histogram]))
    rows = []
    for kernel, model in kernels:
        say(f"floor: {kernel}")
        of_kernel = ["--kernel", kernel, "--preempt", model, *asked]
        command = lab.emulator(*of_kernel, "--seeds", "1,")
        _result, record = lab.run(*of_kernel, "--seeds", ",".join(map(str, seeds)) + ",")
        ours = [floor_of_run(cell["run"]) for cell in record["cells"]]
        # No two phases are alike: 137 µs shift the grid against the kernel's tick.
        theirs = [floor_of_cyclictest(command, guest, 137 * seed) for seed in seeds]
        for rank, name in enumerate(("minimum", "1 % are not above", "median")):
            pair = [[of[rank] for of in tool] for tool in (ours, theirs)]
            differences = [a - b for a, b in zip(*pair)]
            aim = "" if rank == 1 else met(differences, 0)
            rows.append([kernel, name, *map(spread, pair), spread(differences), aim])
    head = (
        f"### The probe's floor\n\nThe same machine, kernel and priority, idle; {samples:,} samples at 500 µs, one value per wakeup; "
        f"virtual ns, over {len(seeds)} phases. The aim is not to be above cyclictest.\n\n"
    )
    return head + figures.table(["kernel", "", "wakescope", "cyclictest", "difference", "aim"], rows)


def floor_of(least, counts, beyond=0):
    """The least, the 1st percentile and the median."""
    return least, figures.quantile_of_counts(counts, 0.01, beyond), figures.median_of_counts(counts, beyond)


def floor_of_run(folder):
    woken = json.loads(Path(folder, "run.json").read_text())["threads"][0]["woken"]
    # A bucket is 4 ns wide at the most: what is not known counts against us.
    return floor_of(woken["min_ns"], figures.upper_edges_as_counts(woken["histogram"]))


def floor_of_cyclictest(command, guest, shift_us):
    kernel, _process = guests.parameters(command)
    command = guests.with_parameters(guests.with_value(command, "-initrd", str(guest)), kernel, [str(shift_us)])
    said = boot(command).results.decode(errors="replace")
    counts, beyond = figures.cyclictest_histogram(said)
    if not counts:
        raise SystemExit(f"bench: cyclictest found nothing in its guest:\n{said[:2000]}")
    return floor_of(figures.cyclictest_minimum(said), counts, beyond)


def rounds_of(rounds, runs):
    """What `runs` give, by name, a list over rounds. The order rotates: nobody is always first."""
    results = {name: [] for name in runs}
    names = list(runs)
    for number in range(rounds):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            say(f"round {number + 1}/{rounds}: {name}")
            results[name].append(runs[name]())
    return results


PARTS = {"lab-cost": cost, "lab-pair": pair, "lab-cached": cached, "lab-boot": boots, "lab-floor": floor}


def results_of(names, plan, binary, of=PARTS):
    """The results of these parts of a page, as Markdown."""
    with tempfile.TemporaryDirectory(prefix="wakescope-bench-lab-") as folder:
        lab = Lab(binary, folder)
        parts = []
        for name in names:
            say(name)
            parts.append(of[name](plan, lab))
        seen = figures.table(["in the lab", ""], sorted(lab.seen.items(), reverse=True)).replace("---:", "---")
        return [seen, *parts]
