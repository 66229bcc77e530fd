#!/usr/bin/env python3
"""Tests of perf/regret.py."""

import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from types import SimpleNamespace
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "perf"))
sys.dont_write_bytecode = True
import regret  # noqa: E402
import regret_request  # noqa: E402
import regret_results  # noqa: E402


def cell(chosen, same=None, choice=None, **times):
    times = {name.replace("_", "/"): found for name, found in times.items()}
    return {"chosen": chosen, "choice": times.get(chosen, []) if choice is None else choice, "times": times,
            "same": {name: name for name in times} | (same or {})}


class Regret(unittest.TestCase):
    def test_is_time_of_choice_divided_by_best(self):
        factor, best, _ = regret.regret(cell("a/Simple", a_Simple=[3, 3, 9], b_Simple=[2, 2, 2]))
        self.assertEqual((factor, best), (1.5, "b/Simple"))

    def test_is_one_when_best_was_chosen(self):
        self.assertEqual(regret.regret(cell("a/Simple", a_Simple=[1], b_Simple=[2]))[0], 1)

    def test_pools_candidates_with_same_steps(self):
        same = {"b/Simple": "a/Simple"}
        factor, best, medians = regret.regret(cell("b/Simple", same, choice=[], a_Simple=[1, 1], b_Simple=[3], c_Simple=[2]))
        self.assertEqual((factor, best, medians["a/Simple"]), (1, "a/Simple", 1))

    def test_pools_chosen_and_forced_runs(self):
        found = cell("a/Simple", choice=[5, 5], a_Simple=[1, 1, 1, 1], b_Simple=[1])
        self.assertEqual(regret.regret(found)[0], 1)
        self.assertEqual(regret.regret(cell("a/Simple", choice=[2], a_Simple=[], b_Simple=[1]))[0], 2)

    def test_noise_is_ratio_of_chosen_and_forced_runs(self):
        self.assertEqual(regret.noise(cell("a/Simple", choice=[2, 9, 2], a_Simple=[1])), 2)
        self.assertEqual(regret.noise(cell("a/Simple", choice=[1], a_Simple=[2, 8, 2])), 2)
        self.assertEqual(regret.noise(cell("a/Simple", choice=[3], a_Simple=[])), 1)

    def test_counts_noisy_cells(self):
        cells = {"reduce shm, 2 ranks": {"8": cell("a/Simple", choice=[1.2], a_Simple=[1.2], b_Simple=[1]),
                                         "64": cell("a/Simple", choice=[1.5], a_Simple=[1.1], b_Simple=[1]),
                                         "128": cell("a/Simple", choice=[1.04], a_Simple=[1.04], b_Simple=[1])}}
        all_cells = regret.table(cells, 0).split("\n")[-2].split("|")
        self.assertEqual([field.strip() for field in all_cells[2:-1]],
                         ["3", "33%", "0%", "1.113", "1.20", "33%", "0", "-", "-", "-"])

    def test_lucky_times_are_no_regret_in_held_out_pass(self):
        lucky = cell("a/Simple", a_Simple=[2, 2, 2, 2], b_Simple=[1, 1, 1, 9], c_Simple=[9, 9, 9, 9])
        self.assertEqual(regret.held_out(lucky), 2)
        # b and c were each fast in some passes, which other passes do not predict.
        self.assertEqual(regret.held_out(cell("a/Simple", a_Simple=[2, 2], b_Simple=[1, 4], c_Simple=[4, 1])), 0.5)
        self.assertEqual(regret.held_out(cell("a/Simple", a_Simple=[1, 1, 1], b_Simple=[2, 2, 2])), 1)

    def test_holds_out_nothing_of_one_or_failed_passes(self):
        self.assertIsNone(regret.held_out(cell("a/Simple", a_Simple=[2], b_Simple=[1])))
        self.assertIsNone(regret.held_out(cell("a/Simple", a_Simple=[2, 2], b_Simple=[1])))

    def test_uses_all_calls_when_ranks_run_ahead_and_median_otherwise(self):
        timing = {"algorithm": "direct", "protocol": "Simple", "time": 2.5, "spell_us": 0.5}
        self.assertEqual(regret.ran(timing, True), ("direct", "Simple", 2.5))
        self.assertEqual(regret.ran(timing, False), ("direct", "Simple", 0.5))

    def test_lists_worst_cells_first_and_counts_near_ones(self):
        cells = {"reduce shm, 2 ranks": {"8": cell("a/Simple", a_Simple=[1], b_Simple=[1]),
                                         "64": cell("a/Simple", a_Simple=[4], b_Simple=[2])},
                 "reduce tcp, 2 ranks": {"8": cell("a/Simple", a_Simple=[1.2], b_Simple=[1])}}
        lines = regret.table(cells, 2).split("\n")
        self.assertTrue(lines[2].startswith("| reduce shm, 2 ranks, 64 B | a/Simple | 4 | b/Simple | 2 | 2.00 |"))
        self.assertTrue(lines[3].startswith("| reduce tcp, 2 ranks, 8 B |"))
        self.assertTrue(any(line.startswith("| shm, 2 ranks | 2 | 50% | 50% | 1.500 | 2.00 |") for line in lines))
        self.assertTrue(any(line.startswith("| all | 3 | 33% | 33% | 1.400 | 2.00 |") for line in lines))

    def test_counts_failed_choices(self):
        cells = {"reduce shm, 2 ranks": {"8": cell("a/Simple", a_Simple=[1], b_Simple=[1])},
                 "reduce tcp, 2 ranks": {"64": cell("", b_Simple=[1]), "8": cell("", b_Simple=[1])}}
        text = regret.table(cells, 2)
        self.assertIn("The choice failed in 2 cells", text)
        self.assertIn("- reduce tcp, 2 ranks: 8, 64 B", text)
        self.assertIn("| all | 1 | 100% | 100% | 1.000 | 1.00 |", text)

    def test_keeps_cells_of_crashed_choice(self):
        options = SimpleNamespace(build="", passes=2, sizes=[8])
        field = [("", "", None), ("ring", "Simple", None)]
        rows = {"": None, "ring": [(8, "ring", "Simple", 2.0)]}
        with mock.patch.multiple(regret, competitors=lambda *_: field, same_steps=lambda *_: {"ring/Simple": "ring/Simple"},
                                 run=lambda options, collective, ranks, transport, competitor, *_: rows[competitor[0]]):
            cells = regret.measure(options, "reduce", 2, "shm", {})
        self.assertEqual(cells[8]["chosen"], "")
        self.assertEqual(cells[8]["times"], {"ring/Simple": [2.0, 2.0]})

    def test_holds_out_passes_of_candidates_that_completed(self):
        self.assertEqual(regret.held_out(cell("a/Simple", a_Simple=[2, 2, 2, 2], b_Simple=[1, 1, 1, 1], c_Simple=[9, 9, 9])), 2)

    def test_holds_out_choice_without_second_chance(self):
        found = cell("a/Simple", choice=[1, 3, 1, 3], a_Simple=[3, 1, 3, 1], b_Simple=[0.5] * 4)
        self.assertEqual(regret.held_out(found), 4)

    def test_middle_is_stable_between_two_modes(self):
        self.assertEqual(regret.middle([3, 1, 9]), 3)
        self.assertEqual(regret.middle([1, 1, 1, 1, 2, 2, 2, 2]), 1.5)
        self.assertEqual(regret.middle([1, 1, 1, 1, 1, 1, 1, 99]), 1)
        self.assertEqual(regret.middle([4]), 4)

    def test_uses_faster_half_of_times(self):
        self.assertEqual(regret.quick([1, 2, 80, 90]), 1.5)
        self.assertEqual(regret.quick([3, 1, 90]), 2)
        self.assertEqual(regret.quick([4]), 4)

    # Every other process is slower by more than the difference between candidates, so one measurement per candidate
    # cannot detect the regret.
    def test_finds_regret_among_processes_of_two_speeds(self):
        seed = random.randrange(1 << 32)
        luck = random.Random(seed)
        found = []
        for _ in range(40):
            def run(options, collective, ranks, transport, competitor, *_):
                name, us = competitor[0] or "b", {"a": 1, "b": 1.2, "c": 1.3, "d": 4}[competitor[0] or "b"]
                return [(8, name, "Simple", us * luck.choice([1, 1.4]) * luck.uniform(0.97, 1.03))]
            field = [("", "", None)] + [(name, "Simple", None) for name in "abcd"]
            with mock.patch.multiple(regret, competitors=lambda *_: field, run=run,
                                     same_steps=lambda *_: {f"{name}/Simple": f"{name}/Simple" for name in "abcd"}):
                measured = regret.measure(SimpleNamespace(build="", passes=12, sizes=[8]), "reduce", 2, "shm", {})[8]
            self.assertEqual(len(measured["times"]["d/Simple"]), regret.MIN_PASSES, f"seed {seed}")
            self.assertEqual(len(measured["times"]["b/Simple"]), 12, f"seed {seed}")
            found.append(regret.regret(measured)[0])
        self.assertGreater(sum(factor > regret.NEAR for factor in found), 24, f"seed {seed}")
        self.assertAlmostEqual(sum(found) / len(found), 1.2, delta=0.1, msg=f"seed {seed}")

    def test_compares_with_second_best_on_request(self):
        found = regret.with_second(cell("a/Simple", {"d/Simple": "a/Simple"}, a_Simple=[2], b_Simple=[3], c_Simple=[5], d_Simple=[2]))
        self.assertEqual(regret.regret(found)[:2], (1.5, "a/Simple"))
        self.assertIsNone(regret.with_second(cell("a/Simple", a_Simple=[2])))

    def test_ignores_unused_scratch(self):
        def plan(build, command, collective, *rest):
            scratch = {"a": ("0", "input[0]"), "b": ("2", "input[0]"), "c": ("2", "scratch[0]")}[rest[1]]
            return SimpleNamespace(stdout=f"{rest[1]}: ...\nrank 0: 1 units per block, {scratch[0]} of scratch\n"
                                          f"  stage 0\n      {scratch[1]} -> lane 1\n")
        with mock.patch.object(regret, "tutti", plan):
            self.assertEqual(regret.steps("", "gather", 2, "a"), regret.steps("", "gather", 2, "b"))
            self.assertNotEqual(regret.steps("", "gather", 2, "b"), regret.steps("", "gather", 2, "c"))

    def test_reports_missing_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(folder + "/perf")
            os.close(os.open(folder + "/perf/all_reduce_perf", os.O_CREAT, 0o755))
            done = subprocess.run([ROOT + "/perf/regret.sh", "--build", folder, "--only", "all_reduce,gather"],
                                  capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(f"{folder} has no tools/tutti, perf/gather_perf; run ", done.stderr)
        self.assertIn("--target tutti_tool gather_perf,", done.stderr)

    def test_finds_default_build_from_any_folder(self):
        with mock.patch.object(sys, "argv", ["regret.py"]):
            self.assertEqual(regret.arguments("").build, ROOT + "/build")

    def test_reports_empty_results(self):
        self.assertEqual(regret.table({}, 5), "nothing was measured\n")


def script(*options):
    return subprocess.run([ROOT + "/perf/regret.sh", *options], capture_output=True, text=True, timeout=60)


def asked(*words):
    with mock.patch.object(sys, "argv", ["regret.py", *words]):
        return regret_request.arguments("")


class Request(unittest.TestCase):
    def refuses(self, words, *options):
        output = io.StringIO()
        with mock.patch.object(sys, "stderr", output), self.assertRaises(SystemExit, msg=options):
            asked(*options)
        self.assertRegex(output.getvalue(), words, options)

    def test_rejects_invalid_options(self):
        for option, value, words in (("--transports", "foo", "'foo' is invalid; valid: shm, mapped, tcp"), ("--transports", "", "valid: "),
                                     ("--only", "allreduce", "valid: all_reduce"), ("--sizes", "foo", "smallest:largest:"),
                                     ("--sizes", "8:4:2", "8, is above the largest, 4"), ("--sizes", "0:8:4", "'0' is not a size"),
                                     ("--sizes", "8:8:1", "of 2 or more"), ("--sizes", "8:1.5K:2", "'1.5K' is not a size"),
                                     ("--ranks", "foo", "from 2 to 1024"), ("--ranks", "0", "from 2"), ("--ranks", "1", "from 2"),
                                     ("--ranks", "2,4,2", "2 is given twice"), ("--passes", "0", "of 1 or more"),
                                     ("--passes", "-1", "of 1 or more"), ("--worst", "-1", "of 0 or more")):
            self.refuses(f"argument {option}: .*{words}", f"{option}={value}", "--quick")

    def test_rejects_options_without_effect(self):
        stored = ROOT + "/perf/results/regret-amd-epyc.json"
        self.refuses("--second needs --show FILE", "--second")
        for option in ("--quick", "--autotuned", "--passes=3", "--sizes=8:8:4", "--output=x", "--build=x", "--only=reduce"):
            self.refuses(option.split("=")[0] + " applies to measurements", "--show", stored, option)

    def test_quick_run_accepts_other_options(self):
        self.assertEqual((list(asked("--quick").sizes), asked("--quick").passes), ([1024, 32768, 1 << 20], 1))
        self.assertEqual((list(asked("--quick", "--sizes", "8:64:4").sizes), asked().passes), ([8, 32], 5))
        self.assertEqual(asked("--quick", "--passes", "2").passes, 2)
        self.assertEqual(list(asked("--sizes", "1K:1G:1024").sizes), [1 << 10, 1 << 20, 1 << 30])

    def test_rejects_foreign_files(self):
        for path, words in (("/nonexistent", "No such file"), ("README.md", "not JSON"), ("/dev/full", "is a device"),
                            ("perf/results/accuracy.json", "perf/regret.sh did not write it"), ("perf", "Is a directory")):
            done = script("--show", os.path.join(ROOT, path))
            self.assertEqual((done.returncode, done.stdout), (1, ""), path)
            self.assertRegex(done.stderr, f"^perf/regret.sh: [^\\n]*{words}")


class Results(unittest.TestCase):
    def build(self, folder):
        """Creates a build with two fake tools: one names an algorithm, the other fails."""
        for name, text in (("tools/tutti", "echo must be one of ring >&2"), ("perf/all_reduce_perf", "exit 2")):
            os.makedirs(os.path.dirname(f"{folder}/{name}"))
            with open(f"{folder}/{name}", "w") as file:
                file.write(f"#!/bin/sh\n{text}\n")
            os.chmod(f"{folder}/{name}", 0o755)
        return ["--build", folder, "--only", "all_reduce", "--quick"]

    def test_are_stored_or_rejected_in_advance(self):
        with tempfile.TemporaryDirectory() as folder:
            options = self.build(folder)
            other = folder + "/other.json"
            for text, words in (('{"results": []}', "has no 'cells'"), ("", None), ("[]", "has no 'cells'"), ("text", "not JSON")):
                with open(other, "w") as file:
                    file.write(text)
                done = script(*options, "--output", other)
                with open(other) as file:
                    kept = file.read()
                self.assertEqual((done.returncode, kept == text), (1, words is not None), done.stderr)
                self.assertIn(words or "", done.stderr)
            pipe = folder + "/pipe"
            os.mkfifo(pipe)
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # Opening the pipe for writing does not block.
            self.addCleanup(os.close, reader)
            for path, words in ((pipe, "not a regular file"), (folder, "not a regular file"), ("/nonexistent/x", "No such file")):
                done = script(*options, "--output", path)
                self.assertEqual((done.returncode, done.stdout), (1, ""), path)
                self.assertRegex(done.stderr, f"^perf/regret.sh: --output {path} [^\n]*{words}")

    def test_empty_results_are_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            done = script(*self.build(folder), "--ranks", "2", "--transports", "shm")
        self.assertEqual((done.returncode, done.stdout), (1, "nothing was measured\n"), done.stderr)

    def test_survive_round_trip(self):
        results = {"reduce shm, 2 ranks": {"8": cell("a/Simple", a_Simple=[1, 2], b_Simple=[3]), "64": cell("", a_Simple=[1])}}
        with tempfile.TemporaryDirectory() as folder:
            options = SimpleNamespace(output=folder + "/kept.json", passes=2)
            regret_results.store(options, results)
            self.assertEqual(regret_results.load(options.output), results)
            self.assertEqual(os.listdir(folder), ["kept.json"])

    def test_modified_results_are_rejected(self):
        whole = cell("a/Simple", a_Simple=[1], b_Simple=[2])
        broken = [3, {**whole, "times": []}, {**whole, "chosen": "c/Simple"}, {**whole, "same": {}},
                  {**whole, "choice": ["x"]}, {**whole, "times": {"a/Simple": [], "b/Simple": [2]}, "choice": []},
                  {name: part for name, part in whole.items() if name != "same"}]
        with tempfile.TemporaryDirectory() as folder:
            for one in [{"reduce": {}}, {"reduce shm, 2 ranks": []}, {"reduce shm, 2 ranks": {"big": whole}},
                        *({"reduce shm, 2 ranks": {"8": one}} for one in broken)]:
                with open(folder + "/x.json", "w") as file:
                    json.dump({"cells": one}, file)
                with self.assertRaises(regret_results.Unusable, msg=one):
                    regret_results.load(folder + "/x.json")


if __name__ == "__main__":
    unittest.main()
