"""Runs the benchmark's programs, and accounts for what they take."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import figures


@dataclass
class Result:
    """What a program did: CPU seconds (user and system), seconds that passed, peak resident KiB,
    output, run record."""

    cpu_s: float
    wall_s: float
    peak_kib: int
    output: str
    run: dict | None = None

    def wakeups(self):
        if self.run is None:
            return figures.wakeups(self.output)
        return sum(thread["woken"]["count"] for thread in self.run["threads"])


def end_as_by_ctrl_c():
    """Has a request to end do what Ctrl-C does: nothing that runs is left behind."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def publish(text, into, name):
    """Prints results, and puts them into a page, if one is asked for, between the marks of this name."""
    print(text, flush=True)
    if into:
        figures.put_into(into, name, text)


def execute(command, patience_s, env=None, complaints=None):
    """Runs a program to its end and accounts for it. Kills it, with all it started, when it
    takes longer than `patience_s`. Its output holds what it complains about, too, unless there is
    a file named for that: `complaints`."""
    with tempfile.TemporaryDirectory(prefix="wakescope-bench-") as folder:
        peak, output = Path(folder, "peak"), Path(folder, "output")
        # A child of this interpreter would inherit its peak of resident memory across exec;
        # `time` is small enough not to matter.
        timed = ["/usr/bin/time", "-q", "-f", "%M", "-o", str(peak), *command]
        with open(output, "wb") as out, open(complaints or os.devnull, "wb") as apart:
            err = apart if complaints else out
            began = time.monotonic()
            process = subprocess.Popen(
                timed, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, start_new_session=True
            )
        late = threading.Timer(patience_s, lambda: os.killpg(process.pid, signal.SIGKILL))
        late.start()
        try:
            _pid, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            late.cancel()
        wall_s = time.monotonic() - began
        # The process is gone: its object must not wait for it again.
        process.returncode = os.waitstatus_to_exitcode(status)
        text = output.read_text(errors="replace")
        if process.returncode != 0:
            said = Path(complaints).read_text(errors="replace") if complaints else text
            raise SystemExit(f"bench: {' '.join(command)}: exit {process.returncode}\n{said[-2000:]}")
        return Result(usage.ru_utime + usage.ru_stime, wall_s, int(peak.read_text()), text)
