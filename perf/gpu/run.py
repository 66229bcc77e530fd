#!/usr/bin/env python3
"""Measures on the GPU of this machine, and writes perf/results/gpu-<name>.json and .md:  perf/gpu/run.py [--build DIR]

Skips parts whose requirements are missing, with a message. `tools/dev gpu` builds, tests and calls this program.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peers"))
import clients  # noqa: E402
import mps  # noqa: E402
import report  # noqa: E402
import stored  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RANKS = (2, 4, 8)
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall")
MIB = 1 << 20
# Checked calls of a row, in place and out of place: twice as many. Autotuning takes at most 16 + 8 * 17 + 4 * 7 * 12
# calls.
CHECKS_OF_A_TRIAL = 350
# With these timeouts, ranks that wait in vain report an error before run.py stops the part.
TIMEOUT = {"TUTTI_TIMEOUT_MS": "30000", "TUTTI_INIT_TIMEOUT_MS": "60000"}


class Run:
    def __init__(self, options):
        self.options = options
        self.end = time.monotonic() + options.seconds
        self.scratch = tempfile.TemporaryDirectory(prefix="tutti-gpu-")  # Removed with this object.
        self.folder = self.scratch.name
        self.outcomes = {}
        self.failed = False
        self.ended = lambda: None  # Called after each part, successful or not.

    def left_s(self):
        return self.end - time.monotonic()

    def perf(self, title, tool, *arguments, environment=None):
        """Runs a perf tool and returns its JSON. Returns None, with the reason in outcomes, if it failed or no time is left."""
        path = self.fresh("out.json")
        command = [os.path.join(self.options.build, "perf", tool), *map(str, arguments), "-J", path]
        measured = self.results(title, path) if self.do(title, command, environment=environment) or filled(path) else None
        wrong = measured["out_of_bounds"]["count"] if measured is not None else 0
        if wrong:
            self.fail(title, f"failed: {wrong} elements are wrong")
        return measured

    def bench(self, program="gpu_bench"):
        """Runs a program of perf/gpu, showing its table, and returns its JSON or None. gpu_bench fails if elements are
        wrong, but has JSON."""
        path = self.fresh("bench.json")
        command = [os.path.join(self.options.build, "perf", "gpu", program), path]
        done = self.do(program, command, shown=True)
        return self.results(program, path) if done or os.path.exists(path) else None

    def fresh(self, name):
        """Returns a path for the results of a part. Removes a file of an earlier part with the same name."""
        path = os.path.join(self.folder, name)
        if os.path.exists(path):
            os.remove(path)
        return path

    def results(self, title, path, is_peer=False):
        """Reads the JSON that a part has written. Returns None, with the reason in outcomes, if there is none."""
        try:
            with open(path) as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            self.fail(title, f"failed: reading the results failed: {error}", is_peer)
            return None

    def do(self, title, command, shown=False, environment=None, may_fail=False):
        """Runs a command. Returns true if it succeeded in the remaining time. `may_fail`: a failure does not count as ours."""
        self.ended()  # Stores the results of the previous part.
        if self.left_s() < 5:
            self.fail(title, "not run: no time is left", may_fail)
            return False
        print(f"# {title}: {shlex.join(command)}", flush=True)
        try:
            process = subprocess.Popen(command, text=True, stdout=None if shown else subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, env={**TIMEOUT, **os.environ, **(environment or {})},
                                       start_new_session=True)
            words = process.communicate(timeout=min(self.left_s(), self.options.part_seconds))[1]
        except subprocess.TimeoutExpired:
            words = self.end_group(process)
            self.fail(title, f"failed: stopped at the time limit{last_of(words, before=': ')}", may_fail)
            return False
        except OSError as error:
            self.fail(title, f"failed: {error}")
            return False
        if process.returncode != 0:
            self.fail(title, f"failed: {last_of(words) or f'status {process.returncode}'}", may_fail)
            return False
        self.outcomes[title] = "done"
        return True

    def end_group(self, process):
        """Kills a process and its children and returns its output. Processes that hang in the driver may survive."""
        os.killpg(process.pid, signal.SIGKILL)
        try:
            return process.communicate(timeout=5)[1]
        except subprocess.TimeoutExpired:
            print(f"# process {process.pid} did not end", flush=True)
            return ""

    def fail(self, title, words, is_peer=False):
        self.failed = self.failed or not is_peer
        self.outcomes[title] = words
        print(f"# {title}: {words}", flush=True)

    def skip(self, title, words):
        self.outcomes[title] = f"skipped: {words}"
        print(f"# {title} is skipped: {words}", flush=True)


def filled(path):
    """Returns true if a tool has written results. A tool that finds wrong elements fails, but writes them."""
    return os.path.exists(path) and os.path.getsize(path) > 0


def last_of(words, before=""):
    """Returns the last lines of a program's output, prefixed with `before`, or "" without output."""
    last = " / ".join(words.strip().splitlines()[-2:])[:300]
    return before + last if last else ""


