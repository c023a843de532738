"""The benchmark's arithmetic, by hand."""

import tempfile
import unittest
from pathlib import Path

import figures

OLD = """# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000\t000000
000001 000002\t000001
000002 000003\t000000
# Total: 000000005\t000000001
# Min Latencies: 00001 00001
# Avg Latencies: 00001 00001
# Max Latencies: 00321 00001
# Histogram Overflows: 00003 00001
# Histogram Overflow at cycle number:
# Thread 0: 00008 00021 # 00834 others
"""

NEW = """# Histogram
000021 000452\t000120
# Min Latencies: 00015 00018
# Histogram Overflows: 00000 00000
"""

CALLGRIND = """# callgrind format
thread: 2
fn=(7) loop
0 12
cfn=(9) clock_nanosleep@@GLIBC_2.17
calls=1500 34
0 118000
cfn=(9)
calls=500 34
0 3
cfn=(11) clock_gettime
calls=99 1
totals: 366007
"""


class Reading(unittest.TestCase):
    def test_cyclictest(self):
        self.assertEqual(figures.cyclictest_histogram(OLD), ({1: 3, 2: 3}, 4))
        self.assertEqual(figures.cyclictest_histogram(NEW), ({21: 572}, 0))
        self.assertEqual(figures.cyclictest_minimum(OLD), 1)
        self.assertEqual(figures.cyclictest_minimum(NEW), 15)

    def test_summary_lines(self):
        cyclictest = "T: 0 (32685) P:90 I:50 C:  39655 Min:      8 Act:   12 Avg:   14 Max:    5050\n"
        self.assertEqual(figures.wakeups(cyclictest), 39655)
        self.assertEqual(figures.wakeups(cyclictest + cyclictest.replace("T: 0", "T: 1")), 79310)
        redrawn = "T: 0 (1) A: 1 C:      10 Min: 1\x1b[K\nT: 0 (1) A: 1 C:    2000 Min: 1\x1b[K\n"
        self.assertEqual(figures.wakeups(redrawn), 2000)
        with self.assertRaises(ValueError):
            figures.wakeups("Unable to change scheduling policy!")

    def test_stress_ng(self):
        head = (
            "stress-ng: metrc: [1455] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s\n"
            "stress-ng: metrc: [1455]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)\n"
        )
        row = "stress-ng: metrc: [1455] copy-file          2390      1.00      0.37      0.32      2389.81        3449.06\n"
        self.assertEqual(figures.bogo_rate(head + row), 2389.81)
        self.assertIsNone(figures.bogo_rate(head))

    def test_counts_of_the_machine(self):
        stat = "cpu  1 2 3\nintr 8021 0 7\nctxt 123456\nbtime 17\n"
        self.assertEqual(figures.machine_counts(stat), {"ctxt": 123456, "intr": 8021})

    def test_gaps(self):
        rows = "    001 (us):\t 90326661 7\n    002 (us):\t 4 1\n    008 (us):\t 825 0 (including overflows)\n"
        self.assertEqual(figures.oslat_gaps(rows + "     Minimum:\t 1 1 (us)\n"), 830)
        with self.assertRaises(ValueError):
            figures.oslat_gaps("oslat: cannot set affinity")

    def test_wakeups_by_another_thread(self):
        run = {"threads": [{"woken": {"count": 4, "min_ns": 2500, "histogram": [[2496, 2513, 3], [9000, 9001, 1]]}}]}
        self.assertEqual(figures.woken_us(run), (4, 2.5, (3 * 2.504 + 9) / 4))
        thread = {"sender": {"samples": 7}, "receiver": {"min": 2, "avg": 2.74, "max": 45}}
        self.assertEqual(figures.rt_tests_us({"thread": {"0": thread}}), (7, 2, 2.74))

    def test_hackbench(self):
        self.assertEqual(figures.hackbench_seconds("Running with 4 groups\nTime: 0.873\n"), 0.873)

    def test_handles(self):
        for target in ["anon_inode:bpf-prog", "anon_inode:bpf_link", "anon_inode:[perf_event]"]:
            self.assertTrue(figures.is_tracing_handle(target), target)
        for target in ["anon_inode:bpf-map", "anon_inode:[eventpoll]", "/tmp/bpf-prog", "anon_inode:[timerfd]"]:
            self.assertFalse(figures.is_tracing_handle(target), target)

    def test_callgrind(self):
        self.assertEqual(figures.callgrind_totals(CALLGRIND), (366007, 2000))
        direct = CALLGRIND.replace("clock_nanosleep@@GLIBC_2.17", "syscall")
        self.assertEqual(figures.callgrind_totals(direct), (366007, 2000))
        self.assertEqual(figures.callgrind_totals(direct.replace("syscall", "syscall_cancel")), (366007, 0))


