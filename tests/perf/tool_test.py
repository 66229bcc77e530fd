#!/usr/bin/env python3
"""The perf tools as programs: tool_test.py ALL_REDUCE_PERF"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop()
LAUNCHER = ("TUTTI_", "OMPI_", "PMI_", "SLURM_", "RANK", "WORLD_SIZE", "MASTER_")
# Ranks that nobody starts, as in a batch script: whoever waits for them fails.
LAUNCHED = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "1", "TUTTI_INIT_TIMEOUT_MS": "2000"}


def run(*options, **environment):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHER)}
    return subprocess.run([PROGRAM, *options], capture_output=True, text=True, timeout=120,
                          env={**inherited, **environment})


def rows(output):
    return [line.split() for line in output.splitlines() if re.match(r" *\d", line)]


class Tool(unittest.TestCase):
    def assert_table(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("busbw", result.stdout)
        self.assertIn("Out of bounds values : 0 OK", result.stdout)
        self.assertEqual([int(row[0]) for row in rows(result.stdout)], [8, 64, 512, 4096])
        for row in rows(result.stdout):
            self.assertEqual((row[2], row[3], row[8], row[12]), ("float", "sum", "0", "0"))

    def test_measures_between_processes_and_writes_json(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            self.assert_table(run("--ranks", "2", "-b", "8", "-e", "4K", "-f", "8", "-J", path))
            with open(path) as file:
                written = json.load(file)
        self.assertEqual([row["size"] for row in written["results"]], [8, 64, 512, 4096])
        self.assertEqual(len({rank["pid"] for rank in written["devices"]}), 2)
        self.assertEqual(written["out_of_bounds"], {"count": 0, "okay": "true"})

    def test_measures_between_threads(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            self.assert_table(run("-t", "2", "-b", "8", "-e", "4K", "-f", "8", "-J", path))
            with open(path) as file:
                devices = json.load(file)["devices"]
        self.assertEqual([rank["rank"] for rank in devices], [0, 1])
        self.assertEqual(len({rank["pid"] for rank in devices}), 1)

    def test_refuses_what_it_cannot_do(self):
        for options, words in ((("--datatype", "quad"), "--datatype quad"), (("--ranks", "0"), "--ranks 0"),
                               (("-b", "many"), "--minbytes many"), (("--loud",), "--loud"), (("8",), "8: not an option"),
                               (("--ranks", "2", "-r", "2"), "--root 2"), (("--ranks", "2", "--algorithm", "rong"), "rong"),
                               (("--hosts", "a:0"), '"a:0" has no number'), (("--hosts", "a,,b"), '"" is no name'),
                               (("--hosts", "-oProxyCommand=x"), "is no name"), (("--hosts", "fd00::1:2"), "brackets"),
                               (("--hosts", "a", "--ranks", "2"), "--ranks counts"), (("--host-part", "1:2:2"), "--host-part"),
                               (("--hosts", "a", "--ssh", "/none/ssh"), "start /none/ssh: No such file")):
            result = run("-e", "8", *options)
            self.assertEqual(result.returncode, 2, options)
            self.assertIn(words, result.stderr)

    def test_refuses_before_it_measures(self):
        for options, words in ((("-b", "64", "-e", "8"), "--minbytes is above --maxbytes"),
                               (("--ranks", "2", "-e", "8", "-J", "/nowhere/out.json"), "--output_file /nowhere/out.json")):
            result = run(*options)
            self.assertEqual(result.returncode, 2, options)
            self.assertIn(words, result.stderr)
            self.assertEqual(rows(result.stdout), [])

    def test_refuses_threads_under_a_launcher_before_its_ranks_have_come(self):
        result = run("-t", "2", "-b", "8", "-e", "8", **LAUNCHED)
        self.assertEqual(result.returncode, 2)
        self.assertIn("-t and -g: ranks are the processes that Slurm (SLURM_PROCID, SLURM_NTASKS) started", result.stderr)

    def test_forks_the_ranks_that_it_is_told_to_whatever_a_launcher_says(self):
        small = ("-b", "8", "-e", "4K", "-f", "8")
        result = run("--ranks", "2", *small, **LAUNCHED)
        self.assert_table(result)
        self.assertRegex(result.stderr, r"^all_reduce_perf: --ranks 2: [^\n]* the 4 of Slurm [^\n]*\n$")
        for ranks, threads, launched in (("2", "1", "2"), ("1", "1", "1"), ("2", "2", "4")):
            result = run("--ranks", ranks, "-t", threads, *small, TUTTI_RANK="0", TUTTI_RANKS=launched)
            self.assert_table(result)
            self.assertEqual(result.stderr, "")

    def test_joins_the_ranks_of_a_launcher(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            self.assert_table(run("-b", "8", "-e", "4K", "-f", "8", "-J", path, TUTTI_RANK="0", TUTTI_RANKS="1"))
            with open(path) as file:
                self.assertEqual(len(json.load(file)["devices"]), 1)

    def test_sees_a_full_disk(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([PROGRAM, "-t", "2", "-b", "8", "-e", "8"], stdout=full, stderr=subprocess.PIPE,
                                    text=True, timeout=120)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("standard output: No space left on device", result.stderr)

    def test_switches_are_on_or_off(self):
        result = run("-t", "2", "-C", "4")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--report_cputime 4: give a whole number from 0 to 1", result.stderr)

    def test_says_its_version(self):
        result = run("--version")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^all_reduce_perf of tutti \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
