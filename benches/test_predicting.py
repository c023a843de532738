"""Tests of the arithmetic of predictions' score, on predictions that are made up."""

import contextlib
import io
import json
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import predicting
import score_predict
from predicting import Pair


def span(low, median, high):
    return {"low_ns": low, "median_ns": median, "high_ns": high}


def latencies(p50=10_000, p99=20_000, p999=30_000, largest=(40_000, 50_000, 60_000), longest=70_000):
    narrow = {name: None if ns is None else span(ns, ns, ns) for name, ns in (("p50", p50), ("p99", p99), ("p999", p999))}
    return {**narrow, "max": span(*largest), "longest_ns": longest}


def measured(p50=10_000, p99=20_000, p999=30_000, largest=50_000):
    return {"p50_ns": p50, "p99_ns": p99, "p999_ns": p999, "max_ns": largest}


def pair(reach="whole", source="none", target="full", of=None, said=None, seed=1):
    return Pair("6.1-cloud", "find", source, target, reach, of or latencies(), said or measured(), seed)


def prediction(recorded, said, **models):
    of = [{"model": model, "reach": reach, "as_recorded": figures} for model, (reach, figures) in models.items()]
    return {"recorded": recorded, "cells": [{"key": recorded * 4, "measured": said}], "models": of}


class Complaints(unittest.TestCase):
    def test_progress_is_left_out(self):
        said = "bench: wakescope predict 12ab: exit 2\nrepeating cells: 0 / 1 cell\nwakescope: cannot look into the cell\n  → another one"
        self.assertEqual(predicting.complaint(said), "cannot look into the cell\n  → another one")
        self.assertEqual(predicting.complaint("bench: killed"), "bench: killed")


class Pairs(unittest.TestCase):
    def test_a_model_is_compared_with_the_cell_that_ran_it(self):
        rt = ("spin-locks", None)
        by_model = {
            "none": prediction("none", measured(largest=1), none=("whole", latencies(p50=1)), full=("whole", latencies(p50=2)), rt=rt),
            "full": prediction("full", measured(largest=2), none=("at-most", latencies(p50=3)), full=("whole", latencies(p50=4)), rt=rt),
        }
        found = predicting.pairs([("6.1-cloud", "find", 7, by_model), ("7.2-cloud", "find", 7, {})])
        told = [(one.source, one.target, one.reach, one.predicted["p50"]["median_ns"], one.measured["max_ns"]) for one in found]
        self.assertEqual({one.seed for one in found}, {7})
        self.assertEqual(
            told,
            [("none", "none", "whole", 1, 1), ("none", "full", "whole", 2, 2), ("full", "none", "at-most", 3, 1), ("full", "full", "whole", 4, 2)],
        )

    def test_what_a_seed_says_stands_beside_the_cells_of_the_others(self):
        of_seed = lambda ns: {
            "none": prediction("none", measured(largest=ns), none=("whole", latencies(p50=ns)), full=("whole", latencies())),
            "full": prediction("full", measured(largest=ns + 1), none=("at-most", latencies()), full=("whole", latencies())),
        }
        several = [("6.1-cloud", "find", 1, of_seed(55_000)), ("6.1-cloud", "find", 2, of_seed(65_000)), ("6.1-cloud", "launch", 1, of_seed(1))]
        found = predicting.across_seeds(several)
        told = [(one.load, one.seed, one.source, one.target, one.measured["max_ns"]) for one in found]
        self.assertEqual(len(told), 8, "two ways between two seeds of a load, four pairs each")
        self.assertIn(("find", 1, "full", "none", 65_000), told)
        self.assertIn(("find", 2, "none", "full", 55_001), told)
        lines = predicting.seen_by_none(found).splitlines()
        rows = [
            "| from one seed, other models | 4 | 4 of 4 | 4 of 4 | 2 of 4 | 0 % | 0 % | 40 % |",
            "| from one seed, the same model | 4 | 4 of 4 | 4 of 4 | 2 of 4 | 0 % | 0 % | 40 % |",
        ]
        self.assertEqual(lines[2:], rows)
        self.assertIsNone(predicting.seen_by_none(predicting.across_seeds(several[:1])))
        # The cells of the second seed, predicted from others together.
        all_others = prediction("none", None, none=("whole", latencies()), full=("whole", latencies(largest=(1, 2, 65_001))))
        beside = predicting.beside_other_seeds([("6.1-cloud", "find", 2, {"none": all_others})], several)
        told = [(one.seed, one.source, one.target, one.measured["max_ns"], one.verdict()) for one in beside]
        self.assertEqual(told, [(2, "none", "none", 65_000, "above"), (2, "none", "full", 65_001, "yes")])
        rows = predicting.seen_by_none(found, beside).splitlines()[4:]
        self.assertEqual([row.split(" | ")[:5] for row in rows][0], ["| from all others together, other models", "1", "1 of 1", "1 of 1", "1 of 1"])
        self.assertEqual([row.split(" | ")[4] for row in rows], ["1 of 1", "0 of 1"])

    def test_what_is_not_predicted_is_no_pair(self):
        by_model = {"full": prediction("full", measured(), full=("other-kernel", None))}
        self.assertEqual(predicting.pairs([("6.1-rt", "find", 1, by_model)]), [])


