"""Tests of the tables of what watching costs."""

import unittest

import figures
import watch
from test_explain import rows_of

class Losses(unittest.TestCase):
    def rows(self, with_aims=True, **other):
        lost = {watch.EMPTY: 4, watch.WATCH: 6, watch.RUNQLAT_OF_ALL: 30, **other}
        seconds = {"nothing": [6.0, 12.0]}
        seconds.update({name: [alone / (1 - part / 100) for alone in (6.0, 12.0)] for name, part in lost.items()})
        return rows_of(watch.losses(seconds, with_aims))

    def test_everybody_who_looks_on_has_a_row(self):
        self.assertEqual(list(self.rows()), list(watch.onlookers("wakescope", "folder")))

    def test_ours_is_held_against_both_others(self):
        rows = self.rows()
        self.assertEqual(rows[watch.EMPTY][2:], ["1.50 (1.50–1.50)", "1.25: **missed**"])
        self.assertEqual(rows[watch.RUNQLAT_OF_ALL][2:], ["0.20 (0.20–0.20)", "0.25: met"])
        self.assertEqual(rows[watch.WATCH][1:], ["6.00 (6.00–6.00)", "", ""])
        self.assertEqual({cells[3] for cells in self.rows(with_aims=False).values()}, {""})

    def test_where_an_empty_program_loses_nothing_there_is_no_share_of_it(self):
        self.assertEqual(self.rows(**{watch.EMPTY: -1})[watch.EMPTY][2:], ["", "1.25: not known"])


class Costs(unittest.TestCase):
    def test_what_was_taken_before_does_not_count(self):
        found = watch.taken((1_000_000_000, 500), (1_030_000_000, 80_500), 20)
        self.assertEqual(found, {"agent": 0.15, "switches": 4_000.0})

    def test_what_is_taken_of_tasks_that_are_moved_is_a_part_of_each_switch(self):
        before = {7: ("watch_switch", 1_000, 10), 8: ("watch_move", 50, 1)}
        after = {7: ("watch_switch", 5_000, 30), 8: ("watch_move", 450, 3), 9: ("watch_lacks", 0, 0)}
        self.assertEqual(watch.ns_per_switch(before, after), 220.0)

    def test_the_aim_is_at_ten_thousand_switches_a_second(self):
        run = {"agent": 0.05, "switch_ns": 100.0, "switches": 5_000.0, "resident": 30, "own": 5, "maps": 40}
        rows = rows_of(watch.costs([run]))
        self.assertEqual(rows["both at 10,000 switches per second, % of a CPU"], ["0.15", "0.2 %: met"])
        self.assertEqual(rows["the command, % of a CPU"][1], "0.1 %: met")
        self.assertEqual(rows["memory of its own, MiB"][1], "16 MiB: met")
        self.assertEqual(rows["the kernel's maps, MiB"], ["40.0", "32 MiB: **missed**"])

    def test_memory_is_the_process_s_own_and_the_kernel_s_for_it(self):
        status = "Name:\twakescope\nVmRSS:\t   20480 kB\nRssAnon:\t    2048 kB\nRssFile:\t 99 kB\n"
        self.assertEqual(watch.own_mib(status), {"resident": 20.0, "own": 2.0})
        fdinfo = "pos:\t0\nmap_type:\t2\nmemlock:\t3145728\nmap_id:\t5\n"
        self.assertEqual(figures.locked_bytes(fdinfo), 3_145_728)


if __name__ == "__main__":
    unittest.main()
