#!/usr/bin/env python3
"""How right `wakescope predict` is: each model of a kernel predicted from the cells of the others, beside its own cell.

Prints a Markdown page on stdout and progress on stderr. Runs a cell of the lab for each model that a kernel has, under
each load; then each cell once more, which is where its predictions come from. All of it is in virtual time. Cells and
predictions are kept: the same command goes on where it was ended. Kernels that cannot be had are named and left out.
"""

import argparse
import datetime
import hashlib
import json
import os
import subprocess
from pathlib import Path

import predicting
from lab import Lab
from running import end_as_by_ctrl_c, execute, publish, say

KERNELS = ["6.1-cloud", "6.12-cloud", "6.16-cloud", "6.18-cloud", "7.2-cloud", "7.3-cloud"]
LOADS = ["file-move", "find", "launch"]
PATIENCE_S = 7_200


def cells(plan, lab, kernel, load, seed):
    """The cells of a kernel under a load and with a seed by the model that ran, those that measured; and why others did not."""
    command = lab.command("--kernel", kernel, "--preempt", ",".join(predicting.MODELS), "--load", load)
    command += ["--seeds", f"{seed},", "--samples", str(plan.samples), "--interval", plan.interval, "--jobs", "1", "--json"]
    done = subprocess.run(command, env=lab.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
    if not done.stdout.strip():
        raise SystemExit(f"score_predict: {' '.join(command)}:\n{done.stderr[-2000:]}")
    record = json.loads(done.stdout)
    lab.note(record)
    measured = {cell["asked"]: cell for cell in record["cells"] if cell["status"] == "ok"}
    # A kernel without a model says so; that is no failure.
    failed = [f"{cell['asked']}: {cell['reason']}" for cell in record["cells"] if cell["status"] not in ("ok", "ignored")]
    return measured, failed


def sum_of(program):
    return hashlib.sha256(Path(program).read_bytes()).hexdigest()[:12]


def prediction(plan, lab, keys):
    """What cells predict together. It is kept for the program that made it: another one may predict otherwise."""
    name = keys[0][:16] if len(keys) == 1 else hashlib.sha256(" ".join(keys).encode()).hexdigest()[:16]
    kept = Path(plan.keep, "predictions", f"{name}.{plan.program}.json")
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        command = [lab.binary, "predict", *keys, "--json"]
        # A file of its own: several of these commands may share a folder.
        said = execute(command, PATIENCE_S, lab.environment(), kept.with_suffix(".complaints")).output
        json.loads(said)
        partial = kept.with_suffix(".part")
        partial.write_text(said)
        partial.rename(kept)
    return json.loads(kept.read_text())


def of_kernel(plan, lab, kernel, load, seed):
    """Predictions of a kernel under a load and with a seed, by the model that ran; and what failed."""
    try:
        measured, failed = cells(plan, lab, kernel, load, seed)
    except SystemExit as failure:
        return {}, [str(failure)]
    by_model = {}
    for model, cell in measured.items():
        say(f"{kernel}, {load}, seed {seed}: from {model}")
        try:
            by_model[model] = prediction(plan, lab, [Path(cell["run"]).name])
        except SystemExit as failure:
            failed.append(f"predicted from {model}: {predicting.complaint(str(failure))}")
    return by_model, failed


def results(plan, lab):
    """Predictions by the model that ran, for each kernel, load and seed; and what is missing. Ended, it has what there
    is."""
    found, missing = {}, []
    # A seed more comes after all else: ended early, each kernel has its first seeds.
    todo = [(kernel, load, seed) for seed in plan.seeds for load in plan.loads for kernel in plan.kernels]
    name = lambda kernel, load, seed: f"{kernel}, {load}" + (f", seed {seed}" if len(plan.seeds) > 1 else "")
    try:
        for which in todo:
            say(name(*which))
            found[which], failed = of_kernel(plan, lab, *which)
            missing += [f"- {name(*which)}: {' '.join(why.split())[:300]}" for why in failed]
    except KeyboardInterrupt:
        say("ended; the same command goes on here")
        missing += [f"- {name(*which)}: ended before" for which in todo if which not in found]
    # All loads of a kernel together.
    in_order = [(kernel, load, seed) for kernel in plan.kernels for load in plan.loads for seed in plan.seeds]
    return [(*which, found[which]) for which in in_order if which in found], missing


def from_other_seeds(plan, lab, found):
    """For each kernel, load and seed: what the cells of all other seeds predict together, by the model that ran; and what
    is missing. That takes three seeds."""
    together, missing = [], []
    for kernel, load, left_out, _ in found:
        by_model = {}
        others = [of for *which, seed, of in found if which == [kernel, load] and seed != left_out]
        for model in predicting.MODELS if len(others) > 1 else ():
            cells = [of[model]["cells"][0]["key"] for of in others if model in of]
            if len(cells) < 2:
                continue
            say(f"{kernel}, {load}: from {model}, {len(cells)} seeds other than {left_out}")
            try:
                by_model[model] = prediction(plan, lab, cells)
            except SystemExit as failure:
                missing.append(f"- {kernel}, {load}, all seeds but {left_out}: predicted from {model}: {predicting.complaint(str(failure))}")
            except KeyboardInterrupt:
                say("ended; the same command goes on here")
                return together, [*missing, f"- {kernel}, {load}, all seeds but {left_out}, and what comes after them: ended before"]
        if by_model:
            together.append((kernel, load, left_out, by_model))
    return together, missing


def page(plan):
    with_guests = Path(plan.keep)
    with_guests.mkdir(parents=True, exist_ok=True)
    lab = Lab(BINARY, with_guests)
    found, missing = results(plan, lab)
    pairs = predicting.pairs(found)
    if not pairs:
        return "\n".join(["Nothing was scored.", *missing])
    seeds = f"seed{'s' * (len(plan.seeds) > 1)} {', '.join(map(str, plan.seeds))}"
    basis = f"{datetime.date.today()}, `make score-predict`: cells of {plan.samples:,} wakeups, one each {plan.interval}, {seeds}; virtual time. {lab.basis()}."
    counts = ", ".join(f"{count} {name}" for name, count in predicting.verdicts(pairs).items() if count)
    parts = [basis, predicting.summary(pairs), f"The measured maximum, where another model was predicted: {counts}.", predicting.widths(pairs)]
    together, missing_together = from_other_seeds(plan, lab, found)
    missing += missing_together
    beside = predicting.beside_other_seeds(together, found)
    if (across := predicting.seen_by_none(predicting.across_seeds(found), beside)) is not None:
        parts.append(across)
    if (over_seeds := predicting.over_seeds(pairs)) is not None:
        parts.append("Medians over the seeds, with the least and the largest:\n\n" + over_seeds)
    parts.append(predicting.table(pairs))
    if missing:
        parts.append("Not scored:\n\n" + "\n".join(missing))
    return "\n\n".join(parts)


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--kernels", default=",".join(KERNELS), help=f"of `wakescope lab kernels` (default: {','.join(KERNELS)})")
    parser.add_argument("--loads", default=",".join(LOADS), help=f"default: {','.join(LOADS)}")
    parser.add_argument("--samples", type=int, default=2_000, help="wakeups of a cell; p99.9 needs 2,000 (default: 2000)")
    parser.add_argument("--interval", default="500us", help="from one wakeup of a cell to the next, virtual time (default: 500us)")
    parser.add_argument("--seeds", default="1", help="of all cells, as 1,2,3: whether a timer meets the kernel's tick is luck of one (default: 1)")
    parser.add_argument("--keep", default="target/score-predict", help="where cells and predictions stay (default: target/score-predict)")
    parser.add_argument("--into", help="put the results into this page, between its marks")
    plan = parser.parse_args(words)
    plan.kernels, plan.loads = plan.kernels.split(","), plan.loads.split(",")
    try:
        plan.seeds = [int(seed) for seed in plan.seeds.split(",")]
    except ValueError:
        parser.error(f"--seeds {plan.seeds}: write numbers, as in 1,2,3")
    if len(set(plan.seeds)) < len(plan.seeds):
        parser.error(f"--seeds {','.join(map(str, plan.seeds))}: a seed named twice would count twice")
    return plan


def main():
    plan = arguments()
    end_as_by_ctrl_c()
    plan.program = sum_of(BINARY)
    publish(page(plan), plan.into, "predictions")


BINARY = os.environ.get("BINARY", "target/release/wakescope")

if __name__ == "__main__":
    main()
