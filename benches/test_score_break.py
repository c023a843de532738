"""Tests of the table that a real preemption point is shown in, on predictions that are made up."""

import unittest

import score_break
from test_explain import rows_of
from test_predicting import latencies, measured


def prediction(said, replayed, broken):
    models = [
        {"model": "full", "as_recorded": latencies(p50=1), "broken": latencies(p50=1)},
        {"model": "none", "as_recorded": latencies(p50=2), "broken": broken},
    ]
    steps = [{"functions": ["dput"], "before_ns": 329_000, "after_ns": 18_000}, {"functions": ["f", "g"], "before_ns": 18_000, "after_ns": 9_000}]
    cells = [{"measured": said, "replayed": replayed}]
    return {"recorded": "none", "cells": cells, "models": models, "next": {"steps": steps}}


class Table(unittest.TestCase):
    def rows(self, **predicted):
        said = measured(p50=13_000, largest=320_000)
        replayed = measured(p50=13_000, p999=None, largest=352_000)
        without = prediction(said, replayed, latencies(p50=11_000, largest=(10_000, 20_000, 30_000), **predicted))
        with_point = prediction(measured(p50=10_000, largest=25_000), measured(), None)
        return rows_of(score_break.table(without, with_point))

    def test_what_is_predicted_stands_beside_what_the_other_kernel_measured(self):
        rows = self.rows()
        self.assertEqual(rows["without the point, measured"], ["13.0", "20.0", "30.0", "320"])
        self.assertEqual(rows["the same, replayed"], ["13.0, +0 %", "20.0, +0 %", "–", "352, +10 %"])
        self.assertEqual(rows["predicted: `--break dput=1us`"][0], "11.0, +10 %")
        self.assertEqual(rows["predicted: `--break dput=1us`"][3], "20.0 (10.0–30.0), −20 %")
        self.assertEqual(rows["with the point, measured"], ["10.0", "20.0", "30.0", "25.0"])

    def test_a_figure_that_there_is_not_is_a_dash(self):
        self.assertEqual(self.rows(p999=None)["predicted: `--break dput=1us`"][2], "–")

    def test_the_ranking_is_said(self):
        told = score_break.steps(prediction(measured(), measured(), None))
        self.assertEqual(told, "`dput`: 329 → 18.0; `f` and `g`: 18.0 → 9.00")
        self.assertEqual(score_break.steps({"next": {"steps": []}}), "nothing")


if __name__ == "__main__":
    unittest.main()
