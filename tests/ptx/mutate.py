"""Weakens the synchronization of our kernels, one instruction at a time, and lists what tests on the PTX machine find.

Each test runs once unchanged, which lists the mutants that it executes. Then the tests run with each mutant, for each
seed, until one fails. docs/design/ptx-machine.md explains the mutants that no test finds.

Exit status: 0; 1 if too few mutants are found, one lacks an explanation, or an explanation has no mutant; 2 for a wrong
option or a test that fails unchanged. Only runs with all tests need explanations.
"""

import argparse
import concurrent.futures
import fnmatch
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXPLANATIONS = os.path.join(ROOT, "docs/design/ptx-machine.md")
DEADLOCK_MS = "2000"

# Name, program below the build folder, arguments, and settings, where {build} is the build folder. Fast tests come first,
# because most mutants fail in any of them.
INTERPRETER = "tests/executor/executor_cuda_interpreter_test"
ROUNDING = "tests/communicator/device/device_rounding_test"  # Kernels run_plan_compressed and apply_residuals.
TESTS = [
    ("two_shot", INTERPRETER, ["--gtest_filter=*WithThreeRanks/all_reduce_two_shot_mapped"]),
    ("split", INTERPRETER, ["--gtest_filter=*WithThreeRanks/broadcast_split_mapped"]),
    ("one_shot", INTERPRETER, ["--gtest_filter=*WithThreeRanks/all_reduce_one_shot"]),
    ("reports", "tests/executor/executor_device_tests", ["--file=device_reports_test.cc", "--gtest_filter=*/cuda"]),
    ("chain", INTERPRETER, ["--gtest_filter=*WithThreeRanks/broadcast_chain"]),
    ("ring", INTERPRETER, ["--gtest_filter=*WithThreeRanks/all_reduce_ring"]),
    ("slices", "tests/communicator/device/device_failures_tests",
     ["--file=processes_test.cc", "--gtest_filter=*ExchangesMessages_InAnyOrderWithCollectives/cuda"], {"TUTTI_PTX_MPS": "0"}),
    ("switches", "tests/ptx/ptx_switched_windows_test", ["--gtest_filter=*ServeOtherPlacesOfOneRank*:*AddInAnyOrder"],
     {"LD_LIBRARY_PATH": "{build}/tests/ptx/runtime/nvml"}),
    ("hosts", "tests/ptx/ptx_ll_between_hosts_test", []),
    ("sequence", "tests/ptx/ptx_nccl_tests", ["--gtest_filter=ThreadBlocks.AreAtLeastMinCtas"]),
    ("residuals", ROUNDING, ["--gtest_filter=*FeedsBack_InGraphs/cuda:*ReportsItsError/cuda"]),
    ("rounding", ROUNDING, ["--gtest_filter=*MatchesHostMemory_ForEachCall/cuda"]),
]
FAULTS = ("data race", "deadlock", "uninitialised value", "wrong barrier", "wrong member mask", "out of bounds")


class Mutant:
    def __init__(self, name, kind, place):
        self.name, self.kind = name, kind
        positions = re.search(r"\(([^()]*:\d[^()]*)\)$", place)
        self.place = positions.group(1) if positions else place  # Source positions, innermost first.
        self.tests = []  # Tests that execute it.
        self.found = ""  # Test, seed and reason.

    def order(self):
        kernel, number = self.name.split("#")
        return kernel, int(number)


