"""Tests of the lab that benchmarks run cells in. None needs the command."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from lab import Lab


class Folders(unittest.TestCase):
    def test_a_folder_keeps_what_it_has_and_takes_the_rest(self):
        with tempfile.TemporaryDirectory() as users, tempfile.TemporaryDirectory() as kept:
            Path(kept, "kernels").mkdir()
            with mock.patch.dict(os.environ, {"WAKESCOPE_CACHE": users}):
                for _again in range(2):
                    Lab("wakescope", kept)
            self.assertFalse(Path(kept, "kernels").is_symlink())
            self.assertEqual(os.readlink(Path(kept, "qemu")), str(Path(users, "qemu")))

    def test_within_booting_states_are_there_and_empty(self):
        with tempfile.TemporaryDirectory() as users, tempfile.TemporaryDirectory() as kept:
            Path(kept, "states").mkdir()
            state = Path(kept, "states", "0a1b")
            state.write_bytes(b"a machine")
            with mock.patch.dict(os.environ, {"WAKESCOPE_CACHE": users}):
                lab = Lab("wakescope", kept)
            with self.assertRaises(SystemExit), lab.booting():
                self.assertEqual(state.read_bytes(), b"")
                # A lab removes it.
                state.unlink()
                raise SystemExit("a lab failed")
            self.assertEqual(state.read_bytes(), b"a machine")
            self.assertEqual(os.listdir(Path(kept, "states")), ["0a1b"])


if __name__ == "__main__":
    unittest.main()
