#!/usr/bin/env python3
"""Tests of the checks and the output of perf/accuracy.  accuracy_test.py [BUILD]"""

import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "perf", "rounding"))
sys.dont_write_bytecode = True
import judge  # noqa: E402
import tables  # noqa: E402

BUILD = sys.argv.pop() if len(sys.argv) > 1 else os.path.join(ROOT, "build")


def cell(**other):
    """Returns a cell that passes all checks, with some values replaced."""
    return {"collective": "all_reduce", "data": "gaussian", "type": "float32", "format": "int8", "algorithm": "two_shot",
            "ranks": 8, "elements": 65536, "error": 0.0089, "error_of_terms": 0.0089, "peak": 0.012, "bias": 1e-6,
            "cosine": 0.99996, "roundings": 1.875, "growth": 1.37, "type_error": 0, "expected": 0.0089,
            "input_error": 0.0065, "output_error": 0.0065, "identical": True, "repeated": True, "idempotent": True,
            "lost": 0, "wrong": 0, "spoilt": 0, "stray": 0} | other


def accuracy(*arguments):
    command = [os.path.join(ROOT, "perf", "accuracy"), "--build", BUILD, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class Judgement(unittest.TestCase):
    def assert_error(self, words, *cells):
        found = judge.judge(list(cells))
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_reports_missing_numbers(self):
        for name in ("error", "input_error", "output_error"):
            self.assert_error("is not a number", cell(**{name: None}))
        self.assert_error("is not a number", cell(data="student", error=None))

    def test_accepts_expected_results(self):
        ring = {"algorithm": "ring", "ranks": 64, "error": 0.0369, "expected": 0.0369}
        self.assertEqual(judge.judge([cell(), cell(**ring), cell(identical=None, idempotent=None)]), [])

    def test_limits_errors_to_expected(self):
        self.assert_error("times the expected error", cell(format="int8_b32", error=0.0089 * 1.11))
        self.assert_error("times the expected error", cell(error=0.0089 * 0.89))
        self.assertEqual(judge.judge([cell(format="mxfp8", ranks=256, error=0.0089 * 1.3)]), [])

    def test_detects_truncating_format(self):
        # Truncation with a step of 0.02 has the same error as unbiased rounding, but a bias.
        self.assert_error("the mean error", cell(bias=-0.003))

    def test_checks_targets_of_two_shot(self):
        self.assert_error("but the target is 1.0%", cell(error=0.0101, expected=0.0101))
        self.assertEqual(judge.judge([cell(algorithm="ring", error=0.0101, expected=0.0101)]), [])

    def test_checks_error_growth_of_two_shot(self):
        ranks = lambda n, error: cell(ranks=n, error=error, expected=error)
        self.assertEqual(judge.judge([ranks(8, 0.0089), ranks(64, 0.00915)]), [])
        self.assert_error("grows 1.067 times", ranks(8, 0.0089), ranks(64, 0.0095))

    def test_requires_same_bits_on_all_ranks(self):
        self.assert_error("ranks have different bits", cell(identical=False))
        self.assert_error("depend on the order", cell(repeated=False))
        self.assert_error("changes if it is encoded again", cell(idempotent=False))

    def test_requires_non_finite_values_to_survive(self):
        self.assert_error("elements became numbers", cell(data="not_finite", lost=1))
        self.assert_error("another special value", cell(data="not_finite", wrong=1))
        self.assert_error("numbers became", cell(data="not_finite", stray=1))
        self.assertEqual(judge.judge([cell(data="not_finite", spoilt=5, error=None)]), [])

    def test_accepts_values_without_representation(self):
        self.assertEqual(judge.judge([cell(data="largest", format="bf16", error=None, stray=9)]), [])
        self.assert_error("did not become infinite", cell(data="largest", format="fp16", error=0))
        self.assert_error("numbers became", cell(data="largest", format="int8", stray=9))

    def test_compares_other_data_with_rounding_of_same_numbers(self):
        self.assert_error("the maximum is", cell(data="student", error=0.0115, error_of_terms=0.0115))
        self.assertEqual(judge.judge([cell(data="student", error=0.011), cell(data="student", error=0.002)]), [])
        self.assert_error("the maximum is", cell(data="laplace", error=0.011, error_of_terms=0.011))
        self.assertEqual(judge.judge([cell(data="identical", error=0.013)]), [])
        self.assert_error("the maximum is", cell(data="identical", error=0.014, error_of_terms=0.04))
        self.assertEqual(judge.judge([cell(data="cancelling", error=9, error_of_terms=0.009)]), [])
        self.assert_error("zeros", cell(data="zero", error=1e-9))


class Stored(unittest.TestCase):
    def test_matches_page(self):
        for name, text in tables.files(tables.load(tables.RESULTS)).items():
            with open(os.path.join(tables.DOCS, name), encoding="utf-8") as file:
                self.assertEqual(file.read(), text, f"{name} is not of {tables.RESULTS}: run perf/rounding/tables.py")

    def test_passes_all_checks(self):
        result = tables.load(tables.RESULTS)
        self.assertEqual(judge.judge(result["cells"]), [])
        self.assertGreater(result["measured"], len(result["cells"]))

    def test_contains_all_requested_cells(self):
        found = {tuple(one[name] for name in ("data", "type", "format", "algorithm", "ranks"))
                 for one in tables.load(tables.RESULTS)["cells"]}
        for compression in tables.FORMATS:
            for algorithm in tables.ALGORITHMS:
                for ranks in (2, 4, 8, 16, 64, 256):
                    self.assertIn(("gaussian", "float32", compression, algorithm, ranks), found)
                for data, _ in tables.DATA:
                    self.assertIn((data, "float32", compression, algorithm, 8), found)
        self.assertIn(("not_finite", "bfloat16", "int8", "ring", 8), found)

    def test_survives_round_trip(self):
        cells = [cell(), cell(ranks=64, identical=None, idempotent=False, spoilt=3)]
        path = os.path.join(BUILD, "accuracy_test.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(tables.text_of(tables.packed(cells)))
        self.assertEqual(tables.load(path)["cells"], cells)
        os.remove(path)


class Tool(unittest.TestCase):
    def test_quick_run_passes_all_checks(self):
        done = accuracy("--quick")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(" 0 errors", done.stdout)

    def test_detects_algorithm_whose_ranks_differ(self):
        done = accuracy("--algorithm", "recursive_doubling")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("recursive_doubling, 8 ranks, float32 as int8, gaussian: ranks have different bits", done.stdout)

    def test_lists_choices(self):
        done = accuracy("--algorithm", "three_shot")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'three_shot' is not an algorithm", done.stderr)
        self.assertIn("two_shot", done.stderr)


if __name__ == "__main__":
    unittest.main()
