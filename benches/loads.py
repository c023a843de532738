"""How much the loads do, beside the nearest stressors of stress-ng."""

import json
import os
from pathlib import Path

import figures
from figures import spread
from lab import rounds_of
from running import execute

# Each load, and the stressor that is nearest to it. A bogo operation is another piece of work in each.
NEAREST = {
    "find": "--dir 1",
    "launch": "--exec 1",
    "file-move": "--copy-file 1",
    "cpu": "--cpu {cpus}",
    "p3-fpu": "--matrix {cpus}",
    "fifos-mmap": "--fifo 1",
    "fs": "--fpunch 1",
    "crashme": "--opcode 1",
    "fork": "--fork 1",
    "memory": "--vm {cpus} --vm-bytes 64M",
    "sync": "--sync-file 1",
    "truncate": "--fallocate 1",
    "ttcp": "--sock 1",
    "network": "--udp {cpus}",
    "hackbench": "--sockpair {cpus}",
    "interrupts": "--hrtimers {cpus}",
    "serial-pty": "--pty 1",
}


class Done:
    """What a program did in its time: work per second, CPUs kept busy, and what the whole machine
    counted meanwhile per second: context switches and interrupts."""

    def __init__(self, work, unit, result, before, after):
        self.work, self.unit = work, unit
        self.cpus = result.cpu_s / result.wall_s
        self.switches = (after["ctxt"] - before["ctxt"]) / result.wall_s
        self.interrupts = (after["intr"] - before["intr"]) / result.wall_s


def counted(command, seconds, work_of):
    """Runs a program; `work_of` finds in its output how much it did per second, and of what."""
    before = figures.machine_counts(Path("/proc/stat").read_text())
    result = execute(command, 60 + 5 * seconds)
    after = figures.machine_counts(Path("/proc/stat").read_text())
    return Done(*work_of(result.output), result, before, after)


def work_of_load(output):
    """Work per second and its unit, from `wakescope load --json`, behind what it tells people."""
    loads = json.loads(output[output.index("{") :])["load"]
    if len(loads) != 1 or not loads[0]["alive"]:
        raise SystemExit(f"bench: the load did not last: {loads}")
    return loads[0]["per_second"], loads[0]["unit"]


def work_of_stressor(output):
    """Bogo operations per second of real time, from `stress-ng --metrics-brief`."""
    rate = figures.bogo_rate(output)
    if rate is None:
        raise SystemExit(f"bench: stress-ng told no rate\n{output[-2000:]}")
    return rate, "bogo operations"


def as_nobody():
    """Some stressors refuse to run as root."""
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []


def loads(plan, binary):
    """Work per second of each load and of its neighbour."""
    seconds = 1 if plan.quick else 4
    rows = []
    for load, stressor in NEAREST.items():
        words = stressor.format(cpus=len(plan.cpus)).split()
        ours = [binary, "load", load, "--duration", f"{seconds}s", "--json", "--dir", "/dev/shm"]
        theirs = [*as_nobody(), "stress-ng", *words, "--timeout", str(seconds), "--metrics-brief", "--temp-path", "/dev/shm"]
        runs = {
            f"`{load}`": lambda command=ours: counted(command, seconds, work_of_load),
            f"`{' '.join(words)}`": lambda command=theirs: counted(command, seconds, work_of_stressor),
        }
        for name, done in rounds_of(plan.rounds, runs).items():
            work = f"{spread([of.work for of in done])} {done[0].unit}"
            counts = [spread([getattr(of, of_what) for of in done]) for of_what in ("cpus", "switches", "interrupts")]
            rows.append([name, work, *counts])
    head = (
        f"### Work of the loads\n\nEach load, and below it the nearest stressor of stress-ng; {seconds} s each, alternating, "
        "files in memory. Per second; CPUs busy by user and system time of the program. Context switches and interrupts "
        "are of the whole machine.\n\n"
    )
    return head + figures.table(["", "work", "CPUs busy", "context switches", "interrupts"], rows)
