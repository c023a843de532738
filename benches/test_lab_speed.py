"""Tests of how the lab's speed is computed. None needs the command."""

import tomllib
import unittest
from unittest import mock

import guests
import lab_speed

COMMAND = [
    "qemu", "-cpu", "max,-rdrand,-erms,-fsrm", "-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off,rr=record,rrfile=/dev/null",
    "-append", "tsc_early_khz=1000000 preempt=full -- lab-guest --results ttyS1",
]  # fmt: skip


class Speed(unittest.TestCase):
    def test_the_plan_is_the_shipped_one_without_its_comparisons(self):
        text = lab_speed.JOURNAL.read_text()
        whole, rest = tomllib.loads(text), tomllib.loads(lab_speed.without_comparisons(text))
        self.assertIn("compare", whole)
        self.assertEqual({key: value for key, value in whole.items() if key != "compare"}, rest)

    def test_what_all_seeds_take(self):
        self.assertEqual(lab_speed.whole(100.0, [50.0, 60.0, 90.0]), 640.0)

    def test_each_emulator_differs_in_one_thing(self):
        with mock.patch.object(lab_speed, "counter_khz", return_value=2_500_000):
            emulators = lab_speed.variants(COMMAND)
        self.assertEqual(emulators.pop(lab_speed.LABS), COMMAND)
        counts = [guests.value(command, "-icount") for command in emulators.values() if "-icount" in command]
        self.assertEqual(counts, ["shift=0,sleep=off", *[guests.value(COMMAND, "-icount")] * 3])
        buffers = [guests.value(command, "-accel").rpartition("=")[2] for command in emulators.values()]
        self.assertEqual(buffers, ["single", "single", "single", "32", "2000"])
        lean = guests.value(COMMAND, "-cpu")
        self.assertEqual([guests.value(command, "-cpu") for command in emulators.values()], [lean, lean, "max,-rdrand", lean, lean])
        real = [command for command in emulators.values() if "-icount" not in command]
        self.assertEqual([guests.parameters(command)[0][0] for command in real], ["tsc_early_khz=2500000"])


if __name__ == "__main__":
    unittest.main()