class Computing(unittest.TestCase):
    def test_median(self):
        self.assertEqual(figures.median_of_counts({1: 3, 2: 3}, 0), 1)
        self.assertEqual(figures.median_of_counts({1: 3, 2: 3}, 4), 2)
        self.assertIsNone(figures.median_of_counts({1: 3, 2: 3}, 7))
        self.assertIsNone(figures.median_of_counts({}))
        for share, want in [(0.01, 1), (0.5, 1), (0.51, 2), (1, 2)]:
            self.assertEqual(figures.quantile_of_counts({1: 50, 2: 50}, share), want)
        self.assertEqual(figures.upper_edges_as_counts([[8112, 8128, 3]]), {8127: 3})
        self.assertEqual(figures.buckets_as_counts([[8112, 8128, 3], [9000, 9016, 1]]), {8112: 3, 9000: 1})

    def test_slope(self):
        self.assertEqual(figures.slope((2_000, 366_007), (12_000, 2_136_007)), 177)

    def test_losses(self):
        self.assertEqual(figures.losses([1.0, 3.0], [1.25, 3.0]), [100 * (1 - 1 / 1.25), 0])
        # Who seems to make it faster costs nothing, and is no measure for others.
        self.assertEqual(figures.shares([4, -1, 2], [20, 10, -3]), [0.2, 0])

    def test_memory(self):
        self.assertEqual(figures.resident_kib("VmPeak:\t 99 kB\nVmRSS:\t    8412 kB\n"), 8412)
        self.assertIsNone(figures.resident_kib("State:\tZ (zombie)\n"))
        self.assertEqual(figures.early_and_late(list(range(100, 110))), (102, 109))
        self.assertEqual(figures.early_and_late([7]), (7, 7))
        with self.assertRaises(ValueError):
            figures.early_and_late([])

    def test_ratios_are_of_rounds(self):
        self.assertEqual(figures.ratios([1, 4], [2, 2]), [0.5, 2])
        self.assertEqual(figures.differences([1, 4], [2, 2]), [-1, 2])


class Writing(unittest.TestCase):
    def test_three_digits(self):
        for value, want in [(0, "0"), (0.1234, "0.12"), (1.234, "1.23"), (17.96, "18.0"), (176.9, "177"), (399_655, "399,655")]:
            self.assertEqual(figures.significant(value), want)
        self.assertEqual(figures.spread([3]), "3.00")
        self.assertEqual(figures.spread([3, 1, 2]), "2.00 (1.00–3.00)")

    def test_table(self):
        self.assertEqual(figures.table(["a", "b"], [["x", 1]]), "| a | b |\n| --- | ---: |\n| x | 1 |")

    def test_results_are_replaced(self):
        self.assertEqual(figures.put_between("a\n<b>\nold\n<e>\nc\n", "<b>", "<e>", "new"), "a\n<b>\nnew\n<e>\nc\n")

    def test_results_are_put_into_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page.md")
            page.write_text("a\n<!-- x: begin -->\nold\n<!-- x: end -->\nc\n")
            figures.put_into(page, "x", "new")
            self.assertEqual(page.read_text(), "a\n<!-- x: begin -->\n\nnew\n\n<!-- x: end -->\nc\n")

    def test_rows_are_replaced_where_they_are_once(self):
        head = ["kind", "machine", "n"]
        table = lambda *rows: figures.table(head, rows)
        old = [["a", "x", "1"], ["a", "y", "2"], ["b", "x", "3"]]
        other = figures.table(["kind", "machine", "m"], [["a", "x", "9"]])
        page = lambda *rows: f"{other}\n\ntext | a | x |\n\n{table(*rows)}\n\nend\n"
        new = [["a", "x", 7], ["b", "x", 8]]
        put, not_put = figures.with_rows(page(*old), head, new, 2)
        self.assertEqual((put, not_put), (page(new[0], old[1], new[1]), []))
        # One that is nowhere, and one that is twice, in two tables.
        twice = page(*old) + table(old[0])
        put, not_put = figures.with_rows(twice, head, [["c", "x", 4], ["a", "x", 7]], 2)
        self.assertEqual((put, not_put), (twice, [(["c", "x", "4"], 0), (["a", "x", "7"], 2)]))


if __name__ == "__main__":
    unittest.main()
