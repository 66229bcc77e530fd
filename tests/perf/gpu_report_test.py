#!/usr/bin/env python3
"""Tests of the reports of perf/gpu/run.py."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "perf", "gpu"))
sys.dont_write_bytecode = True
import clients  # noqa: E402
import mps  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402

MIB = 1 << 20


def bench(large_us=10.0, hand_us=10.0, small_us=5.0):
    large = [{"ranks": 8, "bytes": bytes, "tutti_us": large_us, "hand_us": hand_us, "hand_blocks": 16, "floor_us": 9.0}
             for bytes in (MIB, 64 * MIB)]
    small = [{"ranks": 8, "bytes": 8, "tutti_graph_us": small_us, "two_shot_mapped_graph_us": 5.0, "hand_graph_us": 4.5}]
    return {"copy_driver_gb_s": 3900.0, "copy_kernel_gb_s": 4000.0, "wrong": 0, "large": large, "small": small}


def run_of(**options):
    return run.Run(types.SimpleNamespace(**{"seconds": 60, "part_seconds": 60, "build": "/nowhere", **options}))


@contextlib.contextmanager
def control_of_mps(status):
    """Puts a program in the place of MPS's control program. Yields the file of its arguments and input."""
    with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, PATH=folder + ":" + os.environ["PATH"]):
        program, seen = os.path.join(folder, mps.CONTROL), os.path.join(folder, "seen")
        with open(program, "w") as file:
            file.write(f"#!/bin/sh\necho $CUDA_MPS_PIPE_DIRECTORY $1 $([ $# = 1 ] || cat) >> {seen}\nexit {status}\n")
        os.chmod(program, 0o700)
        yield seen