def said(*command):
    """Returns the output of a command, or "" if it does not exist or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def has_gpu():
    """Returns true if this machine has a GPU, with or without nvidia-smi."""
    return "GPU" in said("nvidia-smi", "-L") or os.path.exists("/dev/nvidia0")


def machine():
    """Returns a description of this machine, or None without a GPU."""
    if not has_gpu():
        return None
    gpu, _, driver = said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").split("\n")[0].partition(", ")
    cuda = re.search(r"release ([\d.]+)", said("nvcc", "--version") or said("/usr/local/cuda/bin/nvcc", "--version"))
    return {"gpu": gpu or "gpu", "driver": driver or "?", "cuda": cuda.group(1) if cuda else "?", "cores": os.cpu_count()}


def measure_early(run, found):
    """Runs the most important measurements, before time runs out."""
    parts = {
        # Shows whether the driver runs several cooperative launches concurrently.
        "all_reduce, 2 threads with 2 ranks each": (4, "-t", 2, "-g", 2, "-b", 8, "-e", MIB, "-f", 32, "-T", 20),
        "soak: 10,000 iterations, 8 ranks": (8, "-g", 8, "-b", 4096, "-e", 4096, "-n", 10000),
    }
    for title, (ranks, *arguments) in parts.items():
        measured = run.perf(title, "all_reduce_perf", "--memory", "cuda", *arguments)
        if measured is not None:
            found.append({"title": title, "collective": "all_reduce", "ranks": ranks, "measured": measured})


def measure_collectives(run, copied, found):
    """Measures all collectives. One thread runs N ranks in groups, unless the name says otherwise."""

    def add(title, collective, ranks, *arguments, environment=None):
        measured = run.perf(title, f"{collective}_perf", "--memory", "cuda", *arguments, environment=environment)
        if measured is None:
            return
        if copied:
            report.add_floors(measured, collective, ranks, copied)
        found.append({"title": title, "collective": collective, "ranks": ranks, "measured": measured})

    for ranks in RANKS:
        for collective in COLLECTIVES:
            name = f"{collective}, {ranks} ranks"
            add(name, collective, ranks, "-g", ranks, "-b", 8, "-e", MIB, "-f", 8)
            add(f"{name}, large", collective, ranks, "-g", ranks, "-b", 16 * MIB, "-e", 1024 * MIB, "-f", 8)
    for ranks in RANKS:
        add(f"all_reduce, {ranks} ranks in a graph", "all_reduce", ranks, "-g", ranks, "-b", 8, "-e", 64 << 10, "-f", 8,
            "-n", 100, "-G", 10)
        add(f"all_reduce, {ranks} ranks in threads", "all_reduce", ranks, "-t", ranks, "-b", 8, "-e", 64 * MIB, "-f", 64)
    for protocol in ("LL", "LL128", "Simple"):
        add(f"all_reduce, 8 ranks, {protocol}", "all_reduce", 8, "-g", 8, "-b", 1024, "-e", 4 * MIB, "-f", 4, "--algorithm",
            "two_shot", "--protocol", protocol)
    table = ("-g", 8, "-b", 1024, "-e", 4 * MIB, "-f", 4)
    add("all_reduce, 8 ranks, predicted", "all_reduce", 8, *table, environment={"TUTTI_TUNE": "0"})
    # Autotuning needs calls that are enqueued after the previous ones have completed, like the checked calls of the
    # tool. Timed calls are all enqueued ahead.
    autotuning = {"TUTTI_TUNE": "1", "TUTTI_TUNE_FILE": run.fresh("tuned")}
    tuned = run.perf("all_reduce, 8 ranks, autotuning", "all_reduce_perf", "--memory", "cuda", *table, "-n", 1,
                     "-c", CHECKS_OF_A_TRIAL, environment=autotuning)
    if tuned is not None:
        add("all_reduce, 8 ranks, autotuned", "all_reduce", 8, *table, environment=autotuning)
    for compression in ("int8", "bf16"):
        compressed = ("-g", 8, "--algorithm", "two_shot", "--compress", compression)
        add(f"all_reduce, 8 ranks in {compression}", "all_reduce", 8, *compressed, "-b", 64 << 10, "-e", MIB, "-f", 4)
        add(f"all_reduce, 8 ranks in {compression}, large", "all_reduce", 8, *compressed, "-b", 16 * MIB, "-e", 64 * MIB,
            "-f", 4)
    add("all_reduce, 8 ranks, raw lanes, large", "all_reduce", 8, "-g", 8, "-b", 16 * MIB, "-e", 256 * MIB, "-f", 4,
        "--algorithm", "two_shot", "--protocol", "Simple")
    add("all_reduce, 2 processes", "all_reduce", 2, "--ranks", 2, "-b", 1024, "-e", MIB, "-f", 32, "-n", 5, "-w", 1,
        "-T", 30)
    for registered, through in enumerate(("lanes", "windows")):
        add(f"all_reduce, 2 processes, large, by {through}", "all_reduce", 2, "--ranks", 2, "-b", 16 * MIB, "-e", 64 * MIB,
            "-f", 4, "-n", 5, "-w", 1, "-T", 30, "-R", registered)
    with mps.running(run) as environment:
        if environment is None:
            return run.skip("processes with MPS", f"{mps.CONTROL} is not installed or does not start")
        for ranks in (2, 4):
            add(f"all_reduce, {ranks} processes with MPS", "all_reduce", ranks, "--ranks", ranks, "-b", 8, "-e", 64 * MIB, "-f", 8,
                environment=environment)
            for algorithm in ("two_shot_staged", "two_shot"):
                add(f"{algorithm}, {ranks} processes with MPS", "all_reduce", ranks, "--ranks", ranks, "-b", MIB, "-e", 16 * MIB,
                    "-f", 4, "--algorithm", algorithm, "--protocol", "Simple", environment=environment)


def path_of(options, result, whole):
    """Returns the path of the results without extension. Partial and failed runs never replace the results of a whole one."""
    slug = re.sub(r"[^a-z0-9]+", "-", result["machine"]["gpu"].lower()).strip("-")
    return os.path.join(options.results, f"gpu-{slug}{'' if whole else '-partial'}")


def write(path, text):
    """Writes a file atomically, since the run may be stopped at any time."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def store(options, result, whole):
    path = path_of(options, result, whole)
    os.makedirs(options.results, exist_ok=True)
    write(path + ".json", stored.text(result) + "\n")
    write(path + ".md", report.table(result))
    return path


