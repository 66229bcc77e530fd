#!/usr/bin/env python3
"""Tests of the perf tools as programs: tool_test.py ALL_REDUCE_PERF"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop()
LAUNCHER = ("TUTTI_", "OMPI_", "PMI_", "SLURM_", "RANK", "WORLD_SIZE", "MASTER_")
# Variables of a batch job without launcher: the other ranks never start, so waiting for them fails.
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
        for row in written["results"]:
            timing = row["out_of_place"]
            self.assertGreater(timing["min_us"], 0)
            self.assertGreaterEqual(timing["median_us"], timing["min_us"])
            self.assertGreaterEqual(timing["spell_us"], timing["min_us"])
            for form in ("out_of_place", "in_place"):
                self.assertIn(row[form]["protocol"], ("LL", "Simple"))
                self.assertNotEqual(row[form]["algorithm"], "")

    def test_names_rows_without_elements(self):
        result = run("--ranks", "2", "-b", "3", "-e", "12", "-f", "4", "-d", "float")
        self.assertEqual([row[:2] for row in rows(result.stdout)], [["0", "0"], ["12", "3"]])
        self.assertIn("# No elements in       : 1 of 2 rows, since sizes are rounded down to whole elements; use -b 4 or more",
                      result.stdout)
        for sizes in (("-b", "4", "-e", "4"), ("-b", "0", "-e", "0")):
            self.assertNotIn("No elements", run("--ranks", "2", *sizes).stdout, sizes)

    def test_measures_between_threads(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            self.assert_table(run("-t", "2", "-b", "8", "-e", "4K", "-f", "8", "-J", path))
            with open(path) as file:
                devices = json.load(file)["devices"]
        self.assertEqual([rank["rank"] for rank in devices], [0, 1])
        self.assertEqual(len({rank["pid"] for rank in devices}), 1)

    def test_does_not_pin_oversubscribed_ranks(self):
        ranks = len(os.sched_getaffinity(0)) + 1
        shared = f"share {ranks - 1} cores"
        for options in (("--ranks", str(ranks)), ("-t", str(ranks))):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "out.json")
                result = run(*options, "-b", "8", "-e", "8", "-n", "1", "-J", path)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertRegex(result.stdout, f"# Ranks are not pinned on \\S+: {ranks} ranks {shared}\n")
                with open(path) as file:
                    self.assertEqual({rank["core"] for rank in json.load(file)["devices"]}, {-1})
        self.assertIn("# Ranks are not pinned (--no-pin)\n", run("--no-pin", "-b", "8", "-e", "8", "-n", "1").stdout)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core")
    def test_pins_ranks_with_own_cores(self):
        result = run("--ranks", "2", "-b", "8", "-e", "8", "-n", "1")
        self.assertNotIn("not pinned", result.stdout)
        self.assertEqual(len(set(re.findall(r" core +(\d+) ", result.stdout))), 2)

    def test_counts_launched_ranks_of_host_before_pinning(self):
        cores = len(os.sched_getaffinity(0))
        launched = {"TUTTI_RANK": "0", "TUTTI_RANKS": "1"}
        for tasks, pinned in (("1(x8)", True), (f"{cores + 1}(x2),1", cores == 1)):
            result = run("-b", "8", "-e", "8", "-n", "1", SLURM_STEP_TASKS_PER_NODE=tasks, **launched)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual("not pinned" not in result.stdout, pinned, result.stdout)

    def test_lists_ignored_options(self):
        result = run("--help")
        self.assertIn("Accepted and ignored options of nccl-tests: -N/--run_cycles, -p/--parallel_init, -z/--blocking",
                      result.stdout)
        self.assertIn("-u/--unalign", result.stdout)
        self.assertNotIn("host-part", result.stdout)

    def test_rejects_unsupported_options(self):
        for options, words in ((("--datatype", "quad"), "--datatype quad"), (("--ranks", "0"), "--ranks 0"),
                               (("--memory", "registered"), "now called mapped"), (("--memory", "disk"), "host, mapped or cuda"),
                               (("-b", "many"), "--minbytes many"), (("--loud",), "--loud"), (("8",), "unexpected argument 8"),
                               (("--ranks", "2", "-r", "2"), "--root 2"), (("--ranks", "2", "--algorithm", "rong"), "rong"),
                               (("--hosts", "a:0"), '"a:0" has no number'), (("--hosts", "a,,b"), '"" is not a host name'),
                               (("--hosts", "-oProxyCommand=x"), "is not a host name"), (("--hosts", "fd00::1:2"), "brackets"),
                               (("--hosts", "a;b:2"), "characters"), (("--hosts", " "), "characters"),
                               (("--hosts", "a", "--ranks", "2"), "--ranks applies to this host only"), (("--host-part", "1:2:2"), "--host-part"),
                               (("--hosts", "a", "--ssh", "/none/ssh"), "start /none/ssh: No such file")):
            result = run("-e", "8", *options)
            self.assertEqual(result.returncode, 2, options)
            self.assertIn(words, result.stderr)

    def test_rejects_unsupported_protection(self):
        for environment in ({"TUTTI_ENCRYPT": "true"}, {"TUTTI_CHECK": "1"}):
            result = run("--ranks", "2", "-b", "8", "-e", "8", TUTTI_LOG="none", **environment)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("but must be", result.stderr)

    def test_reports_common_error_once(self):
        for ranks in ("2", "4"):
            result = run("--ranks", ranks, "-b", "8", "-e", "8", TUTTI_LOG="none", TUTTI_CHECK="1")
            self.assertEqual(result.returncode, 2)
            self.assertEqual(result.stderr.count("but must be"), 1, result.stderr)
            self.assertEqual(result.stderr.count("ended with status 2"), 1, result.stderr)

    def test_rejects_options_before_measuring(self):
        for options, words in ((("-b", "64", "-e", "8"), "--minbytes 64 is above --maxbytes 8"),
                               (("--ranks", "2", "-e", "8", "-J", "/nowhere/out.json"), "--output_file /nowhere/out.json")):
            result = run(*options)
            self.assertEqual(result.returncode, 2, options)
            self.assertRegex(result.stderr, rf"^all_reduce_perf: {words}[^\n]*\n$")  # The message appears once, without a rank.
            self.assertEqual(result.stdout, "")

    def test_rejects_threads_under_launcher(self):
        result = run("-t", "2", "-b", "8", "-e", "8", **LAUNCHED)
        self.assertEqual(result.returncode, 2)
        self.assertIn("-t and -g are not supported under Slurm (SLURM_PROCID, SLURM_NTASKS)", result.stderr)

    def test_forks_requested_ranks_despite_launcher(self):
        small = ("-b", "8", "-e", "4K", "-f", "8")
        result = run("--ranks", "2", *small, **LAUNCHED)
        self.assert_table(result)
        self.assertRegex(result.stderr, r"^all_reduce_perf: --ranks 2 [^\n]* the 4 processes of Slurm [^\n]*\n$")
        for ranks, threads, launched in (("2", "1", "2"), ("1", "1", "1"), ("2", "2", "4")):
            result = run("--ranks", ranks, "-t", threads, *small, TUTTI_RANK="0", TUTTI_RANKS=launched)
            self.assert_table(result)
            self.assertEqual(result.stderr, "")

    def test_joins_launched_ranks(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            self.assert_table(run("-b", "8", "-e", "4K", "-f", "8", "-J", path, TUTTI_RANK="0", TUTTI_RANKS="1"))
            with open(path) as file:
                self.assertEqual(len(json.load(file)["devices"]), 1)

    def test_reports_full_disk(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([PROGRAM, "-t", "2", "-b", "8", "-e", "8"], stdout=full, stderr=subprocess.PIPE,
                                    text=True, timeout=120)
            helped = [subprocess.run([PROGRAM, option], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
                      for option in ("--help", "--version")]
        for one in (result, *helped):
            self.assertNotEqual(one.returncode, 0)
            self.assertIn("standard output: No space left on device", one.stderr)

    def test_lists_algorithms_after_table(self):
        sizes = ("-b", "64", "-e", "4K", "-f", "8")
        for options, environment in ((("--algorithm", "ring"), {}), ((), {"TUTTI_ALGORITHM": "ring"})):
            result = run("--ranks", "2", *sizes, "--protocol", "Simple", *options, **environment)
            self.assertRegex(result.stdout, r"\n# Algorithms +: ring \(Simple\) 64 to 4096 B\n#\n# Collective test")
            self.assertEqual([len(row) for row in rows(result.stdout)], [13] * 3)
        result = run("-t", "2", *sizes, "--algorithm", "two_shot_mapped")  # The algorithm has no messages.
        self.assertRegex(result.stdout, r"\n# Algorithms +: two_shot_mapped 64 to 4096 B\n")

    def test_reports_in_place_algorithm_separately(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.json")
            result = run("-t", "2", "-b", "4", "-e", "4", "-J", path)
            with open(path) as file:
                row = json.load(file)["results"][0]
        choices = [row[form]["algorithm"] for form in ("out_of_place", "in_place")]
        self.assertEqual("# In place " in result.stdout, choices[0] != choices[1])

    def test_marks_times_during_autotuning(self):
        for tune, lines in (("1", 1), ("0", 0), ("exact", 0)):  # `exact` excludes floats.
            result = run("-t", "2", "-b", "128K", "-e", "128K", "-n", "100", "-c", "0", TUTTI_TUNE=tune)
            self.assertEqual(result.returncode, 0, result.stderr)
            found = re.findall(r"\n# Autotuning +: .*\d+ of 100 iterations of 131072 B.* more iterations", result.stdout)
            self.assertEqual(len(found), lines, result.stdout)

    def test_rejects_algorithms_of_other_collectives(self):
        result = run("--ranks", "2", "-e", "8", "--algorithm", "bruck")
        self.assertEqual((result.returncode, rows(result.stdout)), (2, []))
        self.assertRegex(result.stderr, r"^all_reduce_perf: --algorithm bruck is invalid for all_reduce; valid: double_binary_tree, .*two_shot")
        # Ranks of the launcher would never join.
        result = run("-e", "8", "--algorithm", "bruck", **LAUNCHED)
        self.assertIn("--algorithm bruck", result.stderr)

    def test_rejects_unknown_formats_before_starting_ranks(self):
        for started in (("--ranks", "2"), ("-t", "2")):
            result = run(*started, "-e", "8", "--compress", "nosuch")
            self.assertEqual((result.returncode, rows(result.stdout)), (2, []))
            self.assertRegex(result.stderr, r"^all_reduce_perf: --compress nosuch: .*unknown compression format 'nosuch': must be one of raw, .*\n$")

    def test_forces_environments_choice_on_measured_calls_only(self):
        result = run("--ranks", "2", "-e", "8", TUTTI_ALGORITHM="hierarchical")
        self.assertEqual(result.returncode, 2)
        self.assertIn("all_reduce: invalid argument: tutti_all_reduce: algorithm 'hierarchical' does not support all_reduce",
                      result.stderr)

    def test_ranges_of_sizes_end(self):
        for options, sizes in ((("-b", "0", "-e", "0"), [0]), (("-b", "0", "-e", "16", "-i", "8"), [0, 8, 16]),
                               (("-b", "8", "-e", "8", "-f", "1"), [8]), (("-b", "8", "-e", "64", "-f", "1000000000"), [8]),
                               (("-b", "1K", "-e", "1.5K", "-f", "1", "-i", "256"), [1024, 1280, 1536])):
            result = run("-t", "2", "-n", "1", "-w", "0", *options)
            self.assertEqual([int(row[0]) for row in rows(result.stdout)], sizes, options)
        for options in (("-f", "1"), ("-i", "0"), ("-b", "0"), ("-b", "0", "-f", "2")):
            result = run("-t", "2", "-e", "64", *options)
            self.assertEqual((result.returncode, rows(result.stdout)), (2, []), options)
            self.assertRegex(result.stderr, "not grow")

    def test_reports_unused_tune_file_once(self):
        file = {"TUTTI_TUNE_FILE": "/nonexistent/tuned"}
        sizes = ("-b", "8", "-e", "8", "-n", "1")
        result = run("--ranks", "2", *sizes, **file)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("TUTTI_TUNE_FILE has no effect: TUTTI_TUNE is 0"), 1, result.stderr)
        result = run("--ranks", "2", *sizes, TUTTI_DETERMINISTIC="1", **file)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_rejects_sizes_beyond_memory(self):
        result = run("--ranks", "2", "-b", "8", "-e", "900000G")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^all_reduce_perf: --maxbytes: 2 ranks with 2 buffers each need [^\n]*\n$")

    def test_notes_that_collective_has_no_root(self):
        result = run("-t", "2", "-b", "8", "-e", "8", "-r", "1")
        self.assertEqual((result.returncode, len(rows(result.stdout))), (0, 1))
        self.assertEqual(result.stderr, "all_reduce_perf: ignoring --root, which does not apply to all_reduce\n")

    def test_switches_accept_0_or_1(self):
        result = run("-t", "2", "-C", "4")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--report_cputime 4: must be a whole number from 0 to 1", result.stderr)

    def test_explains_every_option_in_its_help(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLessEqual(max(len(line) for line in result.stdout.splitlines()), 100)
        explained = re.findall(r"^  (?:-\w,)? +--([a-z_-]+)(?: [A-Z0-9|-]+)? +[A-Z0-9].{8}", result.stdout, re.MULTILINE)
        for name in ("minbytes", "nthreads", "compress-rounding", "no-pin", "hosts", "help"):
            self.assertIn(name, explained)
        ignored = re.search(r"ignored options of nccl-tests: ([^.]*)\.", result.stdout).group(1)
        ignored = re.findall(r"-\w/--([a-z_]+)", ignored)
        self.assertGreaterEqual(len(ignored), 8)
        for name in ignored:  # The tool accepts a value and prints a note.
            result = run("-t", "1", "-b", "8", "-e", "8", "-n", "1", f"--{name}", "1")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"ignoring --{name}", result.stderr)
        # getopt_long() lists all options for the ambiguous prefix "--". The help has all of them except --host-part.
        listed = set()
        for letter in "abcdeghimnoprstuvw":
            listed |= set(re.findall(r"'--([a-z_-]+)'", run(f"--{letter}").stderr)) - {letter}
        self.assertGreaterEqual(len(listed), 25)
        self.assertEqual(listed - set(explained) - set(ignored), {"host-part"})

    def test_prints_version(self):
        result = run("--version")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^all_reduce_perf, Tutti \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
