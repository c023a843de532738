#!/usr/bin/env python3
"""How often rtla's timerlat analysis is right, on the disturbances that `make score` injects.

Prints a table on stdout and progress on stderr. Guests of the lab run Debian's rtla in a kernel of Debian that
has the timerlat tracer, which are the real-time ones. GUEST names the program of guests
(crates/cli/examples/rtla_guest.rs), BINARY the command.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import figures
import rtla
import scoring
from lab import Lab
from running import say

HEAD = ["disturbance", "length", "machine", "injected", "without a hit", "first blame right", "culprit right"]
PATIENCE_S = 1_800


def load_of(plan, kind):
    return f"disturb-{kind}-{plan.length_us}us"


def console_of(lab, plan):
    """What a guest printed in which rtla met disturbances of all kinds, one kind after the other."""
    loads = [load_of(plan, kind) for kind in plan.kinds]
    append = f"RTLA_LOADS={','.join(loads)} RTLA_ABOVE_US={plan.length_us // 2} RTLA_PERIOD_US={plan.period_us} RTLA_HITS={plan.hits}"
    # The guest has the module for the sake of a load that needs it.
    command = lab.command("--kernel", plan.kernel, "--preempt", "default", "--load", load_of(plan, "irqs-off"), "--seeds", "1,")
    command += ["--packages", "rtla", "--guest-program", plan.guest, "--append", append]
    # It sends no run, so the cell fails; all that it has to say is on its console.
    done = subprocess.run(command, env=lab.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
    consoles = [path.read_text(errors="replace") for path in lab.folder.glob("cells/*/console.log")]
    for console in consoles:
        if re.search(r"rtla: done", console):
            return console
    raise SystemExit(f"score_rtla: {' '.join(command)}:\n{done.stderr[-2000:]}\n{''.join(consoles)[-3000:]}")


def row(plan, score):
    return [
        score.kind,
        f"{plan.length_us} µs",
        f"{plan.kernel} rt",
        str(score.hits),
        str(score.none),
        scoring.percent(score.right, score.hits),
        scoring.percent(score.named, score.hits),
    ]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--kinds", default=",".join(rtla.EXPECTED), help=f"of: {','.join(rtla.EXPECTED)}")
    parser.add_argument("--kernel", default="6.12-rt", help="a kernel with the timerlat tracer (default: 6.12-rt)")
    parser.add_argument("--length-us", type=int, default=300, help="length of a disturbance (default: 300)")
    parser.add_argument("--period-us", type=int, default=380, help="from one wakeup to the next (default: 380)")
    parser.add_argument("--hits", type=int, default=20, help="late wakeups of each kind (default: 20)")
    parser.add_argument("--keep", help="a file for what the guest printed (default: nowhere)")
    plan = parser.parse_args()
    plan.kinds = plan.kinds.split(",")
    for kind in set(plan.kinds) - set(rtla.EXPECTED):
        parser.error(f"no such kind: {kind}")
    plan.guest = os.environ.get("GUEST", "target/quick/examples/rtla_guest")
    return plan


def main():
    plan = arguments()
    rows, wrong = [], []
    with tempfile.TemporaryDirectory(prefix="wakescope-rtla-") as folder:
        lab = Lab(os.environ.get("BINARY", "target/release/wakescope"), folder)
        say(f"rtla: {', '.join(plan.kinds)}")
        console = console_of(lab, plan)
    if plan.keep:
        Path(plan.keep).write_text(console)
    found = rtla.hits(console)
    for kind in plan.kinds:
        score = rtla.judge(kind, found.get(load_of(plan, kind), []))
        rows.append(row(plan, score))
        wrong += [f"- {kind}: {count} × {name}" for name, count in score.wrong.items()]
    print(figures.table(HEAD, rows))
    if wrong:
        print("\nBlamed first where something else was injected:\n\n" + "\n".join(wrong))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
