#!/usr/bin/env python3
"""Tests that the simulator matches published tables as documented in docs/design/simulator.md.  validation_test.py PATH/tutti"""

import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "perf", "simulator"))
sys.dont_write_bytecode = True
import tables  # noqa: E402
import validate  # noqa: E402

TUTTI = sys.argv.pop() if len(sys.argv) > 1 else tables.TUTTI
# Maximum mean errors by size in per cent, slightly above the current ones. None if the table has no such rows.
BANDS = {
    ("a100-8.csv", "all_reduce", "ring", 8): (4, 6, 4),
    ("a100-8.csv", "all_gather", "ring", 8): (6, 9, 7),
    ("a100-8.csv", "reduce_scatter", "ring", 8): (5, 12, 4),
    ("a100-8.csv", "all_to_all", "direct", 8): (60, 30, 5),  # The simulator does not model host time per peer.
    ("a100-8.csv", "broadcast", "chain", 8): (6, 9, 8),
    ("a100-8.csv", "reduce", "chain", 8): (4, 11, 9),
    ("h100-4.csv", "all_reduce", "ring", 4): (3, 8, 5),
    ("h100-4.csv", "all_gather", "ring", 4): (12, 10, 5),
    ("h100-4.csv", "reduce_scatter", "ring", 4): (9, 5, 4),
    ("h200.csv", "all_reduce", "ring", 8): (None, None, 3),
    ("b200.csv", "all_reduce", "ring", 4): (None, None, 3),
    ("h100-arms.csv", "all_reduce", "ring", 2): (None, None, 4),
    ("h100-arms.csv", "all_reduce", "nvls", 4): (None, None, 2),
    ("h100-arms.csv", "all_reduce", "nvls", 2): (None, None, 6),
    ("h100-arms.csv", "all_reduce", "nvls", 6): (None, None, 2),
    ("h200.csv", "all_reduce", "nvls", 5): (None, None, 2),
    ("h200.csv", "all_reduce", "nvls", 8): (None, None, 2),
    ("b200.csv", "all_reduce", "nvls", 6): (None, None, 3),
    ("b200.csv", "all_reduce", "nvls", 8): (None, None, 1),
    ("h100-arms.csv", "all_reduce", "double_binary_tree", 4): (None, None, 8),
    ("gb200-nvlink.csv", "all_reduce", "", 4): (8, 12, None),
    ("gb200-rack.csv", "all_reduce", "", 8): (34, 24, 4),  # Launches on this system are slower than on other Grace systems.
    ("gb200-rack.csv", "all_reduce", "", 72): (None, None, 9),
    ("h100-graph.csv", "all_reduce", "", 8): (None, 6, 5),
    ("h200-graph.csv", "all_reduce", "", 8): (12, 20, None),
    ("h100-graph.csv", "all_reduce", "", 6): (None, 10, None),
    ("h200.csv", "all_gather", "ring", 8): (None, None, 3),
}


class Validation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.answers = tables.answers([row for table in tables.TABLES for row in tables.read(table)], TUTTI)

    def test_errors_stay_within_bands(self):
        for (file, collective, algorithm, ranks), limits in BANDS.items():
            wanted = (file, collective, algorithm, ranks)
            mine = [answer for answer in self.answers
                    if (answer.row.table.file, answer.row.collective, answer.row.algorithm, answer.row.ranks) == wanted]
            for (name, low, high), limit in zip(tables.BANDS, limits):
                errors = [abs(tables.error(answer)) for answer in mine if low <= answer.row.bytes < high]
                with self.subTest(table=wanted, band=name):
                    self.assertEqual(bool(errors), limit is not None)
                    if errors:
                        self.assertLessEqual(100 * sum(errors) / len(errors), limit)

    def test_predicted_algorithm_has_little_regret(self):
        for part, calls, limit in ((tables.FITTED, 3, 0.005), (tables.SEEN, 150, 0.06)):
            chosen = validate.regrets(self.answers, part)
            with self.subTest(part=part):
                self.assertGreater(len(chosen), calls)
                self.assertLess(sum(regret for regret, *_ in chosen) / len(chosen), limit)

    def test_rows_used_for_fitting_do_not_count_as_held_out(self):
        parts = {}
        for answer in self.answers:
            row = answer.row
            parts.setdefault((row.table.file, row.collective, row.ranks), set()).add(row.table.part(row))
        self.assertEqual(parts["a100-8.csv", "broadcast", 8], {tables.SEEN})
        self.assertEqual(parts["a100-8.csv", "reduce", 8], {tables.SEEN})
        self.assertEqual(parts["a100-8.csv", "all_reduce", 8], {tables.FITTED, tables.SEEN})
        self.assertEqual(parts["gb200-network.csv", "all_gather", 32], {tables.SEEN})
        self.assertEqual(parts["gb200-network.csv", "all_gather", 4], {tables.SEEN})
        self.assertEqual(parts["gb200-network-by-port.csv", "all_reduce", 4], {tables.SEEN})
        self.assertEqual(parts["h200.csv", "all_reduce", 5], {tables.SEEN})
        self.assertEqual(parts["gb200-rack.csv", "all_reduce", 8], {tables.FITTED, tables.SEEN})
        self.assertEqual(parts["gb200-rack.csv", "all_reduce", 72], {tables.FITTED})

    def test_nvls_is_chosen_like_nccl(self):
        chosen = {(answer.row.table.file, answer.row.ranks, answer.row.bytes): answer.algorithm
                  for answer in self.answers if not answer.row.algorithm}
        mib = 1 << 20
        self.assertEqual(chosen["h100-graph.csv", 8, mib], "ring")
        self.assertEqual(chosen["h100-graph.csv", 8, 2 * mib], "nvls")
        self.assertEqual(chosen["gb200-rack.csv", 72, 8192 * mib], "nvls")

    def test_page_matches_results(self):
        with open(validate.PAGE, encoding="utf-8") as file:
            page = file.read().split(validate.BEGIN)[1].split(validate.END)[0]
        said, reached = ([float(each) for each in re.findall(r"\d+\.\d+", text)]
                         for text in (page, validate.report(self.answers)))
        self.assertEqual(len(said), len(reached))
        for one, other in zip(said, reached):
            self.assertAlmostEqual(one, other, delta=0.3, msg="run perf/simulator/validate.py --write")


if __name__ == "__main__":
    unittest.main()
