"""Tests of the tables of what tracing costs in instructions."""

import unittest

import tracer
from test_explain import rows_of

CONSOLE = """[    1.0] clocksource: Switched
tracer: places probe a b c
tracer: pipe 0 nobody 1000.000
tracer: pipe 0 probe-nothing 1100.000
[    2.0] tracer: pipe 0 probe 1108.000
tracer: pipe 1 nobody 1000.000
tracer: pipe 1 probe-nothing 1100.000
tracer: pipe 1 probe 1130.000
tracer: latency 0 nobody 3000.000
tracer: done
"""


class Guests(unittest.TestCase):
    def test_lines_of_the_kernel_are_passed_over(self):
        ns, places = tracer.measured(CONSOLE)
        self.assertEqual(places, {"probe": 3})
        self.assertEqual(ns["pipe"]["probe"], [1108, 1130])
        self.assertEqual(ns["latency"], {"nobody": [3000]})

    def test_a_guest_that_did_not_end_has_no_figures(self):
        with self.assertRaisesRegex(ValueError, "latency 0 nobody"):
            tracer.measured(CONSOLE.replace("done", "FAILED"))

    def test_what_a_tracer_loses_is_held_against_what_nothing_loses(self):
        ns = {"nobody": [1000, 1000], "probe-nothing": [1100, 1100], "probe": [1108, 1110]}
        rows = rows_of(tracer.losses("pipe", ns))
        self.assertEqual(rows["`explain`"], ["1,109 (1,108–1,110)", "109 (108–110)", "1.09 (1.08–1.10)", "1.10: met"])
        ns["probe"] = [1112, 1115]
        self.assertEqual(rows_of(tracer.losses("pipe", ns))["`explain`"][3], "1.10: **missed**")
        # Wakeups that are followed cost something wherever programs are.
        self.assertEqual(rows_of(tracer.losses("latency", ns))["`explain`"][3], "")

    def test_what_follows_a_wait_has_no_aim(self):
        ns = {"nobody": [1000], "waiting-nothing": [1100], "waiting": [1400]}
        row = rows_of(tracer.losses("pipe", ns))["`explain --pid` of a thread that waits for the CPU"]
        self.assertEqual(row, ["1,400", "400", "4.00", ""])
