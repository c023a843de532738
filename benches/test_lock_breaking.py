"""Tests of the arithmetic of lock breaking."""

import math
import unittest
import xml.dom.minidom

import lock_breaking
from lock_breaking import Figures

MS = 1_000_000


def run(max_ns=10_000):
    return {"origin_ns": 100 * MS, "duration_ns": 500 * MS, "threads": [{"missed": 2}, {"missed": 3}],
            "summary": {"max_ns": max_ns}}


class OfARun(unittest.TestCase):
    def test_sections_beside_the_measurement_do_not_count(self):
        log = f"""0 {50 * MS} {60 * MS} 9000 9000
0 {99 * MS} {109 * MS} 9000 9000
0 {200 * MS} {210 * MS} 1000 300
0 {300 * MS} {310 * MS} 3000 100
0 {595 * MS} {605 * MS} 9000 9000
"""
        self.assertEqual(lock_breaking.figures(run(), log), Figures(200.0, 20.0, 10_000, 5, 2))

    def test_a_run_without_a_section_has_no_figures(self):
        with self.assertRaisesRegex(ValueError, "no section"):
            lock_breaking.figures(run(), f"0 {50 * MS} {60 * MS} 9000 9000\n")

    def test_a_loop_that_repeats_nearly_all_of_its_turns_is_in_a_livelock(self):
        for turns, work, want in [(10_000, 99, True), (10_000, 101, False), (10_000, 0, True), (3, 3, False)]:
            one = Figures(turns, work, 1, 0, 1)
            self.assertEqual(one.is_livelock(), want, (turns, work))
            self.assertEqual(lock_breaking.shown_work(one).startswith("**"), want, (turns, work))


class OfALoad(unittest.TestCase):
    def test_how_often_it_looks(self):
        for load, want in [
            ("disturb-loop-restart-every-1000-10ms", 1000),
            ("disturb-loop-restart-10ms", 100),
            ("disturb-loop-lock-break-every-1-300us", 1),
            ("disturb-spin-lock-10ms", math.inf),
        ]:
            self.assertEqual(lock_breaking.every(load), want, load)


class Picture(unittest.TestCase):
    def test_it_is_xml_with_a_curve_a_model_and_a_point_a_measurement(self):
        points = {1: Figures(11_000, 0.0, 5_000, 0, 5), math.inf: Figures(16_000, 16_000, 10 * MS, 5, 5)}
        panels = [("1 kHz", {"none": points, "full": points}), ("50 kHz", {"none": points, "full": points})]
        picture = xml.dom.minidom.parseString(lock_breaking.picture(panels))
        self.assertEqual(len(picture.getElementsByTagName("title")), 8)
        curves = [path for path in picture.getElementsByTagName("path") if path.getAttribute("fill") == "none"]
        self.assertEqual(len(curves), 4)


if __name__ == "__main__":
    unittest.main()
