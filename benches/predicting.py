"""The arithmetic of predictions' score: what was predicted, beside what was measured.

Nothing here runs a program, so that all of it can be tested (test_predicting.py). All times are virtual ns.
"""

import statistics
from dataclasses import dataclass

import figures

MODELS = ["none", "voluntary", "full", "lazy"]
FIGURES = ["p50", "p99", "p999", "max"]
SIGNS = {"whole": "", "at-most": "≤ ", "at-least": "≥ "}

HEAD = ["kernel, load", "from → to", "p50", "p99", "p99.9", "max predicted", "max measured", "in the range"]
SUMMARY_HEAD = ["from → to", "pairs", "max in the range", "p99 off by", "p99.9 off by", "max off by"]


@dataclass
class Pair:
    """What the cell of one model says of another one, and what the cell of that one measured."""

    kernel: str
    load: str
    source: str
    target: str
    reach: str
    predicted: dict
    measured: dict

    def error(self, figure):
        """Of the predicted figure, as a share of the measured one; None where one of both is not there."""
        predicted, measured = self.predicted.get(figure), self.measured.get(f"{figure}_ns")
        if predicted is None or not measured:
            return None
        return (predicted["median_ns"] - measured) / measured

    def verdict(self):
        """Where the measured maximum lies. A bound holds on its own side."""
        measured, predicted = self.measured["max_ns"], self.predicted["max"]
        if self.reach != "at-least" and measured > self.predicted["longest_ns"]:
            # Later than the replay says that any wakeup can be.
            return "beyond"
        if self.reach != "at-least" and measured > predicted["high_ns"]:
            return "above"
        if self.reach != "at-most" and measured < predicted["low_ns"]:
            return "below"
        return "yes" if self.reach == "whole" else "bound holds"

    def is_met(self):
        return self.verdict() in ("yes", "bound holds")


def pairs(predictions):
    """All pairs of a kernel and a load, of its predictions by the model that ran. Nothing is said of models that
    did not run."""
    found = []
    for kernel, load, by_model in predictions:
        for source, target in ((a, b) for a in MODELS for b in MODELS if a in by_model and b in by_model):
            of_target = next(of for of in by_model[source]["models"] if of["model"] == target)
            if of_target["as_recorded"] is not None:
                measured = by_model[target]["measured"]
                found.append(Pair(kernel, load, source, target, of_target["reach"], of_target["as_recorded"], measured))
    return found


def us(ns):
    return figures.significant(ns / 1_000)


def percent(share):
    """`+12 %`, and `×15` where it is more than twice as much."""
    if share >= 1:
        return f"×{figures.significant(share + 1)}"
    return f"{share * 100:+.0f} %".replace("-", "−")


def figure_of(pair, figure):
    """`10.7 / 8.32 (+29 %)`."""
    predicted, measured = pair.predicted.get(figure), pair.measured.get(f"{figure}_ns")
    told = "–" if predicted is None else SIGNS[pair.reach] + us(predicted["median_ns"])
    error = pair.error(figure)
    beside = "" if error is None else f" ({percent(error)})"
    return f"{told} / {'–' if measured is None else us(measured)}{beside}"


def row(pair):
    largest = pair.predicted["max"]
    told = f"{SIGNS[pair.reach]}{us(largest['median_ns'])} ({us(largest['low_ns'])}–{us(largest['high_ns'])})"
    measured = f"{us(pair.measured['max_ns'])} ({percent(pair.error('max'))})"
    verdict = pair.verdict()
    return [
        f"{pair.kernel}, {pair.load}",
        f"{pair.source} → {pair.target}",
        *(figure_of(pair, figure) for figure in FIGURES[:-1]),
        told,
        measured,
        verdict if pair.is_met() else f"**{verdict}**",
    ]


def table(all_pairs):
    return figures.table(HEAD, [row(pair) for pair in all_pairs])


def off_by(of_direction, figure):
    """The median error without its sign, and the worst one with it."""
    errors = [error for error in (pair.error(figure) for pair in of_direction) if error is not None]
    if not errors:
        return "–"
    worst = max(errors, key=abs)
    return f"{statistics.median(map(abs, errors)) * 100:.0f} %; {percent(worst)}"


def summary(all_pairs):
    """A row for each direction, then those that change the model together, and those that do not."""
    directions = sorted({(MODELS.index(pair.source), MODELS.index(pair.target)) for pair in all_pairs})
    groups = [
        (f"{MODELS[a]} → {MODELS[b]}", [pair for pair in all_pairs if (pair.source, pair.target) == (MODELS[a], MODELS[b])])
        for a, b in directions
        if a != b
    ]
    groups.append(("all other models", [pair for pair in all_pairs if pair.source != pair.target]))
    groups.append(("the same model", [pair for pair in all_pairs if pair.source == pair.target]))
    rows = []
    for name, group in groups:
        if group:
            met = sum(pair.is_met() for pair in group)
            rows.append([name, len(group), f"{met} of {len(group)}", *(off_by(group, figure) for figure in FIGURES[1:])])
    return figures.table(SUMMARY_HEAD, rows)


def verdicts(all_pairs):
    """How often each verdict came, those that changed the model."""
    others = [pair.verdict() for pair in all_pairs if pair.source != pair.target]
    return {verdict: others.count(verdict) for verdict in ("yes", "bound holds", "below", "above", "beyond")}