class Verdicts(unittest.TestCase):
    def test_where_the_measured_maximum_lies(self):
        for reach, ns, want in [
            ("whole", 40_000, "yes"),
            ("whole", 60_000, "yes"),
            ("whole", 39_999, "below"),
            ("whole", 60_001, "above"),
            ("whole", 70_000, "above"),
            ("whole", 70_001, "beyond"),
            # A bound from above says nothing of how much less it is.
            ("at-most", 1, "bound holds"),
            ("at-most", 60_001, "above"),
            ("at-most", 70_001, "beyond"),
            ("at-least", 70_001, "bound holds"),
            ("at-least", 39_999, "below"),
        ]:
            with self.subTest(reach=reach, ns=ns):
                one = pair(reach, said=measured(largest=ns))
                self.assertEqual((one.verdict(), one.is_met()), (want, want in ("yes", "bound holds")))
        # A range may end a little later than the latest wakeup of any phase, by what the replay is off.
        self.assertEqual(pair(of=latencies(largest=(1, 2, 60_000), longest=59_500), said=measured(largest=59_900)).verdict(), "yes")

    def test_where_another_measured_figure_lies(self):
        of = {**latencies(), "p99": span(11_000, 18_000, 23_000)}
        for reach, ns, want in [
            ("whole", 11_000, "yes"),
            ("whole", 10_999, "below"),
            # Only of the maximum something is said of any phase.
            ("whole", 99_000, "above"),
            ("at-most", 10_999, "bound holds"),
            ("at-least", 99_000, "bound holds"),
            ("whole", None, None),
        ]:
            with self.subTest(reach=reach, ns=ns):
                one = pair(reach, of=of, said=measured(p99=ns))
                self.assertEqual((one.verdict("p99"), one.is_met("p99")), (want, want in ("yes", "bound holds")))
        self.assertIsNone(pair(of=latencies(p999=None)).verdict("p999"))

    def test_they_are_counted_where_the_model_changes(self):
        all_pairs = [pair(), pair(said=measured(largest=99_000)), pair(source="full", said=measured(largest=1))]
        self.assertEqual(predicting.verdicts(all_pairs), {"yes": 1, "bound holds": 0, "below": 0, "above": 0, "beyond": 1})


class Errors(unittest.TestCase):
    def test_of_the_measured_figure(self):
        one = pair(said=measured(p50=8_000, p99=40_000, p999=None))
        self.assertEqual([one.error(figure) for figure in predicting.FIGURES], [0.25, -0.5, None, 0.0])
        self.assertIsNone(pair(of=latencies(p999=None)).error("p999"))

    def test_words(self):
        for share, want in [(0.254, "+25 %"), (-0.5, "−50 %"), (0, "+0 %"), (1, "×2.00"), (14, "×15.0")]:
            self.assertEqual(predicting.percent(share), want)

    def test_median_without_sign_and_worst_with_it(self):
        # Off by +25 %, -50 % and 0.
        group = [pair(said=measured(p99=p99)) for p99 in (16_000, 40_000, 20_000)]
        self.assertEqual(predicting.off_by(group, "p99"), "25 %; −50 %")
        self.assertEqual(predicting.off_by([pair(of=latencies(p999=None))], "p999"), "–")


