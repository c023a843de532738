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
SUMMARY_HEAD = ["from → to", "pairs", "p99 in the range", "p99.9 in the range", "max in the range", "p99 off by", "p99.9 off by", "max off by"]
WIDTH_HEAD = ["half of the ranges are at most so wide", "p99", "p99.9", "max"]
ACROSS_HEAD = ["beside cells of other seeds", "pairs", *(f"{name} in the range" for name in ("p99", "p99.9", "max"))]
ACROSS_HEAD += [f"half of the ranges of {name} are at most so wide" for name in ("p99", "p99.9", "max")]
SEEDS_HEAD = ["kernel, load", "from → to", "seeds", "p99", "p99.9", "max", "p99 in the range", "max in the range"]


@dataclass
class Pair:
    """What the cell of one model says of another one, and what the cell of that one measured; both of a seed."""

    kernel: str
    load: str
    source: str
    target: str
    reach: str
    predicted: dict
    measured: dict
    seed: int = 1

    def error(self, figure):
        """Of the predicted figure, as a share of the measured one; None where one of both is not there."""
        predicted, measured = self.predicted.get(figure), self.measured.get(f"{figure}_ns")
        if predicted is None or not measured:
            return None
        return (predicted["median_ns"] - measured) / measured

    def verdict(self, figure="max"):
        """Where the measured figure lies; None where one of both is not there. A bound holds on its own side."""
        measured, predicted = self.measured.get(f"{figure}_ns"), self.predicted.get(figure)
        if measured is None or predicted is None:
            return None
        if self.reach != "at-least" and measured > predicted["high_ns"]:
            # Beyond what the replay says that any wakeup can be.
            return "beyond" if figure == "max" and measured > self.predicted["longest_ns"] else "above"
        if self.reach != "at-most" and measured < predicted["low_ns"]:
            return "below"
        return "yes" if self.reach == "whole" else "bound holds"

    def is_met(self, figure="max"):
        return self.verdict(figure) in ("yes", "bound holds")


def complaint(said):
    """What the command complained about, without the progress that it reported before."""
    _progress, marker, message = said.rpartition("wakescope: ")
    return message if marker else said


def measured_of(prediction):
    """What the cell measured that a prediction was made from."""
    [cell] = prediction["cells"]
    return cell["measured"]


def pairs(predictions):
    """All pairs of a kernel and a load, of its predictions by the model that ran. Nothing is said of models that
    did not run."""
    return [pair for kernel, load, seed, by_model in predictions for pair in between(kernel, load, seed, by_model, by_model)]


def between(kernel, load, seed, predicted, measured):
    """The pairs of predictions and of measured cells, both by the model that ran."""
    found = []
    for source, target in ((a, b) for a in MODELS for b in MODELS if a in predicted and b in measured):
        of_target = next(of for of in predicted[source]["models"] if of["model"] == target)
        if of_target["as_recorded"] is not None:
            found.append(Pair(kernel, load, source, target, of_target["reach"], of_target["as_recorded"], measured_of(measured[target]), seed))
    return found


def across_seeds(predictions):
    """What the cells of each seed say of each model, beside what the cells of the other seeds measured: courses that no
    prediction has seen."""
    by_seed = {}
    for kernel, load, seed, by_model in predictions:
        by_seed.setdefault((kernel, load), {})[seed] = by_model
    found = []
    for (kernel, load), of_seeds in by_seed.items():
        for seed, predicted in of_seeds.items():
            for measured in (of_other for other, of_other in of_seeds.items() if other != seed):
                found += between(kernel, load, seed, predicted, measured)
    return found


def beside_other_seeds(together, predictions):
    """What cells of all seeds but one say together of each model, beside what the cells of that one measured. `together`:
    by the seed that is not in them, and by the model that ran."""
    measured = {(kernel, load, seed): by_model for kernel, load, seed, by_model in predictions}
    return [pair for *which, by_model in together for pair in between(*which, by_model, measured[tuple(which)])]


def us(ns):
    return figures.significant(ns / 1_000)


def percent(share):
    """`+12 %`, and `×15` where it is more than twice as much."""
    if share >= 1:
        return f"×{figures.significant(share + 1)}"
    return f"{share * 100:+.0f} %".replace("-", "−")


def span(low_ns, high_ns):
    """` (11.8–23.1)`; nothing where both are the same."""
    return "" if low_ns == high_ns else f" ({us(low_ns)}–{us(high_ns)})"


def figure_of(pair, figure):
    """`10.7 (9.70–11.2) / 8.32 (+29 %)`; medians hardly have a range."""
    predicted, measured = pair.predicted.get(figure), pair.measured.get(f"{figure}_ns")
    range_of = "" if predicted is None or figure == "p50" else span(predicted["low_ns"], predicted["high_ns"])
    told = "–" if predicted is None else SIGNS[pair.reach] + us(predicted["median_ns"]) + range_of
    error = pair.error(figure)
    beside = "" if error is None else f" ({percent(error)})"
    return f"{told} / {'–' if measured is None else us(measured)}{beside}"


