"""How fast the lab is: what resuming saved machines gains, and how many instructions the emulator does."""

import functools
import statistics
from pathlib import Path

import figures
import guests
from figures import spread
from lab import boot, met, rounds_of
from paused import counter_khz
from running import say

ROOT = Path(__file__).resolve().parent.parent
JOURNAL = ROOT / "crates/lab/plans/linux-journal.toml"

# The plan's own number of seeds.
SEEDS = 10
PATIENCE_S = 3600


def without_comparisons(plan):
    """The text of a plan that compares nothing: with one seed a lab would find that it cannot."""
    return "".join(line for line in plan.splitlines(keepends=True) if not line.startswith("compare"))


def whole(first_s, seeds_s):
    """What a plan of all seeds takes, whose first one took `first_s` with all that kernels need once."""
    return first_s + (SEEDS - 1) * statistics.median(seeds_s)


def saved(plan, lab):
    """The cells of a plan whose guests resume, beside the same that boot."""
    file = lab.folder / "journal.toml"
    file.write_text(without_comparisons(JOURNAL.read_text()))
    asked = ["--plan", str(file), *(["--samples", "200"] if plan.quick else [])]

    def cells(seed):
        result, record = lab.run(*asked, "--seeds", f"{seed},", patience_s=PATIENCE_S)
        lab.note(record)
        return result.cpu_s

    def again(seed):
        lab.forget()
        return cells(seed)

    def booted(measure, seed):
        with lab.booting():
            return measure(seed)

    say("the first seed, whose guests resume")
    first = {"resumed": cells(1)}
    lab.forget_all()
    say("the first seed, whose guests boot")
    first["booted"] = booted(cells, 1)
    # Each seed is a sample, and each is run both ways.
    seeds = iter(range(2, 2 + plan.rounds))
    results = {"resumed": [], "booted": []}
    for number, seed in enumerate(seeds):
        ways = [("resumed", again), ("booted", lambda seed: booted(again, seed))]
        for name, measure in ways if number % 2 else reversed(ways):
            say(f"seed {seed}, {name}")
            results[name].append(measure(seed))
    times = figures.ratios(results["booted"], results["resumed"])
    rows = [
        ["the first seed, and what each kernel needs once", *(f"{first[name]:.1f}" for name in ("booted", "resumed")), f"{first['booted'] / first['resumed']:.2f}", ""],
        [f"each of {len(times)} other seeds", spread(results["booted"]), spread(results["resumed"]), spread(times), ""],
    ]
    all_s = {name: whole(first[name], results[name]) for name in first}
    of_all = [all_s["booted"] / all_s["resumed"]]
    rows.append([f"the plan's {SEEDS} seeds, by these", *(f"{all_s[name]:.0f}" for name in ("booted", "resumed")), f"{of_all[0]:.2f}", f"1.3: {met(of_all, 1.3, above=True)}"])
    head = (
        "### Saved boots\n\nCPU seconds (user and system, all processes) of the cells of `--plan linux-journal`: four models under three loads"
        + (", 200 wakeups each" if plan.quick else "")
        + ". Each kernel and model is checked once; where guests resume, its machine is then saved and proven, too.\n\n"
    )
    return head + figures.table(["", "all boot, s", "they resume, s", "times as fast", "at least"], rows)


# The work of a guest, and how often it is done: seconds of an emulator.
WORK = {
    "computing": ('$b awk "BEGIN { for (i = 0; i < $number; i++) s += i * i }"', 800_000),
    "system calls": ("$b dd if=/dev/zero of=/dev/null bs=1 count=$number 2>/dev/null", 800_000),
    "programs": ("i=0; while [ $i -lt $number ]; do $b true; i=$((i + 1)); done", 1_500),
}


LABS = "as in the lab"


def variants(command):
    """The emulator as the lab starts it, and with something else, by name."""
    accelerated = guests.value(command, "-accel")

    def with_buffer(mib):
        return guests.with_value(command, "-accel", f"{accelerated},tb-size={mib}")

    return {
        LABS: command,
        "nothing is recorded (no `rr`)": guests.without_recording(command),
        "instructions are not counted (no `-icount`)": guests.in_real_time(command, counter_khz()),
        "strings byte by byte (`erms`, `fsrm`)": guests.with_value(command, "-cpu", guests.value(command, "-cpu").replace(",-erms,-fsrm", "")),
        "translations have 32 MiB": with_buffer(32),
        "translations have 2,000 MiB": with_buffer(2000),
    }


def emulated(plan, lab):
    """Instructions that the emulator does in a second, as the lab starts it and otherwise."""
    base = lab.emulator("--kernel", "6.1-cloud", "--preempt", "full", "--load", "idle", "--samples", "100", "--seeds", "1,")
    emulators = variants(base)
    image = lab.folder / "work.cpio"

    def works(work, count, command):
        """Boots a guest that does this work so often."""
        image.write_bytes(guests.with_busybox(work))
        kernel, _process = guests.parameters(command)
        command = guests.with_value(command, "-initrd", str(image))
        return boot(guests.with_parameters(command, kernel, [str(count)]))

    counts = {name: (work, count // 10 if plan.quick else count) for name, (work, count) in {"nothing": (":", 0), **WORK}.items()}
    runs = {(name, of): functools.partial(works, *counts[name], command) for name in counts for of, command in emulators.items()}
    results = rounds_of(min(plan.rounds, 3), runs)

    def cpu_s(name, of):
        return [booted.cpu_s for booted in results[name, of]]

    def millions(name, of):
        """Instructions of the work: time, where they are counted, and else as in the lab."""
        booted = results[name, of if "-icount" in emulators[of] else LABS][0]
        return guests.worked_s(booted.results.decode()) * 1e3

    rows = []
    for name in WORK:
        taken = {of: figures.differences(cpu_s(name, of), cpu_s("nothing", of)) for of in emulators}
        for of, seconds in taken.items():
            rates = [millions(name, of) / each for each in seconds]
            ratio = "" if of == LABS else spread(figures.ratios(seconds, taken[LABS]))
            rows.append([name, of, f"{millions(name, of):,.0f}", spread(seconds), spread(rates), ratio])
    head = (
        "### The emulator\n\nMillions of instructions of a guest in each second of the host's CPU time, for work of one kind, 6.1-cloud with full preemption: "
        "the whole guest, less the same without the work. How many instructions it is, the guest's clock says, where they are counted. "
        "The last column is CPU time for the same work, against the lab's.\n\n"
    )
    return head + figures.table(["work", "emulator", "millions", "CPU s", "millions in a second", "CPU s, × of the lab's"], rows)


PARTS = {"lab-saved": saved, "lab-emulator": emulated}
