#!/usr/bin/env python3
"""Measures on the GPU of this machine, and writes perf/results/gpu-<name>.json and .md:  perf/gpu/run.py [--build DIR]

What a part needs and is not there leaves that part out, with a sentence. `tools/dev gpu` builds, tests and calls this.
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
import clients  # noqa: E402
import report  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RANKS = (2, 4, 8)
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall")
MIB = 1 << 20
# Twice as many calls of a row, in place and out of place: a trial takes at most 16 + 8 * 17 + 4 * 7 * 12.
CHECKS_OF_A_TRIAL = 350
# A rank that waits in vain says so before its part is stopped, which would leave no words.
TIMEOUT = {"TUTTI_TIMEOUT_MS": "30000", "TUTTI_INIT_TIMEOUT_MS": "60000"}


class Run:
    def __init__(self, options):
        self.options = options
        self.end = time.monotonic() + options.seconds
        self.scratch = tempfile.TemporaryDirectory(prefix="tutti-gpu-")  # Gone with this object.
        self.folder = self.scratch.name
        self.outcomes = {}
        self.failed = False
        self.ended = lambda: None  # Called when a part has ended, well or not.

    def left_s(self):
        return self.end - time.monotonic()

    def perf(self, title, tool, *arguments, environment=None):
        """A perf tool's JSON; None, and why in outcomes, if it failed or there is no time."""
        path = self.fresh("out.json")
        command = [os.path.join(self.options.build, "perf", tool), *map(str, arguments), "-J", path]
        measured = self.results(title, path) if self.do(title, command, environment=environment) or filled(path) else None
        wrong = measured["out_of_bounds"]["count"] if measured is not None else 0
        if wrong:
            self.fail(title, f"failed: {wrong} elements are wrong")
        return measured

    def bench(self):
        """gpu_bench's JSON, or None; its table is shown while it runs. With wrong elements it fails, and says how many."""
        path = self.fresh("bench.json")
        command = [os.path.join(self.options.build, "perf", "gpu", "gpu_bench"), path]
        done = self.do("gpu_bench", command, shown=True)
        return self.results("gpu_bench", path) if done or os.path.exists(path) else None

    def fresh(self, name):
        """A path for a part's results, where there are none of an earlier one."""
        path = os.path.join(self.folder, name)
        if os.path.exists(path):
            os.remove(path)
        return path

    def results(self, title, path, is_peer=False):
        """The JSON that a part has left; None, and why in outcomes, if there is none."""
        try:
            with open(path) as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            self.fail(title, f"failed: its results cannot be read: {error}", is_peer)
            return None

    def do(self, title, command, shown=False, environment=None, may_fail=False):
        """Whether it ended well in the time that is left. `may_fail`: a peer's failure is none of ours."""
        self.ended()  # With what the part before has found.
        if self.left_s() < 5:
            self.fail(title, "not begun: the time was up", may_fail)
            return False
        print(f"# {title}: {shlex.join(command)}", flush=True)
        try:
            process = subprocess.Popen(command, text=True, stdout=None if shown else subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, env={**TIMEOUT, **os.environ, **(environment or {})},
                                       start_new_session=True)
            words = process.communicate(timeout=min(self.left_s(), self.options.part_seconds))[1]
        except subprocess.TimeoutExpired:
            words = self.end_group(process)
            self.fail(title, f"failed: it was stopped at its limit of time{last_of(words, before=': ')}", may_fail)
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
        """It, and the processes that it has started: what they have said. What hangs in the driver may stay."""
        os.killpg(process.pid, signal.SIGKILL)
        try:
            return process.communicate(timeout=5)[1]
        except subprocess.TimeoutExpired:
            print(f"# process {process.pid} does not end", flush=True)
            return ""

    def fail(self, title, words, is_peer=False):
        self.failed = self.failed or not is_peer
        self.outcomes[title] = words
        print(f"# {title}: {words}", flush=True)

    def skip(self, title, words):
        self.outcomes[title] = f"skipped: {words}"
        print(f"# {title} is skipped: {words}", flush=True)


def filled(path):
    """A tool that found wrong elements fails, and shows its rows."""
    return os.path.exists(path) and os.path.getsize(path) > 0


def last_of(words, before=""):
    """The last lines of what a program has said, behind `before`; "" if it has said nothing."""
    last = " / ".join(words.strip().splitlines()[-2:])[:300]
    return before + last if last else ""


