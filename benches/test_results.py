"""Whether the measurements of docs/results can be repeated."""

import importlib.machinery
import importlib.util
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "scripts/results"


def load():
    loader = importlib.machinery.SourceFileLoader("results", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("results", loader))
    loader.exec_module(module)
    return module


class Repeated(unittest.TestCase):
    """A folder that already holds a run is refused."""

    def test_runs_of_an_earlier_time_go(self):
        results = load()
        with tempfile.TemporaryDirectory() as into:
            results.INTO = Path(into)
            for name in ["one", "other"]:
                (results.INTO / "wakers" / name).mkdir(parents=True)
                (results.INTO / "wakers" / name / "run.json").write_text("{}")
            self.assertFalse(results.folder("wakers", "one").exists())
            self.assertTrue((results.INTO / "wakers/other/run.json").exists())
            self.assertEqual(results.folder("matrix"), results.INTO / "matrix")

    def test_every_run_is_written_there(self):
        script = SCRIPT.read_text()
        written = script.split('"--out",')[1:]
        self.assertEqual(len(written), 5)
        self.assertTrue(all(rest.strip().startswith("folder(") for rest in written))


if __name__ == "__main__":
    unittest.main()