def name_of(pair, several_seeds):
    return f"{pair.kernel}, {pair.load}" + (f", seed {pair.seed}" if several_seeds else "")


def row(pair, several_seeds=False):
    largest = pair.predicted["max"]
    told = f"{SIGNS[pair.reach]}{us(largest['median_ns'])} ({us(largest['low_ns'])}–{us(largest['high_ns'])})"
    measured = f"{us(pair.measured['max_ns'])} ({percent(pair.error('max'))})"
    verdict = pair.verdict()
    return [
        name_of(pair, several_seeds),
        f"{pair.source} → {pair.target}",
        *(figure_of(pair, figure) for figure in FIGURES[:-1]),
        told,
        measured,
        verdict if pair.is_met() else f"**{verdict}**",
    ]


def table(all_pairs):
    several_seeds = len({pair.seed for pair in all_pairs}) > 1
    return figures.table(HEAD, [row(pair, several_seeds) for pair in all_pairs])


def of_all_seeds(group, figure):
    """`18.4 (17.9–18.6) / 15.7 (14.1–18.9) (+17 %)`: the medians over the seeds, with the least and the largest. What
    one timer meets by chance, its phase and its course, is in the range and hardly in the median."""
    sides = [
        [pair.predicted[figure]["median_ns"] for pair in group if pair.predicted.get(figure)],
        [pair.measured[f"{figure}_ns"] for pair in group if pair.measured.get(f"{figure}_ns")],
    ]
    told = [us(statistics.median(side)) + span(min(side), max(side)) if side else "–" for side in sides]
    both = SIGNS[group[0].reach] + " / ".join(told)
    if not all(sides):
        return both
    predicted, measured = map(statistics.median, sides)
    return f"{both} ({percent((predicted - measured) / measured)})"


def over_seeds(all_pairs):
    """A row for each pair of models of a kernel and a load, over all its seeds; None where there is one seed only."""
    if len({pair.seed for pair in all_pairs}) < 2:
        return None
    groups = {}
    for pair in all_pairs:
        groups.setdefault((pair.kernel, pair.load, pair.source, pair.target, pair.reach), []).append(pair)
    rows = []
    for (kernel, load, source, target, _reach), group in groups.items():
        figures_of_seeds = [of_all_seeds(group, figure) for figure in FIGURES[1:]]
        met = [in_range(group, figure) for figure in ("p99", "max")]
        rows.append([f"{kernel}, {load}", f"{source} → {target}", len(group), *figures_of_seeds, *met])
    return figures.table(SEEDS_HEAD, rows)


def in_range(group, figure):
    """`6 of 8`: of those pairs that have both sides of the figure."""
    known = [pair for pair in group if pair.verdict(figure)]
    return f"{sum(pair.is_met(figure) for pair in known)} of {len(known)}"


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
            met = [in_range(group, figure) for figure in FIGURES[1:]]
            rows.append([name, len(group), *met, *(off_by(group, figure) for figure in FIGURES[1:])])
    return figures.table(SUMMARY_HEAD, rows)


def seen_by_none(from_one, from_others=()):
    """How often figures of cells of other seeds are in the ranges, of predictions from one cell and from the cells of all
    other seeds together: None where there is one seed only."""
    groups = []
    for said, found in (("from one seed", from_one), ("from all others together", from_others)):
        groups.append((f"{said}, other models", [pair for pair in found if pair.source != pair.target]))
        groups.append((f"{said}, the same model", [pair for pair in found if pair.source == pair.target]))
    rows = [
        [name, len(group), *(in_range(group, figure) for figure in FIGURES[1:]), *(width(group, figure) for figure in FIGURES[1:])]
        for name, group in groups
        if group
    ]
    return figures.table(ACROSS_HEAD, rows) if rows else None


def width(group, figure):
    """The median width of the ranges, as a share of what is predicted."""
    ranges = [pair.predicted[figure] for pair in group if pair.predicted.get(figure)]
    shares = [(of["high_ns"] - of["low_ns"]) / of["median_ns"] for of in ranges if of["median_ns"]]
    return f"{statistics.median(shares) * 100:.0f} %" if shares else "–"


def widths(all_pairs):
    """How wide ranges are, those of other models, by load: one that is too wide says nothing."""
    others = [pair for pair in all_pairs if pair.source != pair.target]
    loads = list(dict.fromkeys(pair.load for pair in others))
    groups = [(load, [pair for pair in others if pair.load == load]) for load in loads]
    rows = [[name, *(width(group, figure) for figure in FIGURES[1:])] for name, group in [*groups, ("all", others)]]
    return figures.table(WIDTH_HEAD, rows)


def verdicts(all_pairs):
    """How often each verdict came, those that changed the model."""
    others = [pair.verdict() for pair in all_pairs if pair.source != pair.target]
    return {verdict: others.count(verdict) for verdict in ("yes", "bound holds", "below", "above", "beyond")}
