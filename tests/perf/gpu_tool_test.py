#!/usr/bin/env python3
"""Tests of the perf tools with --memory cuda, on the GPU emulator or without GPU: gpu_tool_test.py EMULATOR_PERF ALL_REDUCE_PERF"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ALL_REDUCE_PERF = sys.argv.pop()
EMULATOR_PERF = sys.argv.pop()
LAUNCHER = ("TUTTI_", "OMPI_", "PMI_", "SLURM_", "RANK", "WORLD_SIZE", "MASTER_")


def run(program, *options, **environment):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHER)}
    return subprocess.run([program, "--memory", "cuda", *options], capture_output=True, text=True, timeout=120,
                          env={**inherited, **environment})


class OnTheEmulator(unittest.TestCase):
    def measure(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            result = run(EMULATOR_PERF, "-b", "8", "-e", "2K", "-f", "16", "-n", "2", "-w", "1", "--channels", "2", "-J", path,
                         *options)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertEqual(result.stderr, "")
            with open(path) as file:
                written = json.load(file)
        self.assertEqual([row["size"] for row in written["results"]], [8, 128, 2048])
        self.assertEqual(written["out_of_bounds"], {"count": 0, "okay": "true"})
        for row in written["results"]:
            self.assertGreater(row["out_of_place"]["time"], 0)
            self.assertEqual(row["in_place"]["nwrong"], 0)
        self.assertEqual([rank["rank"] for rank in written["devices"]], list(range(len(written["devices"]))))
        self.assertEqual({rank["memory"] for rank in written["devices"]}, {"device 0 emulator"})
        return written

    def test_two_threads_share_gpu_by_default(self):
        devices = self.measure()["devices"]
        self.assertEqual((len(devices), len({rank["pid"] for rank in devices})), (2, 1))

    def test_threads_run_several_ranks_in_groups(self):
        self.assertEqual(len(self.measure("-g", "3")["devices"]), 3)
        self.assertEqual(len(self.measure("-t", "2", "-g", "2", "-m", "2")["devices"]), 4)

    def test_processes_share_gpu(self):
        self.assertEqual(len({rank["pid"] for rank in self.measure("--ranks", "2")["devices"]}), 2)

    def test_buffers_are_in_windows(self):
        for ranks in (("--ranks", "3"), ("--ranks", "2", "-t", "1", "-g", "2"), ("-g", "2"), ("-t", "2")):
            written = self.measure(*ranks, "-R", "1", "--algorithm", "two_shot_mapped")
            for row in written["results"]:
                self.assertEqual(row["in_place"]["algorithm"], "two_shot_mapped")
        result = run(EMULATOR_PERF, "--ranks", "2", "-e", "8", "--algorithm", "two_shot_mapped")
        self.assertIn("nor in windows", result.stderr)

    def test_replays_graphs(self):
        written = self.measure("-t", "2", "-g", "2", "-G", "3")
        self.assertEqual((written["config"]["cudagraph"], written["config"]["memory"]), (3, "cuda"))

    def test_messages_can_be_compressed(self):
        row = self.measure("-g", "3", "--compress", "int8")["results"][-1]
        for placement in ("in_place", "out_of_place"):
            self.assertEqual((row[placement]["compression"], row[placement]["protocol"]), ("int8", "Simple"))
            self.assertGreater(row[placement]["error"], 0)

    def test_autotuning_saves_results_for_later_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            file, path = os.path.join(folder, "tuned"), os.path.join(folder, "out.json")

            def tuned(*options, **environment):
                result = run(EMULATOR_PERF, "-g", "2", "-b", "8K", "-e", "8K", "-n", "1", "-w", "1", "-J", path, *options,
                             TUTTI_LOG="info", TUTTI_TUNE="1", TUTTI_TUNE_FILE=file, **environment)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                with open(path) as written:
                    row = json.load(written)["results"][0]
                choices = [f"{row[placement]['algorithm']} {row[placement]['protocol']}" for placement in ("out_of_place", "in_place")]
                return result.stderr + result.stdout, choices

            # The tool waits for each checked call. On a busy machine, ranks agree on later calls to switch at, which may
            # be behind the last one.
            words, _ = tuned("-c", "1000")
            result_line = re.search(r"all_reduce from 8192 bytes on, .* by ([a-z_]+ [A-Za-z0-9]+): [\d.]+ us, ", words)
            self.assertTrue(result_line, words)
            words, choices = tuned()
            self.assertEqual(choices, [result_line[1], result_line[1]], words)
            with open(file) as kept:
                lines = kept.read()
            self.assertIn(f"\nkept {result_line[1]} ", lines)
            other = re.search(r"\ntried (\S+ \S+) ", lines)[1]
            swapped = lines.replace(f"kept {result_line[1]} ", f"kept {other} ").replace(f"tried {other} ", f"tried {result_line[1]} ")
            with open(file, "w") as kept:
                kept.write(swapped)
            words, choices = tuned()
            self.assertEqual(choices, [other, other], words)
            self.assertNotIn("all_reduce from 8192 bytes on", words)

    def test_rejects_root_out_of_range(self):
        result = run(EMULATOR_PERF, "-t", "2", "-g", "2", "-r", "4", "-e", "8")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--root 4 is out of range for 4 ranks", result.stderr)


class OnThisMachine(unittest.TestCase):
    def test_measures_or_reports_missing_requirements(self):
        result = run(ALL_REDUCE_PERF, "-g", "2", "-e", "8")
        if result.returncode == 0:
            self.assertIn("Out of bounds values : 0 OK", result.stdout)
        else:
            self.assertEqual(result.returncode, 2)
            self.assertRegex(result.stderr, r"--memory cuda: (no GPU is available|this build has no CUDA)")


if __name__ == "__main__":
    unittest.main()
