"""Tests of how the comparisons of explain with the emulator are added up."""

import contextlib
import io
import unittest

import score_scope
import scope_score


def spread(least, middle, most):
    return {"min": least, "p50": middle, "max": most}


def of_cause(cause, wakeups, same_cause, same_culprit, longer_ns):
    counts = {"wakeups": wakeups, "same_cause": same_cause, "same_culprit": same_culprit}
    return {"cause": cause, **counts, "longer_ns": longer_ns}


OTHER = {
    "expiry_ns": 1_234_567,
    "wakeup_latency_ns": 11_000,
    "said": {"cause": "irq_off", "culprit": {"kind": "function", "name": "free_bulk", "module": None}},
    "said_ns": 4_100,
    "seen": {"cause": "preempt_off", "culprit": {"kind": "none"}},
    "seen_ns": 4_200,
}


def record(causes, others=(), no_episodes=None):
    if not causes:
        return {"first_blame": None, "no_episodes": no_episodes}
    counts = {key: sum(cause[key] for cause in causes) for key in ("wakeups", "same_cause", "same_culprit")}
    spreads = [cause["longer_ns"] for cause in causes if cause["longer_ns"]]
    all_of_it = spreads[0] if len(spreads) == 1 else spread(-60, -8, 900)
    counts["held_by_nothing"] = 3
    return {"first_blame": {**counts, "longer_ns": all_of_it, "causes": causes, "others": list(others)}, "no_episodes": None}


RECORDS = [
    ("6.1 find", record([of_cause("irq_off", 10, 9, 8, spread(-60, -56, 9)), of_cause("preempt_off", 2, 2, 2, spread(5, 6, 900))], [OTHER])),
    ("6.1 launch", record([of_cause("irq_off", 5, 5, 5, spread(-52, -52, 12))])),
    ("7.2 find", record([], no_episodes="its clock differs")),
    ("7.2 launch", record([])),
]


class Sums(unittest.TestCase):
    def test_cells_stand_by_themselves(self):
        rows = scope_score.by_cell(RECORDS)
        self.assertEqual(rows[0], ["6.1 find", "3", "12", "91.7 %", "83.3 %", "−60 ns", "−8 ns", "+900 ns"])
        self.assertEqual(rows[1], ["6.1 launch", "3", "5", "100.0 %", "100.0 %", "−52 ns", "−52 ns", "+12 ns"])
        self.assertEqual(rows[2][:3] + rows[2][5:], ["7.2 find", "0", "0", "–", "–", "–"])

    def test_causes_are_added_up_over_cells(self):
        rows = scope_score.by_cause(RECORDS)
        self.assertEqual(rows[0], ["irq off", "15", "93.3 %", "86.7 %", "−60 ns", "–", "+12 ns"])
        self.assertEqual(rows[1], ["preempt off", "2", "100.0 %", "100.0 %", "+5 ns", "+6 ns", "+900 ns"])

    def test_what_differs_is_named_with_the_episode(self):
        (line,) = scope_score.disagreements(RECORDS)
        self.assertIn("6.1 find, due 1,234,567 ns after the start, late by 11,000 ns", line)
        self.assertIn("explain says irq off, `free_bulk` 4,100 ns; most seen: preempt off 4,200 ns", line)

    def test_cells_without_a_comparison_are_named_with_the_reason(self):
        differs, nothing = scope_score.without(RECORDS)
        self.assertEqual(differs, "- 7.2 find: its clock differs")
        self.assertTrue(nothing.startswith("- 7.2 launch: explain blames nothing but"))


class Arguments(unittest.TestCase):
    def test_a_guest_has_a_kernel_and_a_model(self):
        self.assertEqual(len(score_scope.arguments([]).guests), 12)
        self.assertEqual(len(score_scope.arguments(["--arch", "arm64"]).guests), 2)
        message = io.StringIO()
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(message):
            score_scope.arguments(["--guests", "6.1-cloud"])
        self.assertIn("not KERNEL/MODEL: 6.1-cloud", message.getvalue())


if __name__ == "__main__":
    unittest.main()
