"""Tests of the tables of what explaining costs."""

import unittest

import explain
import figures
import programs


def rows_of(table):
    """The cells of each row, by the row's name."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {name: cells for name, *cells in rows}


class Differences(unittest.TestCase):
    def test_rounds_are_held_against_each_other_in_either_direction(self):
        for ours, verdict in [(11.0, "met"), (12.5, "**missed**"), (7.5, "**missed**")]:
            results = {"measure": [(5.0, 10.0), (6.0, 20.0)], "explain": [(5.0, ours), (6.0, ours + 10)]}
            rows = rows_of(explain.differences(results))
            self.assertEqual(rows["`explain`, less `measure`"][2], f"2 µs: {verdict}", ours)
            self.assertEqual(rows["`explain`, less `measure`"][0], "0 (0–0)")
            self.assertEqual(rows["`measure`"][1], "15.0 (10.0–20.0)")


class Losses(unittest.TestCase):
    # Percent that each of them loses.
    LOST = {
        explain.FOLLOWING: 12,
        explain.CALLS: 10,
        explain.SELDOM: 4,
        explain.CALLS_FOR_PROBES: 8,
        "`explain`, probes at 1 ms": 20,
        "`measure` at 1 ms": 2,
        "bpftrace, runqlat": 48,
        "`perf sched record`": 60,
    }

    def rows(self, with_aims=True, **other):
        seconds = {"nothing": [6.0, 12.0]}
        lost = {**self.LOST, **other}
        seconds.update({name: [alone / (1 - part / 100) for alone in (6.0, 12.0)] for name, part in lost.items()})
        return rows_of(explain.losses(seconds, with_aims))

    def test_everybody_who_looks_on_has_a_row(self):
        names = list(explain.onlookers("wakescope", "folder", 1))
        self.assertEqual(names, ["nothing", *self.LOST])
        self.assertEqual(list(self.rows()), names)

    def test_what_is_lost_to_calling_programs_is_held_against_who_has_them(self):
        rows = self.rows()
        for name, share in [(explain.CALLS, "1.20"), (explain.CALLS_FOR_PROBES, "0.500"), ("bpftrace, runqlat", "0.250")]:
            self.assertEqual(float(rows[name][2].split()[0]), float(share), name)
        self.assertEqual(rows["`explain`, probes at 1 ms"][2:], ["", ""])

    def test_aims_are_of_both_that_hardly_wake_up(self):
        rows = self.rows()
        self.assertEqual(rows[explain.FOLLOWING][3], "6 %, 3 % wanted: **missed**")
        self.assertEqual(rows[explain.SELDOM][3], "6 %, 3 % wanted: met")
        self.assertEqual(rows[explain.CALLS][2:], ["1.20 (1.20–1.20)", "1.10: **missed**"])
        self.assertEqual(rows[explain.CALLS_FOR_PROBES][2:], ["0.50 (0.50–0.50)", "1.10: met"])
        self.assertEqual(rows["bpftrace, runqlat"][3], "0.33: met")
        self.assertEqual(rows["`perf sched record`"][3], "0.10: **missed**")
        self.assertEqual({cells[3] for cells in self.rows(with_aims=False).values()}, {""})

    def test_where_another_loses_nothing_there_is_no_share_of_it(self):
        rows = self.rows(**{"bpftrace, runqlat": -1})
        self.assertEqual(rows["bpftrace, runqlat"][2:], ["", "0.33: not known"])


class Programs(unittest.TestCase):
    def test_runs_are_those_in_between_and_seldom_programs_are_left_out(self):
        before = {1: ("on_switch", 1_000, 10), 2: ("on_softirq", 0, 0)}
        after = {1: ("on_switch", 61_000, 1_010), 2: ("on_softirq", 900, 3), 3: ("", 50_000, 1_000), 4: ("", 54_000, 1_000)}
        self.assertEqual(programs.ns_per_run(before, after, 1_000), {"on_switch": 60.0, "": 52.0})

    def test_of_each_run_an_empty_one_of_the_same_round_is_taken_away(self):
        taken = {"ours": [{"a": 60.0, "b": 55.0}, {"a": 70.0, "b": 65.0, "c": 1.0}], "empty": [{"": 50.0}, {"": 60.0}]}
        rows = programs.costs(taken, {"ours": "empty"}).splitlines()[-4:]
        cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
        self.assertEqual([row[1] for row in cells], ["`a`", "`b`", "all 2", "each"])
        self.assertEqual([row[3].partition(" ")[0] for row in cells], ["10.0", "5.00", "15.0", ""])

    def test_a_program_is_known_by_its_own_handle(self):
        self.assertEqual(figures.program_number("pos:\t0\nprog_type:\t26\nprog_id:\t579\nrun_cnt:\t0\n"), 579)
        self.assertIsNone(figures.program_number("link_type:\traw_tracepoint\nlink_id:\t3\nprog_id:\t579\n"))
        self.assertIsNone(figures.program_number("pos:\t0\nflags:\t02\n"))


if __name__ == "__main__":
    unittest.main()