class Gpu(unittest.TestCase):
    def test_floors_count_each_byte_once(self):
        # 8 ranks move 16 S at 4 TB/s. All-gather reads a block once and writes it 8 times.
        self.assertAlmostEqual(report.floor_us("all_reduce", 8, 1e9, 4000), 4000)
        self.assertAlmostEqual(report.floor_us("all_gather", 8, 1e9, 4000), 2250)
        measured = {"results": [{"size": 1e9, "out_of_place": {"time": 5000}}]}
        report.add_floors(measured, "all_reduce", 8, report.copied_gb_s(bench()))
        self.assertAlmostEqual(measured["results"][0]["of_floor"], 0.8)

    def test_targets_use_worst_row(self):
        self.assertEqual([met for *_, met in report.results(bench())], [True, True, True, True])
        slow = bench()
        slow["large"][1]["tutti_us"] = 12.0  # 0.75 of the floor, and 1.2 times the time by hand.
        self.assertEqual([met for *_, met in report.results(slow)], [False, False, True, True])
        self.assertFalse(list(report.results(bench(small_us=6.5)))[3][3])

    def test_small_messages_have_their_own_target(self):
        mixed = bench()
        mixed["large"][0]["tutti_us"] = mixed["large"][0]["hand_us"] = 1000.0
        self.assertTrue(list(report.results(mixed))[0][3])

    def test_table_lists_failures(self):
        result = {"machine": {"gpu": "A GPU", "driver": "1", "cuda": "13.0"}, "date": "today", "commit": "abc", "dirty": True,
                  "command": "tools/dev gpu", "bench": None, "collectives": [], "clients": {}, "outcomes": {"a part": "failed: for a reason"}}
        self.assertIn("| a part | failed: for a reason |", report.table(result))
        self.assertIn("| 8 ranks, 64 MiB | 10.0 | 0.90 |", report.table({**result, "bench": bench()}))

    def test_rows_show_wrong_elements_or_unchecked(self):
        self.assertEqual(report.wrong({"out_of_place": {"nwrong": 2}, "in_place": {"nwrong": 1}}), 3)
        self.assertEqual(report.wrong({"out_of_place": {"nwrong": 0}, "in_place": {}}), 0)  # The row has no in-place result.
        self.assertEqual(report.wrong({"out_of_place": {"nwrong": 0}, "in_place": {"time": 1.0}}), "unchecked")
        self.assertEqual(report.wrong({"out_of_place": {"time": 1.0}, "in_place": {"time": 1.0}}), "unchecked")

    def test_every_measurement_is_checked(self):
        one, calls = run_of(), []
        one.perf = lambda title, tool, *arguments, **how: calls.append(list(map(str, arguments)))
        run.measure_early(one, [])
        run.measure_collectives(one, None, [])
        self.assertTrue(calls)
        self.assertFalse([arguments for arguments in calls if re.search(r"(-c|--check)[ =]?0", " ".join(arguments))])

    def test_tuned_results_use_file_of_earlier_run(self):
        for autotunes in (True, False):
            one, calls = run_of(), {}

            def perf(title, tool, *arguments, environment=None):
                calls[title] = (list(map(str, arguments)), environment)
                return {"results": []} if autotunes or "autotuning" not in title else None

            one.perf = perf
            run.measure_collectives(one, None, [])
            self.assertEqual("all_reduce, 8 ranks, autotuned" in calls, autotunes)
            first, environment = calls["all_reduce, 8 ranks, autotuning"]
            self.assertEqual(environment, {"TUTTI_TUNE": "1", "TUTTI_TUNE_FILE": os.path.join(one.folder, "tuned")})
            if not autotunes:
                continue
            rows, again = calls["all_reduce, 8 ranks, autotuned"]
            self.assertEqual((again, first[:len(rows)]), (environment, rows))
            self.assertEqual(calls["all_reduce, 8 ranks, predicted"], (rows[:], {"TUTTI_TUNE": "0"}))

    def test_perf_tool_with_wrong_elements_fails_and_is_shown(self):
        with tempfile.TemporaryDirectory() as build:
            os.makedirs(os.path.join(build, "perf"))
            program = os.path.join(build, "perf", "all_reduce_perf")
            for count, status, failed in ((3, 1, True), (0, 0, False)):
                found = {"out_of_bounds": {"count": count}}
                with open(program, "w") as file:
                    file.write(f"#!/bin/sh\necho '{json.dumps(found)}' > $2; exit {status}\n")
                os.chmod(program, 0o700)
                one = run_of(build=build)
                self.assertEqual(one.perf("a part", "all_reduce_perf"), found)
                self.assertEqual((one.failed, "3 elements are wrong" in one.outcomes["a part"]), (failed, failed))

    def test_peer_is_shown_beside_tutti_when_both_ran(self):
        theirs = {"version": 23007, "ranks": 2, "wrong": 0, "rows": [{"bytes": 8, "us": 30.0}]}
        ours = {"version": 23007, "ranks": 2, "wrong": 0, "rows": [{"bytes": 8, "us": 10.0}]}
        both = {"NCCL by nccl_bench, 2 ranks": theirs, "ours by nccl_bench, 2 ranks": ours}
        self.assertIn("| 8 B | 30.0 | 10.0 | 3.00 |", report.beside_nccl(both))
        self.assertIn("| 8 B | 10.0 |", report.beside_nccl({"ours by nccl_bench, 2 ranks": ours}))
        self.assertEqual(report.beside_nccl({"NCCL by nccl_bench, 2 ranks": theirs}), [])

    def test_tutti_runs_without_nccl(self):
        for deps, peers in (("/nowhere", []), (None, ["NCCL by nccl_bench, 2 ranks"])):
            with tempfile.TemporaryDirectory() as folder:
                os.makedirs(os.path.join(folder, "nccl", "lib"))
                open(os.path.join(folder, "nccl", "lib", "libnccl.so.2"), "w").close()
                one, begun = run_of(deps=deps or folder), []
                one.do = lambda title, command, **how: begun.append(title) or title.startswith("ours")
                one.results = lambda *arguments: {}
                clients.side_by_side(one, {}, "libnccl.so.2")
            self.assertEqual(begun, [f"ours by nccl_bench, {ranks} ranks" for ranks in (2, 4, 8)] + peers)
            self.assertEqual("NCCL by nccl_bench" in one.outcomes, not peers)

    def test_tools_dev_runs_all_gpu_labels(self):
        with open(os.path.join(ROOT, "cmake", "tests.cmake")) as modules:
            labels = re.search(r"set\(TUTTI_LABELS_ON_GPU ([a-z ]+)\)", modules.read()).group(1)
        with open(os.path.join(ROOT, "tools", "dev_gpu.sh")) as commands:
            self.assertIn(f"for label in {labels}; do ctest_gpu", commands.read())

    def test_peer_may_fail(self):
        one = run_of()
        self.assertFalse(one.do("theirs", ["false"], may_fail=True))
        self.assertFalse(one.failed)

    def test_failing_or_hanging_part_does_not_end_others(self):
        one = run_of()
        self.assertFalse(one.do("bad", ["sh", "-c", "echo a reason >&2; exit 3"]))
        self.assertFalse(one.do("missing", ["/nowhere/program"]))
        self.assertFalse(run_of(part_seconds=0.1).do("hung", ["sh", "-c", "sleep 600 & wait"]))
        self.assertTrue(one.do("good", ["true"]))
        self.assertEqual(one.outcomes, {"bad": "failed: a reason", "good": "done", "missing": one.outcomes["missing"]})
        self.assertIn("failed: ", one.outcomes["missing"])
        self.assertTrue(one.failed)

    def test_output_of_hanging_part_is_shown(self):
        hung = subprocess.Popen(["sh", "-c", "echo a reason >&2; echo; sleep 600"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True)
        hung.stdout.readline()
        self.assertEqual(run.last_of(run_of().end_group(hung), before=": "), ": a reason")
        self.assertEqual(run.last_of("", before=": "), "")

    def test_bench_with_wrong_elements_fails_and_is_shown(self):
        with tempfile.TemporaryDirectory() as build:
            os.makedirs(os.path.join(build, "perf", "gpu"))
            program = os.path.join(build, "perf", "gpu", "gpu_bench")
            for script, found in (("echo '{\"wrong\": 3}' > $1; exit 1", {"wrong": 3}), ("exit 1", None), ("echo {1 > $1", None)):
                with open(program, "w") as file:
                    file.write("#!/bin/sh\n" + script + "\n")
                os.chmod(program, 0o700)
                one = run_of(build=build)
                self.assertEqual(one.bench(), found)
                self.assertTrue(one.failed)

    def test_mps_ends_after_a_failure(self):
        one = run_of()
        with control_of_mps(0) as seen:
            with self.assertRaises(OSError), mps.running(one) as environment:
                raise OSError
            with open(seen) as file:
                folder = environment["CUDA_MPS_PIPE_DIRECTORY"]
                self.assertEqual(file.read().splitlines(), [f"{folder} -d", f"{folder} quit -t 5"])

    def test_parts_with_mps_are_skipped_without_it(self):
        one = run_of()
        with control_of_mps(1):
            clients.ddp_steps(one, {}, "libnccl.so.2")
            with mps.running(one) as environment:
                self.assertIsNone(environment)
        self.assertIn("skipped", one.outcomes["DDP and FSDP steps"])

    def test_stops_adding_ranks_after_failure(self):
        one, found, tried = run_of(), {}, []

        def do(title, command, **how):
            tried.append(title)
            with open(command[-1], "w") as file:
                file.write('{"losses": [1.0]}')
            return title != "DDP steps of 2 ranks"

        one.do = do
        with control_of_mps(0):
            clients.ddp_steps(one, found, "libnccl.so.2")
        self.assertEqual(tried, ["steps of 1 rank", "DDP steps of 2 ranks", "FSDP steps of 2 ranks", "FSDP steps of 4 ranks"])
        self.assertEqual(sorted(found), ["FSDP steps of 2 ranks", "FSDP steps of 4 ranks", "steps of 1 rank"])

    def test_no_part_starts_after_time_limit(self):
        late = run_of(seconds=1)
        self.assertFalse(late.do("late", ["true"]))
        self.assertIn("not run", late.outcomes["late"])
        self.assertTrue(late.failed)

    def test_results_are_stored_before_next_part(self):
        one, stored = run_of(), []
        one.ended = lambda: stored.append(dict(one.outcomes))
        one.do("first", ["true"])
        one.do("second", ["true"])
        self.assertEqual(stored, [{}, {"first": "done"}])

    def test_compares_losses_step_by_step(self):
        self.assertAlmostEqual(clients.furthest_apart([2.0, 1.0], [2.0, 1.1]), 0.1)
        self.assertEqual(clients.furthest_apart([2.0, 1.0], [2.0]), float("inf"))

    def test_training_steps_are_shown(self):
        found = {"steps of 1 rank": {"seconds_per_step": 0.2}, "NCCL of PyTorch, 1 rank": {"rows": []}}
        self.assertEqual(report.training(found)[-1], "| steps of 1 rank | 200 |")
        self.assertEqual(report.training({}), [])

    def test_latencies_have_a_column_per_number_of_blocks(self):
        measured = {"load": {"1": 222.4, "132": 254.0}, "round trip": 543.6}
        self.assertEqual(report.latencies(measured)[1:], ["| ns, by the number of thread blocks | 1 | 132 |", "|---|---|---|",
                                                          "| load | 222 | 254 |", "| round trip | 544 |  |"])
        self.assertEqual(report.latencies(None), [])

    def test_results_are_named_after_gpu(self):
        with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
            result = {"machine": {"gpu": "NVIDIA H200", "driver": "1", "cuda": "13.0"}, "date": "", "commit": "", "dirty": False,
                      "command": "", "bench": bench(), "collectives": [], "clients": {}, "outcomes": {}}
            sys.stdout, shown = nowhere, sys.stdout
            for whole in (True, False):
                run.store(types.SimpleNamespace(results=folder), result, whole)
            sys.stdout = shown
            self.assertEqual(sorted(os.listdir(folder)), ["gpu-nvidia-h200-partial.json", "gpu-nvidia-h200-partial.md", "gpu-nvidia-h200.json",
                                                          "gpu-nvidia-h200.md"])
            run.store_whole(types.SimpleNamespace(results=folder), result)
            self.assertEqual(sorted(os.listdir(folder)), ["gpu-nvidia-h200.json", "gpu-nvidia-h200.md"])


if __name__ == "__main__":
    unittest.main()