class Tables(unittest.TestCase):
    def test_a_row(self):
        self.assertEqual(
            predicting.row(pair("at-most", "full", "none", said=measured(p999=None, largest=61_000))),
            [
                "6.1-cloud, find",
                "full → none",
                "≤ 10.0 / 10.0 (+0 %)",
                "≤ 20.0 / 20.0 (+0 %)",
                "≤ 30.0 / –",
                "≤ 50.0 (40.0–60.0)",
                "61.0 (−18 %)",
                "**above**",
            ],
        )
        self.assertEqual(predicting.row(pair())[-1], "yes")

    def test_the_range_over_the_phases_stands_beside_a_figure(self):
        of = {**latencies(), "p99": span(11_800, 18_400, 23_100)}
        self.assertEqual(predicting.figure_of(pair(of=of, said=measured(p99=15_700)), "p99"), "18.4 (11.8–23.1) / 15.7 (+17 %)")

    def test_how_wide_the_ranges_of_other_models_are(self):
        of = lambda low, high: {**latencies(p999=None), "p99": span(low, 20_000, high)}
        all_pairs = [pair(of=of(19_000, 21_000)), pair(of=of(15_000, 25_000)), pair(of=of(18_000, 22_000)), pair(source="full", of=of(0, 90_000))]
        lines = predicting.widths(all_pairs).splitlines()
        self.assertEqual(lines[2:], ["| find | 20 % | – | 40 % |", "| all | 20 % | – | 40 % |"])

    def test_the_summary_has_a_row_for_each_direction(self):
        all_pairs = [
            pair(source="none", target="none"),
            pair(source="full", target="none", said=measured(p999=60_000, largest=200_000)),
            pair(said=measured(largest=40_000)),
            pair(),
        ]
        lines = predicting.summary(all_pairs).splitlines()
        self.assertEqual(
            lines[2:],
            [
                "| none → full | 2 | 2 of 2 | 2 of 2 | 2 of 2 | 0 %; +0 % | 0 %; +0 % | 12 %; +25 % |",
                "| full → none | 1 | 1 of 1 | 0 of 1 | 0 of 1 | 0 %; +0 % | 50 %; −50 % | 75 %; −75 % |",
                "| all other models | 3 | 3 of 3 | 2 of 3 | 2 of 3 | 0 %; +0 % | 0 %; −50 % | 25 %; −75 % |",
                "| the same model | 1 | 1 of 1 | 1 of 1 | 1 of 1 | 0 %; +0 % | 0 %; +0 % | 0 %; +0 % |",
            ],
        )


class Seeds(unittest.TestCase):
    def all_pairs(self):
        # Three timers: 10, 25 and 30 µs measured where 18, 20 and 22 were predicted.
        of = lambda ns: {**latencies(p999=None), "p99": span(11_000, ns, 28_000)}
        seeds = [(1, 18_000, 10_000), (2, 20_000, 25_000), (3, 22_000, 30_000)]
        return [pair(of=of(predicted), said=measured(p99=ns), seed=seed) for seed, predicted, ns in seeds]

    def test_medians_over_seeds_are_compared(self):
        lines = predicting.over_seeds([*self.all_pairs(), pair(source="full")]).splitlines()
        self.assertEqual(
            lines[2:],
            [
                "| 6.1-cloud, find | none → full | 3 | 20.0 (18.0–22.0) / 25.0 (10.0–30.0) (−20 %) | – / 30.0 | 50.0 / 50.0 (+0 %) | 1 of 3 | 3 of 3 |",
                "| 6.1-cloud, find | full → full | 1 | 20.0 / 20.0 (+0 %) | 30.0 / 30.0 (+0 %) | 50.0 / 50.0 (+0 %) | 1 of 1 | 1 of 1 |",
            ],
        )

    def test_of_one_seed_there_is_nothing_more_to_say(self):
        self.assertIsNone(predicting.over_seeds([pair(), pair(source="full")]))
        self.assertEqual(predicting.row(pair())[0], "6.1-cloud, find")
        self.assertIn("| 6.1-cloud, find, seed 2 |", predicting.table(self.all_pairs()))

    def test_what_is_no_list_of_seeds_is_refused(self):
        self.assertEqual(score_predict.arguments(["--seeds", "1,3"]).seeds, [1, 3])
        for wrong in ("", "1,", "x", "1-3", "2,2"):
            with self.subTest(wrong), self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
                score_predict.arguments(["--seeds", wrong])
            self.assertIn("--seeds", said.getvalue())


