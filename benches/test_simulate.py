"""What is read out of the programs that simulate, and the theory that they are held to."""

import unittest

import simulate


class Simulate(unittest.TestCase):
    def test_the_longest_response_is_the_least_time_that_holds_all_work(self):
        # By hand: 6 ms of work; a second job of the first task, 7; of the second, 9; a third of the first, 10.
        self.assertEqual(simulate.worst_response_ms(), 10)

    def test_verdicts_and_states_of_both_checkers(self):
        holds = " full: every rule holds in all 8,272 states and 11,467 steps, with loops of 3 iterations at most\n"
        self.assertEqual(simulate.of_wakescope(holds), ("8,272", "holds"))
        self.assertEqual(simulate.of_wakescope(" full: a variable of the CPU was seen half-changed (catface)\n"), ("until the first", "broken"))
        self.assertEqual(simulate.of_pan("errors: 0\n    28154 states, stored\n"), ("28,154", "holds"))
        broken = "pan:1: assertion violated (changes==0)\nerrors: 1\n       30 states, stored\n"
        self.assertEqual(simulate.of_pan(broken), ("until the first", "broken"))

    def test_speeds_of_all_models(self):
        text = "none        123.4 million operations a second of CPU time,  2.50 million samples, 49.3 operations a sample, mean 1 ns, max 2 ns\n"
        self.assertEqual(simulate.speeds(text + text.replace("none", "full")), {"none": (123.4, 49.3), "full": (123.4, 49.3)})
        self.assertEqual(simulate.speeds("none: the scenario is wrong\n"), {})

    def test_a_search_that_did_not_end_is_no_verdict(self):
        for text in ["error: max search depth too small\nerrors: 0\n   9 states, stored\n", "   9 states, stored\n", ""]:
            with self.assertRaises(SystemExit):
                simulate.of_pan(text)

    def test_another_error_than_the_one_that_is_looked_for_is_no_verdict(self):
        with self.assertRaises(SystemExit):
            simulate.of_pan("pan:1: invalid end state (at depth 5)\nerrors: 1\n   9 states, stored\n")
        for text in [" full: deadlock: no task can run\n", " full: not all orders were tried\n", ""]:
            with self.assertRaises(SystemExit):
                simulate.of_wakescope(text)


if __name__ == "__main__":
    unittest.main()
