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


if __name__ == "__main__":
    unittest.main()