class Runs(unittest.TestCase):
    """What is run: a lab that is made up."""

    def score(self, folder, record, predicts, words=()):
        """The results of one kernel and load, and how often something was predicted."""
        plan = score_predict.arguments(["--kernels", "6.1-cloud", "--loads", "find", "--keep", folder, *words])
        plan.program = "0123"
        lab = mock.Mock(binary="wakescope", folder=Path(folder), seen={})
        lab.command.return_value = ["wakescope"]
        done = subprocess.CompletedProcess([], 0, json.dumps(record), "")
        with (
            mock.patch.object(score_predict.subprocess, "run", side_effect=[done, KeyboardInterrupt]),
            mock.patch.object(score_predict, "execute", side_effect=predicts) as ran,
            contextlib.redirect_stderr(io.StringIO()),
        ):
            return score_predict.results(plan, lab), ran.call_count

    def record(self):
        cell = lambda asked, status, reason="": {"asked": asked, "status": status, "reason": reason, "run": f"/cells/{asked * 8}"}
        return {"cells": [cell("none", "ok"), cell("full", "ok"), cell("lazy", "ignored", "another model"), cell("voluntary", "failed", "it hung")]}

    def test_it_goes_on_where_it_was_ended(self):
        said = lambda model: mock.Mock(output=json.dumps({"recorded": model}))
        with tempfile.TemporaryDirectory() as folder:
            (found, missing), count = self.score(folder, self.record(), [said("none"), SystemExit("ended")])
            self.assertEqual((found, count), ([("6.1-cloud", "find", 1, {"none": {"recorded": "none"}})], 2))
            self.assertEqual(missing, ["- 6.1-cloud, find: voluntary: it hung", "- 6.1-cloud, find: predicted from full: ended"])
            (found, missing), count = self.score(folder, self.record(), [said("full")])
            self.assertEqual(found, [("6.1-cloud", "find", 1, {"none": {"recorded": "none"}, "full": {"recorded": "full"}})])
            self.assertEqual((count, missing), (1, ["- 6.1-cloud, find: voluntary: it hung"]))

    def test_ended_it_tells_what_there_is(self):
        said = lambda model: mock.Mock(output=json.dumps({"recorded": model}))
        predicts = [said("none"), said("full")]
        with tempfile.TemporaryDirectory() as folder:
            (found, missing), _count = self.score(folder, self.record(), predicts, ["--loads", "find,launch", "--kernels", "6.1-cloud,other"])
        self.assertEqual([(kernel, load, list(of)) for kernel, load, _seed, of in found], [("6.1-cloud", "find", ["none", "full"])])
        ended = [f"- {which}: ended before" for which in ("other, find", "6.1-cloud, launch", "other, launch")]
        self.assertEqual(missing, ["- 6.1-cloud, find: voluntary: it hung", *ended])

    def test_each_seed_is_predicted_from_all_others_together(self):
        cells = lambda seed: {model: {"cells": [{"key": f"{model}{seed}"}]} for model in ("none", "full") if (model, seed) != ("full", 2)}
        found = [("6.1-cloud", "find", seed, cells(seed)) for seed in (1, 2, 3)] + [("6.1-cloud", "launch", seed, cells(seed)) for seed in (1, 2)]
        lab = mock.Mock(binary="wakescope", folder=Path("/"))
        asked = []

        def execute(command, *_):
            asked.append(command[2:-1])
            if asked[-1] == ["none1", "none2"]:
                raise SystemExit("bench: wakescope: cannot look into it")
            return mock.Mock(output="{}")

        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(score_predict, "execute", side_effect=execute),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            plan = score_predict.arguments(["--keep", folder])
            plan.program = "0123"
            together, missing = score_predict.from_other_seeds(plan, lab, found)
        # Of `full` the second seed has no cell: one cell is left beside the first and the third.
        self.assertEqual(asked, [["none2", "none3"], ["none1", "none3"], ["full1", "full3"], ["none1", "none2"]])
        self.assertEqual([(load, seed, list(of)) for _kernel, load, seed, of in together], [("find", 1, ["none"]), ("find", 2, ["none", "full"])])
        self.assertEqual(missing, ["- 6.1-cloud, find, all seeds but 3: predicted from none: cannot look into it"])

    def test_each_seed_is_a_lab_of_its_own(self):
        said = lambda model: mock.Mock(output=json.dumps({"recorded": model}))
        with tempfile.TemporaryDirectory() as folder:
            (found, missing), _count = self.score(folder, self.record(), [said("none"), said("full")], ["--seeds", "4,5"])
        self.assertEqual([(kernel, load, seed) for kernel, load, seed, _of in found], [("6.1-cloud", "find", 4)])
        self.assertEqual(missing, ["- 6.1-cloud, find, seed 4: voluntary: it hung", "- 6.1-cloud, find, seed 5: ended before"])


if __name__ == "__main__":
    unittest.main()
