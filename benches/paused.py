"""Guests of the lab in real time, whose emulator is stopped and goes on: their CPU stands still
while their clock runs."""

import ctypes
import json
import mmap
import os
import platform
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import guests
from pauses import Pause, plan
from running import say

# No guest takes that long, and none that measures says nothing for so long.
PATIENCE_S = 300

# After it says that it measures: its first samples, which teach what is usual.
SETTLED_S = 1.0


def counter_khz():
    """How fast this machine's time stamp counter goes, which a guest in real time sees as its own."""
    if platform.machine() != "x86_64":
        raise SystemExit("guests of x86 in real time need a time stamp counter, which only x86 has")
    # rdtsc; shl $32, %rdx; or %rdx, %rax; ret
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("0f31 48c1e220 4809d0 c3"))
    count = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))

    def both():
        # Of some looks, the one that was interrupted least.
        looks = [(time.monotonic_ns(), count(), time.monotonic_ns()) for _ in range(50)]
        before, counted, after = min(looks, key=lambda look: look[2] - look[0])
        return (before + after) / 2, counted

    (time_a, count_a), _, (time_b, count_b) = both(), time.sleep(0.5), both()
    return round((count_b - count_a) / (time_b - time_a) * 1e6)


class Guest:
    """An emulator that runs, and is gone in the end, stopped or not."""

    def __init__(self, command, folder):
        self.folder = Path(folder)
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        # Before whatever else this machine does, where one may: it should stand still only when told.
        first = ["/usr/bin/nice", "-n", "-20", *guests.into(command, folder)]
        self.process = subprocess.Popen(first, env={}, **quiet)
        self.end = time.monotonic() + PATIENCE_S

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # This also ends one that is stopped.
        self.process.kill()
        self.process.wait()

    def is_running(self):
        if time.monotonic() > self.end:
            raise SystemExit(f"bench: a guest was not done after {PATIENCE_S} s\n{self.said()}")
        return self.process.poll() is None

    def said(self):
        console = self.folder / "console"
        return console.read_text(errors="replace")[-2000:] if console.exists() else ""

    def wait_until_it_measures(self):
        while "measuring" not in self.said().split():
            if not self.is_running():
                raise SystemExit(f"bench: a guest ended before it measured\n{self.said()}")
            time.sleep(0.01)

    def pause(self, length_ns):
        """Stops it for about so long. None if it has ended."""
        begin = time.monotonic_ns()
        self.process.send_signal(signal.SIGSTOP)
        # Told when the last of its threads stands.
        _pid, status = os.waitpid(self.process.pid, os.WUNTRACED)
        stopped = time.monotonic_ns()
        if not os.WIFSTOPPED(status):
            self.process.returncode = os.waitstatus_to_exitcode(status)
            return None
        time.sleep(max(0, length_ns - (stopped - begin)) / 1e9)
        end = time.monotonic_ns()
        self.process.send_signal(signal.SIGCONT)
        return Pause(begin, end, stopped - begin)

    def results(self):
        """The files that came out of it, once it has ended."""
        while self.is_running():
            time.sleep(0.05)
        return guests.unpacked((self.folder / "results").read_bytes())


def paused_run(command, length_ns, times, seed):
    """The record of a guest that was paused so many times, and the pauses."""
    pauses = []
    with tempfile.TemporaryDirectory(prefix="wakescope-score-") as folder, Guest(command, folder) as guest:
        guest.wait_until_it_measures()
        time.sleep(SETTLED_S)
        for gap_ns in plan(random.Random(seed), length_ns, times):
            time.sleep(gap_ns / 1e9)
            pause = guest.pause(length_ns) if guest.is_running() else None
            if pause is None:
                say(f"a guest ended after {len(pauses)} of {times} pauses")
                break
            pauses.append(pause)
        files = guest.results()
    facts = json.loads(files["guest.json"])
    if facts.get("error"):
        raise SystemExit(f"bench: a paused guest: {facts['error']}")
    run = json.loads(files["run.json"])
    if run.get("time_domain", "real") != "real":
        raise SystemExit("bench: a guest that was to run in real time says that it did not")
    return run, pauses


def seconds(length_ns, times):
    """How long the guest must measure, so that all pauses fall into it."""
    gap_ns = length_ns + 200_000_000
    return 2 * SETTLED_S + times * 1.15 * (gap_ns + length_ns) / 1e9