def said(*command):
    """What a command prints, or "" if it is not there or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def has_gpu():
    """Some machines have a GPU and no nvidia-smi."""
    return "GPU" in said("nvidia-smi", "-L") or os.path.exists("/dev/nvidia0")


def machine():
    """None where there is no GPU."""
    if not has_gpu():
        return None
    gpu, _, driver = said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").split("\n")[0].partition(", ")
    cuda = re.search(r"release ([\d.]+)", said("nvcc", "--version") or said("/usr/local/cuda/bin/nvcc", "--version"))
    return {"gpu": gpu or "gpu", "driver": driver or "?", "cuda": cuda.group(1) if cuda else "?", "cores": os.cpu_count()}


def measure_early(run, found):
    """What decides most when time is short."""
    parts = {
        # Whether the driver lets several cooperative launches run at a time.
        "all_reduce, 2 threads with 2 ranks each": (4, "-t", 2, "-g", 2, "-b", 8, "-e", MIB, "-f", 32, "-T", 20),
        "soak: 10,000 iterations, 8 ranks": (8, "-g", 8, "-b", 4096, "-e", 4096, "-n", 10000),
    }
    for title, (ranks, *arguments) in parts.items():
        measured = run.perf(title, "all_reduce_perf", "--memory", "cuda", *arguments)
        if measured is not None:
            found.append({"title": title, "collective": "all_reduce", "ranks": ranks, "measured": measured})


def measure_collectives(run, copied, found):
    """One thread drives N ranks in groups."""

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
    # PluginChoices need calls that are enqueued when those before are done, as checked ones are: timed ones are all ahead.
    learning = {"TUTTI_TUNE": "1", "TUTTI_TUNE_FILE": run.fresh("tuned")}
    learned = run.perf("all_reduce, 8 ranks, learning", "all_reduce_perf", "--memory", "cuda", *table, "-n", 1,
                       "-c", CHECKS_OF_A_TRIAL, environment=learning)
    if learned is not None:
        add("all_reduce, 8 ranks, learned", "all_reduce", 8, *table, environment=learning)
    for wire in ("int8", "bf16"):
        narrow = ("-g", 8, "--algorithm", "two_shot", "--compress", wire)
        add(f"all_reduce, 8 ranks in {wire}", "all_reduce", 8, *narrow, "-b", 64 << 10, "-e", MIB, "-f", 4)
        add(f"all_reduce, 8 ranks in {wire}, large", "all_reduce", 8, *narrow, "-b", 16 * MIB, "-e", 64 * MIB, "-f", 4)
    add("all_reduce, 8 ranks, raw lanes, large", "all_reduce", 8, "-g", 8, "-b", 16 * MIB, "-e", 256 * MIB, "-f", 4,
        "--algorithm", "two_shot", "--protocol", "Simple")
    add("all_reduce, 2 processes", "all_reduce", 2, "--ranks", 2, "-b", 1024, "-e", MIB, "-f", 32, "-n", 5, "-w", 1,
        "-T", 30)
    for registered, through in enumerate(("lanes", "windows")):
        add(f"all_reduce, 2 processes, large, by {through}", "all_reduce", 2, "--ranks", 2, "-b", 16 * MIB, "-e", 64 * MIB,
            "-f", 4, "-n", 5, "-w", 1, "-T", 30, "-R", registered)


def path_of(options, result, whole):
    """Without an ending. A run of which something failed, or is still to come, never takes the place of a whole one."""
    slug = re.sub(r"[^a-z0-9]+", "-", result["machine"]["gpu"].lower()).strip("-")
    return os.path.join(options.results, f"gpu-{slug}{'' if whole else '-partial'}")


def write(path, text):
    """All of it or nothing: a run may be stopped at any time."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def store(options, result, whole):
    path = path_of(options, result, whole)
    os.makedirs(options.results, exist_ok=True)
    write(path + ".json", json.dumps(result, indent=1) + "\n")
    write(path + ".md", report.table(result))
    return path


def store_whole(options, result):
    path = store(options, result, True)
    for ending in (".json", ".md"):  # Of what has been stored on the way.
        os.remove(path_of(options, result, False) + ending)
    return path


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build-gpu"))
    parser.add_argument("--deps", default=os.path.join(os.path.dirname(ROOT), "deps"), help="see tools/dev gpu")
    parser.add_argument("--results", default=os.path.join(ROOT, "perf", "results"))
    parser.add_argument("--seconds", type=float, default=270, help="nothing begins later")
    parser.add_argument("--part-seconds", type=float, default=90, help="a part is stopped then")
    parser.add_argument("--command", default="perf/gpu/run.py", help="what the results say that made them")
    return parser.parse_args()


def main():
    options = parse()
    place = machine()
    if place is None:
        print("run.py: there is no GPU here: nvidia-smi lists none, and there is no /dev/nvidia0", file=sys.stderr)
        return 77
    run = Run(options)
    result = {"machine": place, "date": time.strftime("%Y-%m-%d"), "commit": said("git", "-C", ROOT, "rev-parse", "HEAD") or "?",
              "dirty": bool(said("git", "-C", ROOT, "status", "--porcelain", "--", ".", ":!perf/results")),
              "command": options.command, "bench": None, "collectives": [], "clients": {}, "outcomes": run.outcomes}
    run.ended = lambda: store(options, result, False)
    result["bench"] = run.bench()
    measure_early(run, result["collectives"])
    # Clients before the long list, those that decide a target first: what time is left over is the list's.
    clients.measure(run, result["clients"])
    measure_collectives(run, report.copied_gb_s(result["bench"]) if result["bench"] else None, result["collectives"])
    run.ended()
    path = path_of(options, result, False) if run.failed else store_whole(options, result)
    print(f"\n{report.table(result)}\n# {path}.json and .md written")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
