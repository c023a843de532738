#!/usr/bin/env python3
"""How often `wakescope explain` blames first what truly held a wakeup up, in guests that the emulator looks into.

Prints a Markdown page on stdout and progress on stderr. Each cell is measured with `lab run --explain`, and then
run once more by `wakescope scope`, which sees what the CPU was at from outside. Cells that cannot be had or looked
into are named and left out.
"""

import argparse
import json
import os
from pathlib import Path

import figures
import scope_score
from lab import Lab, users_folder
from running import end_as_by_ctrl_c, execute, say
from score import kept

# A kernel of each series that the lab knows best, with the models that it has at its ends; voluntary preemption and
# PREEMPT_RT where they differ most from these.
GUESTS = {
    "amd64": "6.1-cloud/none 6.1-cloud/full 6.12-cloud/none 6.12-cloud/full 6.18-cloud/none 6.18-cloud/full 6.18-cloud/lazy 7.2-cloud/full 7.2-cloud/lazy 6.1-cloud/voluntary 6.1-rt/rt 7.2-rt/rt",
    # Built for one model each: voluntary and lazy.
    "arm64": "6.12-cloud/default 7.2-cloud/default",
}
LOADS = "find,launch,file-move"

PATIENCE_S = 1_800


def measured(lab, plan, guest, load):
    """The folder of a cell that explained its late wakeups."""
    kernel, model = guest.split("/")
    asked = ["--arch", plan.arch, "--kernel", kernel, "--preempt", model, "--load", load, "--seeds", f"{plan.seed},"]
    asked += ["--explain", "--above", plan.above, "--worst", str(plan.worst), "--samples", str(plan.samples)]
    _result, record = lab.run(*asked, patience_s=PATIENCE_S)
    return record["cells"][0]["run"]


def looked_into(lab, cell, environment):
    """What `wakescope scope` says of the cell, or has said."""
    kept_record = Path(lab.folder, f"scope-{Path(cell).name}.json")
    if not kept_record.exists():
        # All late wakeups are compared, however few of them the record explains.
        command = [lab.binary, "scope", cell, "--episodes", "1", "--json"]
        kept_record.write_text(execute(command, PATIENCE_S, environment, lab.folder / "complaints").output)
    return json.loads(kept_record.read_text())


def records(lab, plan):
    """Pairs of a cell's name and of how to get its record, in order."""
    if plan.cells:
        users = {**os.environ, "WAKESCOPE_CACHE": str(users_folder())}
        for cell in plan.cells:
            yield cell, lambda cell=cell: looked_into(lab, cell, users)
        return
    for guest in plan.guests:
        for load in plan.loads:
            name = f"{'arm64 ' if plan.arch == 'arm64' else ''}{guest.replace('/', ' ')} {load}"
            yield name, lambda guest=guest, load=load: looked_into(lab, measured(lab, plan, guest, load), lab.environment())


def page(plan):
    found, missing = [], []
    with kept(plan.keep) as folder:
        lab = Lab(os.environ.get("BINARY", "target/release/wakescope"), folder)
        lab.share("plugins", "maps")
        for name, get in records(lab, plan):
            say(name)
            try:
                record = get()
                found.append((record["label"], record))
            except SystemExit as failure:
                say(str(failure))
                missing.append(f"- {name}: {' '.join(str(failure).split())[:300]}")
    parts = [figures.table(scope_score.CELL_HEAD, scope_score.by_cell(found))]
    parts.append(figures.table(scope_score.CAUSE_HEAD, scope_score.by_cause(found)))
    lists = [
        ("Blamed on something else first:", scope_score.disagreements(found)),
        ("No wakeup was compared:", scope_score.without(found)),
        ("Left out:", missing),
    ]
    parts += [f"{title}\n\n" + "\n".join(lines) for title, lines in lists if lines]
    return "\n\n".join(parts)


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--arch", choices=GUESTS, default="amd64", help="of the guests; for arm64, WAKESCOPE_GUEST_ARM64 is what they run (default: amd64)")
    parser.add_argument("--guests", nargs="+", help=f"as KERNEL/MODEL (default: {GUESTS['amd64']}; for arm64: {GUESTS['arm64']})")
    parser.add_argument("--cells", nargs="+", help="cells of your own cache that explained their late wakeups, by their keys, in place of guests and loads")
    parser.add_argument("--loads", default=LOADS, help=f"default: {LOADS}")
    parser.add_argument("--samples", type=int, default=500, help="wakeups of each cell (default: 500)")
    parser.add_argument("--above", default="p96", help="from where on they are explained (default: p96)")
    parser.add_argument("--worst", type=int, default=20, help="how many of these are compared (default: 20)")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("--keep", help="where cells and records stay, to look at, or to go on after an end; records of another version need another place (default: nowhere)")
    plan = parser.parse_args(words)
    plan.loads = plan.loads.split(",")
    plan.guests = plan.guests or GUESTS[plan.arch].split()
    for guest in plan.guests:
        if guest.count("/") != 1:
            parser.error(f"not KERNEL/MODEL: {guest}")
    return plan


def main():
    plan = arguments()
    end_as_by_ctrl_c()
    print(page(plan), flush=True)


if __name__ == "__main__":
    main()
