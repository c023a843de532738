"""What `make score` asks of guests."""

import contextlib
import io
import unittest

import score


class Seconds(unittest.TestCase):
    def setUp(self):
        self.usual = dict(score.SECONDS)

    def tearDown(self):
        score.SECONDS.update(self.usual)

    def samples(self, words, of):
        score.SECONDS.update(self.usual)
        score.arguments(words)
        command = score.guests_command("amd64", "6.1-cloud", "full", ["irqs-off"], "300us", 300_000, 1, of)
        return int(command[command.index("--samples") + 1])

    def test_guests_measure_for_as_long_as_is_asked_for(self):
        # A wakeup each 380 us: the length, and 80 us.
        for words, of, want in [
            ([], "lab", 13_157),
            ([], "sections", 5_263),
            (["--seconds", "1"], "sections", 2_631),
            (["--seconds", "0.5"], "lab", 1_315),
            (["--quick"], "sections", 1_052),
            (["--quick", "--seconds", "1"], "sections", 2_631),
        ]:
            self.assertEqual(self.samples(words, of), want, words)

    def test_no_time_is_refused(self):
        for seconds in ["0", "-1", "nan", "inf"]:
            message = io.StringIO()
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(message):
                score.arguments(["--seconds", seconds])
            self.assertIn("--seconds must be", message.getvalue())


class Beside(unittest.TestCase):
    def test_another_load_runs_beside_each_disturbance(self):
        for words, want in [
            ([], "disturb-irqs-off-300us,disturb-nmi-300us"),
            (["--beside", "find"], "disturb-irqs-off-300us+find,disturb-nmi-300us+find"),
        ]:
            plan = score.arguments(words)
            kinds = ["irqs-off", "nmi"]
            command = score.guests_command("amd64", "6.1-cloud", "full", kinds, "300us", 300_000, 1, beside=plan.beside)
            self.assertEqual(command[command.index("--load") + 1], want)
            self.assertEqual(score.guest_name("amd64", "6.1-cloud", "full", plan.beside).endswith("full"), not words)


if __name__ == "__main__":
    unittest.main()
