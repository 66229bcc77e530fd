"""Runs PyTorch's own tests of torch.distributed, from its wheel, and prints the number of results of each kind.

    pytorch_suite.py --backend tutti|gloo [--replace-gloo] [--only TEXT] [--json FILE] [--of FILE]
    pytorch_suite.py --compare      # Gloo, Tutti in place of Gloo, and Tutti; fails if Tutti fails where Gloo passes.

Tests run in forked ranks, which takes a ninth of the time of spawned ones. Tests that a run with Gloo skips, because they need
GPUs or more ranks, are not run with Tutti: they take half of the time.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import unittest

OF_GPUS = ("cuda", "nccl", "gpu")  # Parts of the names of tests that need a GPU.
# Tests that cannot pass, with the reason.
EXCLUDED = {
    "test_ddp_logging_data_cpu": "expects the backend's name in DDP's log to be gloo or mpi; PyTorch calls others custom",
}

MINIMUM_PASSES = 50  # Fewer passes of all tests are a failure, such as of a suite that does not start.

CONFIGURATIONS = {"gloo": ["--backend", "gloo"], "replaced": ["--backend", "gloo", "--replace-gloo"],
                  "tutti": ["--backend", "tutti"]}


class Results(unittest.TextTestResult):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.by_kind = collections.defaultdict(dict)

    def _note(self, kind, test, text=""):
        self.by_kind[kind][test._testMethodName] = text

    def addSuccess(self, test):
        super().addSuccess(test)
        self._note("pass", test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._note("fail", test, self.failures[-1][1])

    def addError(self, test, error):
        super().addError(test, error)
        self._note("fail", test, self.errors[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._note("skip", test, reason)


def prepare(arguments, folder):
    """Sets the variables that PyTorch's tests read when they are imported."""
    for name in ("barrier", "test_dir", "init_dir"):
        os.mkdir(os.path.join(folder, name))
    os.environ.update(BACKEND=arguments.backend, WORLD_SIZE=str(arguments.ranks), TEMP_DIR=folder,
                      INIT_METHOD=f"file://{folder}/init_dir/shared_init_file", OMP_NUM_THREADS="1",
                      DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="60")


def load_suite(only, skipped):
    """Returns the tests, and the names of all that were chosen. skipped: names of tests that are not run."""
    import torch
    from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

    class TestForked(TestDistBackend, DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    names = unittest.defaultTestLoader.getTestCaseNames(TestForked)
    chosen = [name for name in names if only in name and not any(part in name.lower() for part in OF_GPUS)]
    return unittest.TestSuite(TestForked(name) for name in chosen if name not in EXCLUDED and name not in skipped), chosen


def start(name, only, folder):
    """Starts the tests of a configuration in a process of their own."""
    of = [] if name == "gloo" else ["--of", os.path.join(folder, "gloo.json")]
    return subprocess.Popen([sys.executable, "-B", __file__, "--only", only, "--json", os.path.join(folder, f"{name}.json"), *of,
                             *CONFIGURATIONS[name]], stderr=subprocess.DEVNULL)


def results_of(name, process, only, folder):
    path = os.path.join(folder, f"{name}.json")
    status = process.wait()
    if status not in (0, 1) or not os.path.exists(path):
        raise SystemExit(f"the tests with {name} ended with status {status} before their results")
    with open(path) as file:
        results = json.load(file)
    passes = len(results.get("pass", {}))
    if passes < (1 if only else MINIMUM_PASSES):
        raise SystemExit(f"only {passes} tests pass with {name}; a run of all tests has {MINIMUM_PASSES} or more")
    return results


def run_all(only):
    """Runs the three configurations, and returns the names of tests that only Gloo passes."""
    with tempfile.TemporaryDirectory() as folder:
        results = {"gloo": results_of("gloo", start("gloo", only, folder), only, folder)}
        processes = {name: start(name, only, folder) for name in CONFIGURATIONS if name != "gloo"}  # They mostly wait.
        try:
            for name, process in processes.items():
                results[name] = results_of(name, process, only, folder)
        finally:
            for process in processes.values():
                process.kill()
    skipped = {**results["gloo"].get("skip", {}), **results["tutti"].get("skip", {})}
    for reason, count in collections.Counter(skipped.values()).most_common():
        print(f"{count:4} skipped with Tutti: {reason}")
    for name, reason in results["tutti"]["excluded"].items():
        print(f"excluded: {name}: {reason}")
    lost = set(results["gloo"].get("pass", {})) - set(results["replaced"].get("pass", {})) - set(EXCLUDED)
    return sorted(lost | set(results["tutti"].get("fail", {})) - set(results["gloo"].get("fail", {})))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--replace-gloo", action="store_true")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("--of", help="results of a run whose skipped tests are not run")
    parser.add_argument("--compare", action="store_true")
    arguments = parser.parse_args()
    if arguments.compare:
        lost = run_all(arguments.only)
        print("Tutti passes all tests that Gloo passes" if not lost else f"only Gloo passes: {', '.join(lost)}")
        return 1 if lost else 0
    with tempfile.TemporaryDirectory() as folder:
        prepare(arguments, folder)
        import torch

        import tutti.torch

        torch.set_num_threads(1)
        if arguments.replace_gloo:
            tutti.torch.replace_gloo()
        skipped = set()
        if arguments.of:
            with open(arguments.of) as file:
                reasons = json.load(file).get("skip", {})
            skipped = {name for name, reason in reasons.items() if "accelerator" in reason or "world size" in reason}
        suite, chosen = load_suite(arguments.only, skipped)
        results = unittest.TextTestRunner(stream=open(os.devnull, "w"), resultclass=Results).run(suite)
    excluded = [name for name in chosen if name in EXCLUDED]
    for name in results.by_kind["fail"]:
        print(f"FAIL {name}\n{results.by_kind['fail'][name][-1500:]}")
    counts = {kind: len(results.by_kind[kind]) for kind in ("pass", "fail", "skip")}
    print(f"{arguments.backend}{' (replaced)' if arguments.replace_gloo else ''}, {arguments.ranks} ranks: {counts}, "
          f"{len(excluded)} excluded")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({**results.by_kind, "excluded": {name: EXCLUDED[name] for name in excluded}}, file, indent=1)
    return 1 if counts["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
