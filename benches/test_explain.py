"""Tests of the tables of what explaining costs."""

import unittest

import explain


def rows_of(table):
    """The cells of each row, by the row's name."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {name: cells for name, *cells in rows}


class Differences(unittest.TestCase):
    def test_rounds_are_held_against_each_other_in_either_direction(self):
        for ours, verdict in [(11.0, "met"), (12.5, "**missed**"), (7.5, "**missed**")]:
            results = {"measure": [(5.0, 10.0), (6.0, 20.0)], "explain": [(5.0, ours), (6.0, ours + 10)]}
            rows = rows_of(explain.differences(results))
            self.assertEqual(rows["difference"][2], f"2 µs: {verdict}", ours)
            self.assertEqual(rows["difference"][0], "0 (0–0)")
            self.assertEqual(rows["`measure`"][1], "15.0 (10.0–20.0)")


if __name__ == "__main__":
    unittest.main()