def run(build, test, seed, limit_s, settings):
    """Returns the exit status, or "time limit", and the output."""
    environment = dict(os.environ, TUTTI_PTX_SEED=str(seed), TUTTI_PTX_DEADLOCK_MS=DEADLOCK_MS, **settings)
    for name, value in test[3].items() if len(test) > 3 else ():
        environment[name] = value.format(build=build)
    try:
        done = subprocess.run([os.path.join(build, test[1])] + test[2], env=environment, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return "time limit", ""
    return done.returncode, done.stdout


def list_mutants(options, tests):
    """Runs the tests unchanged. Returns the mutants in their order in the PTX."""
    mutants = {}
    for test in tests:
        with tempfile.NamedTemporaryFile(mode="r", prefix="tutti-ptx-") as file:
            begin = time.monotonic()
            status, output = run(options.build, test, 1, options.limit, {"TUTTI_PTX_EXECUTED": file.name})
            if status != 0:
                print("%s\n%s fails without a mutant: status %s" % (output[-3000:], test[0], status), file=sys.stderr)
                sys.exit(2)
            lines = [line.rstrip("\n").split("\t") for line in file]
        for words in lines:
            if words[0] == "mutant":
                mutants.setdefault(words[1], Mutant(*words[1:4]))
        executed = {words[1] for words in lines if words[0] == "executed"}
        for name in executed:
            mutants[name].tests.append(test)
        print("%s: %d mutants execute, %.1f s" % (test[0], len(executed), time.monotonic() - begin), flush=True)
    return sorted(mutants.values(), key=Mutant.order)


def fault_of(options, test, seed, mutant):
    """Returns the fault by which the test fails, or "" if it passes."""
    settings = {"TUTTI_PTX_MUTANT": mutant.name}
    status, output = run(options.build, test, seed, options.limit, settings)
    if status == 0:
        return ""
    fault = next((fault for fault in FAULTS if fault in output), "wrong result")
    if status == "time limit" or fault == "deadlock":  # Another process may have taken the CPUs for long.
        again, _ = run(options.build, test, seed, options.limit, settings)
        return "" if again == 0 else "deadlock"
    return fault


def attempt(options, mutant):
    for test in mutant.tests:
        for seed in range(1, options.seeds + 1):
            fault = fault_of(options, test, seed, mutant)
            if fault:
                mutant.found = "%s, seed %d: %s" % (test[0], seed, fault)
                return mutant
    return mutant


def explanations():
    """Rows `| kind, or kind in kernel | place | reason |` of the table in the design page."""
    rows = []
    for line in open(EXPLANATIONS):
        cells = [cell.replace("`", "").strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 3 and re.match(r"\S+: ", cells[1]):
            rows.append(cells)
    return rows


def is_at(position, wanted):
    """Whether a position `file:line` is the wanted one, which may be `file: part of the line`."""
    name, line = position.split(":")
    wanted_name, _, text = wanted.partition(": ")
    if not text or name != wanted_name:
        return position == wanted
    files = glob.glob(os.path.join(ROOT, "src/**", name), recursive=True)
    return any(text in "".join(open(file).readlines()[int(line) - 1:int(line)]) for file in files)


def applies(row, mutant):
    """Whether the row names the kind of the mutant, its kernel or none, and adjacent positions."""
    kind, place, _ = row
    if kind not in (mutant.kind, mutant.kind + " in " + mutant.name.split("#")[0]):
        return False
    wanted, positions = place.split(" < "), mutant.place.split(" < ")
    starts = range(len(positions) - len(wanted) + 1)
    return any(all(map(is_at, positions[start:], wanted)) for start in starts)


def explain(mutant, rows):
    if mutant.found or not mutant.tests:
        return ""
    return next((row[2] for row in rows if applies(row, mutant)), "unexplained")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ", ".join(test[0] for test in TESTS)
    parser.add_argument("--build", default=os.path.join(ROOT, "build-ptx"), help="build folder: build-ptx")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count(), help="tests at a time: number of CPUs")
    parser.add_argument("--seeds", type=int, default=6, help="seeds of each test: 6")
    parser.add_argument("--limit", type=int, default=120, help="time limit of a test in seconds: 120")
    parser.add_argument("--tests", default="*", help="pattern of tests: *; tests: " + names)
    parser.add_argument("--mutants", default="run_plan#*,run_ll#*", help="patterns of mutants: run_plan#*,run_ll#*")
    parser.add_argument("--places", default="*", help="pattern of source positions, innermost first: *")
    parser.add_argument("--list", action="store_true", help="only list the mutants, and check that each explanation has one")
    parser.add_argument("--every", type=int, default=1, help="only every n-th of the mutants that execute: 1")
    parser.add_argument("--min-found", type=int, default=90, help="percentage to find of the mutants that matter: 90")
    options = parser.parse_args()
    options.chosen_tests = [test for test in TESTS if fnmatch.fnmatch(test[0], options.tests)]
    if not options.chosen_tests:
        parser.error("--tests %s matches no test; tests: %s" % (options.tests, names))
    return options


def main():
    options = parse_options()
    listed = list_mutants(options, options.chosen_tests)
    mutants = [mutant for mutant in listed if any(fnmatch.fnmatch(mutant.name, pattern) for pattern in options.mutants.split(",")) and
               fnmatch.fnmatch(mutant.place, options.places)]
    executed = [mutant for mutant in mutants if mutant.tests][::options.every]
    rows = explanations()
    complete = options.chosen_tests == TESTS  # Other runs may not list the mutants of all kernels.
    for row in rows if complete else []:
        if not any(applies(row, mutant) for mutant in listed):
            print("%s has a row for no mutant: %s" % (EXPLANATIONS, " | ".join(row)), file=sys.stderr)
            sys.exit(1)
    if options.list:
        print("\n| mutant | kind | place | executed by |\n|---|---|---|---|")
        for mutant in mutants:
            print("| %s | %s | %s | %s |" % (mutant.name, mutant.kind, mutant.place, " ".join(test[0] for test in mutant.tests)))
        return
    print("%d mutants, %d of them run; seeds 1 to %d\n" % (len(mutants), len(executed), options.seeds))
    print("| mutant | kind | place | executed by | found | why not |\n|---|---|---|---|---|---|", flush=True)
    for mutant in mutants if options.every == 1 else []:
        if not mutant.tests:
            print("| %s | %s | %s | | | |" % (mutant.name, mutant.kind, mutant.place))
    counts = {"found": 0, "matter": 0, "unexplained": 0}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for mutant in pool.map(lambda each: attempt(options, each), executed):
            why = explain(mutant, rows)
            counts["found"] += bool(mutant.found)
            counts["matter"] += not why.startswith("equivalent")
            counts["unexplained"] += why == "unexplained"
            print("| %s | %s | %s | %s | %s | %s |" % (mutant.name, mutant.kind, mutant.place, " ".join(
                test[0] for test in mutant.tests), mutant.found or "no", why), flush=True)
    share = 100 * counts["found"] / max(counts["matter"], 1)
    print("\nfound %d of %d mutants that execute and are not equivalent: %.0f %%; unexplained: %d" %
          (counts["found"], counts["matter"], share, counts["unexplained"]))
    sys.exit(1 if share < options.min_found or (complete and counts["unexplained"]) else 0)


if __name__ == "__main__":
    main()
