#!/usr/bin/env python3
"""How right `wakescope predict --break` is: a kernel really built with one preemption point more, beside what was
predicted from the kernel without it.

Prints a Markdown table on stdout and progress on stderr. Both kernels come from scripts/broken-kernel. All of it is in
virtual time. Cells are kept: the same command goes on where it was ended.
"""

import argparse
import datetime
import json
import os
from pathlib import Path

import figures
from lab import Lab
from predicting import FIGURES, percent, us
from running import end_as_by_ctrl_c, execute, publish, say

# What the second kernel has a preemption point in, and how often it asks there at most.
FUNCTION, EVERY = "dput", "1us"
KERNELS = ["as-it-is", "with-a-point"]
PATIENCE_S = 3_600


def cell(plan, lab, kernel):
    """The key of the cell of a kernel under the model none."""
    say(f"{kernel}: the cell")
    folder = Path(plan.kernels, kernel)
    what = ["--kernel", str(folder / "bzImage"), "--config", str(folder / "config"), "--preempt", "none", "--load", plan.load]
    how = ["--seeds", f"{plan.seed},", "--samples", str(plan.samples), "--interval", plan.interval]
    _took, record = lab.run(*what, *how, patience_s=PATIENCE_S)
    lab.note(record)
    [found] = record["cells"]
    return Path(found["run"]).name


def prediction(lab, kernel, key, *breaks):
    say(" ".join([f"{kernel}: the prediction", *breaks]))
    said = execute([lab.binary, "predict", key, "--json", *breaks], PATIENCE_S, lab.environment(), lab.folder / "complaints").output
    return json.loads(said)


def figures_of(prediction):
    """Of the model that ran: what was measured, what the replay says of the same wakeups, and of it with the point."""
    of = next(of for of in prediction["models"] if of["model"] == prediction["recorded"])
    [cell] = prediction["cells"]
    return cell["measured"], cell["replayed"], of["broken"]


def beside(ns, true_ns, span=""):
    """`6.32 (6.04–6.66), +1 %`; a dash where one of both is not there."""
    return "–" if ns is None or not true_ns else f"{us(ns)}{span}, {percent((ns - true_ns) / true_ns)}"


def table(without, with_point):
    """Rows: without the point measured, replayed and predicted; and measured with it."""
    measured, replayed, predicted = figures_of(without)
    really, _replayed, _broken = figures_of(with_point)
    keys = [f"{name}_ns" for name in FIGURES]

    def told(said):
        return ["–" if said[key] is None else us(said[key]) for key in keys]

    def of_timer(name):
        figure = predicted[name] or {"median_ns": None}
        span = f" ({us(figure['low_ns'])}–{us(figure['high_ns'])})" if name == "max" else ""
        return beside(figure["median_ns"], really[f"{name}_ns"], span)

    rows = [
        ["without the point, measured", *told(measured)],
        ["the same, replayed", *(beside(replayed[key], measured[key]) for key in keys)],
        [f"predicted: `--break {FUNCTION}={EVERY}`", *map(of_timer, FIGURES)],
        ["with the point, measured", *told(really)],
    ]
    return figures.table(["none", *("p99.9" if name == "p999" else name for name in FIGURES)], rows)


def steps(prediction):
    """`dput`: 329 → 18.0; what the ranking of the kernel without the point proposes."""
    told = [f"`{'` and `'.join(step['functions'])}`: {us(step['before_ns'])} → {us(step['after_ns'])}" for step in prediction["next"]["steps"]]
    return "; ".join(told) or "nothing"


def page(plan):
    folder = Path(plan.keep)
    folder.mkdir(parents=True, exist_ok=True)
    lab = Lab(BINARY, folder)
    original, changed = KERNELS
    keys = {kernel: cell(plan, lab, kernel) for kernel in KERNELS}
    # What to break up next is said of what is left, so it is asked without the point.
    asked = prediction(lab, original, keys[original])
    without = prediction(lab, original, keys[original], "--break", f"{FUNCTION}={EVERY}")
    with_point = prediction(lab, changed, keys[changed])
    basis = f"{datetime.date.today()}, `make score-break`: cells of {plan.samples:,} wakeups, one each {plan.interval}, load `{plan.load}`, seed {plan.seed}, model `none`; virtual µs. {lab.basis()}."
    ranking = f"What to break up next, said of the kernel without the point: {steps(asked)}."
    return "\n\n".join([basis, table(without, with_point), ranking])


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--kernels", default="target/broken", help="what scripts/broken-kernel built (default: target/broken)")
    parser.add_argument("--load", default="find", help="default: find")
    parser.add_argument("--samples", type=int, default=2_000, help="wakeups of a cell; p99.9 needs 2,000 (default: 2000)")
    parser.add_argument("--interval", default="250us", help="from one wakeup of a cell to the next, virtual time (default: 250us)")
    parser.add_argument("--seed", type=int, default=1, help="of both cells (default: 1)")
    parser.add_argument("--keep", default="target/score-break", help="where cells stay (default: target/score-break)")
    parser.add_argument("--into", help="put the results into this page, between its marks")
    return parser.parse_args(words)


def main():
    plan = arguments()
    end_as_by_ctrl_c()
    publish(page(plan), plan.into, "break")


BINARY = os.environ.get("BINARY", "target/release/wakescope")

if __name__ == "__main__":
    main()