def store_whole(options, result):
    path = store(options, result, True)
    for ending in (".json", ".md"):  # Remove partial results.
        os.remove(path_of(options, result, False) + ending)
    return path


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build-gpu"))
    parser.add_argument("--deps", default=os.path.join(os.path.dirname(ROOT), "deps"), help="see tools/dev gpu")
    parser.add_argument("--results", default=os.path.join(ROOT, "perf", "results"))
    parser.add_argument("--seconds", type=float, default=270, help="time in seconds after which no part begins")
    parser.add_argument("--part-seconds", type=float, default=90, help="time limit of a part in seconds")
    parser.add_argument("--skip-pytorch", action="store_true", help="without PyTorch, whose programs take 20 s each to start")
    parser.add_argument("--command", default="perf/gpu/run.py", help="command that is stored with the results")
    return parser.parse_args()


def main():
    options = parse()
    system = machine()
    if system is None:
        print("run.py: no GPU is available (none in nvidia-smi, no /dev/nvidia0)", file=sys.stderr)
        return 77
    run = Run(options)
    result = {"machine": system, "date": time.strftime("%Y-%m-%d"), "commit": said("git", "-C", ROOT, "rev-parse", "HEAD") or "?",
              "dirty": bool(said("git", "-C", ROOT, "status", "--porcelain", "--", ".", ":!perf/results")),
              "command": options.command, "latencies": None, "bench": None, "collectives": [], "clients": {}, "outcomes": run.outcomes}
    run.ended = lambda: store(options, result, False)
    result["latencies"] = run.bench("gpu_latencies")
    result["bench"] = run.bench()
    measure_early(run, result["collectives"])
    # Clients run before the long list of collectives, which uses the remaining time.
    clients.measure(run, result["clients"])
    measure_collectives(run, report.copied_gb_s(result["bench"]) if result["bench"] else None, result["collectives"])
    run.ended()
    path = path_of(options, result, False) if run.failed else store_whole(options, result)
    print(f"\n{report.table(result)}\n# {path}.json and .md written")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
