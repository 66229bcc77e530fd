#!/usr/bin/env python3
"""Measures on the GPU of this machine, and writes perf/results/gpu-<name>.json and .md:  perf/gpu/run.py [--build DIR]

What a part needs and is not there leaves that part out, with a sentence. `tools/dev gpu` builds, tests and calls this.
"""

import argparse
import json
import os
import re
import shlex
import shutil
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


class Run:
    def __init__(self, options):
        self.options = options
        self.end = time.monotonic() + options.seconds
        self.folder = tempfile.mkdtemp(prefix="tutti-gpu-")
        self.outcomes = {}
        self.failed = False

    def left_s(self):
        return self.end - time.monotonic()

    def perf(self, title, tool, *arguments):
        """A perf tool's JSON; None, and why in outcomes, if it failed or there is no time."""
        path = os.path.join(self.folder, "out.json")
        command = [os.path.join(self.options.build, "perf", tool), *map(str, arguments), "-J", path]
        return json_of(path) if self.do(title, command) else None

    def bench(self):
        """gpu_bench's JSON, or None; its table is shown while it runs."""
        path = os.path.join(self.folder, "bench.json")
        command = [os.path.join(self.options.build, "perf", "gpu", "gpu_bench"), path]
        return json_of(path) if self.do("gpu_bench", command, shown=True) else None

    def do(self, title, command, shown=False, environment=None, may_fail=False):
        """Whether it ended well in the time that is left. `may_fail`: a peer's failure is none of ours."""
        if self.left_s() < 5:
            self.outcomes[title] = "not begun: the time was up"
            return False
        print(f"# {title}: {shlex.join(command)}", flush=True)
        try:
            process = subprocess.Popen(command, text=True, stdout=None if shown else subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, env={**os.environ, **(environment or {})},
                                       start_new_session=True)
            words = process.communicate(timeout=min(self.left_s(), self.options.part_seconds))[1]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # And the processes that it has started.
            process.communicate()
            self.fail(title, "failed: it was stopped at its limit of time", may_fail)
            return False
        except OSError as error:
            self.fail(title, f"failed: {error}")
            return False
        if process.returncode != 0:
            last = words.strip().splitlines()[-2:] or [f"status {process.returncode}"]
            self.fail(title, f"failed: {' / '.join(last)[:300]}", may_fail)
            return False
        self.outcomes[title] = "done"
        return True

    def fail(self, title, words, is_peer=False):
        self.failed = self.failed or not is_peer
        self.outcomes[title] = words
        print(f"# {title}: {words}", flush=True)

    def skip(self, title, words):
        self.outcomes[title] = f"skipped: {words}"
        print(f"# {title} is skipped: {words}", flush=True)


def json_of(path):
    with open(path) as file:
        return json.load(file)


def said(*command):
    """What a command prints, or "" if it is not there or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def machine():
    gpu, _, driver = said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").split("\n")[0].partition(", ")
    cuda = re.search(r"release ([\d.]+)", said("nvcc", "--version") or said("/usr/local/cuda/bin/nvcc", "--version"))
    return {"gpu": gpu, "driver": driver, "cuda": cuda.group(1) if cuda else "?", "cores": os.cpu_count()}


def measure_collectives(run, copied):
    """One thread drives N ranks in groups. Large ones are not checked here: gpu_bench does that on the device."""
    found = []

    def add(title, collective, ranks, *arguments):
        measured = run.perf(title, f"{collective}_perf", "--memory", "cuda", *arguments)
        if measured is None:
            return
        if copied:
            report.add_floors(measured, collective, ranks, copied)
        found.append({"title": title, "collective": collective, "ranks": ranks, "measured": measured})

    for ranks in RANKS:
        for collective in COLLECTIVES:
            name = f"{collective}, {ranks} ranks"
            add(name, collective, ranks, "-g", ranks, "-b", 8, "-e", MIB, "-f", 8)
            add(f"{name}, large", collective, ranks, "-g", ranks, "-b", 16 * MIB, "-e", 1024 * MIB, "-f", 8, "-c", 0)
    for ranks in RANKS:
        add(f"all_reduce, {ranks} ranks in a graph", "all_reduce", ranks, "-g", ranks, "-b", 8, "-e", 64 << 10, "-f", 8,
            "-n", 100, "-G", 10)
        add(f"all_reduce, {ranks} ranks in threads", "all_reduce", ranks, "-t", ranks, "-b", 8, "-e", 64 * MIB, "-f", 64)
    for protocol in ("lines", "rows", "bulk"):
        add(f"all_reduce, 8 ranks, {protocol}", "all_reduce", 8, "-g", 8, "-b", 1024, "-e", 4 * MIB, "-f", 4, "--algorithm",
            "two_shot", "--protocol", protocol)
    add("all_reduce, 2 processes", "all_reduce", 2, "--ranks", 2, "-b", 1024, "-e", MIB, "-f", 32, "-n", 5, "-w", 1,
        "-T", 30)
    for registered, through in enumerate(("lanes", "windows")):
        add(f"all_reduce, 2 processes, large, by {through}", "all_reduce", 2, "--ranks", 2, "-b", 16 * MIB, "-e", 64 * MIB,
            "-f", 4, "-n", 5, "-w", 1, "-T", 30, "-R", registered)
    add("soak: 10,000 iterations, 8 ranks", "all_reduce", 8, "-g", 8, "-b", 4096, "-e", 4096, "-n", 10000)
    return found


def store(options, result, whole):
    """A run of which something failed never takes the place of a whole one."""
    slug = re.sub(r"[^a-z0-9]+", "-", result["machine"]["gpu"].lower()).strip("-")
    path = os.path.join(options.results, f"gpu-{slug}{'' if whole else '-partial'}")
    os.makedirs(options.results, exist_ok=True)
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    with open(path + ".md", "w", encoding="utf-8") as file:
        file.write(report.table(result))
    print(f"\n{report.table(result)}\n# {path}.json and .md written")


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
    if not place["gpu"]:
        print("run.py: there is no GPU here: nvidia-smi lists none", file=sys.stderr)
        return 77
    run = Run(options)
    bench = run.bench()
    # Clients before the long list: what time is left over is the list's.
    in_clients = clients.measure(run)
    collectives = measure_collectives(run, report.copied_gb_s(bench) if bench else None)
    store(options, {"machine": place, "date": time.strftime("%Y-%m-%d"), "commit": said("git", "-C", ROOT, "rev-parse", "HEAD") or "?",
                    "dirty": bool(said("git", "-C", ROOT, "status", "--porcelain", "--", ".", ":!perf/results")),
                    "command": options.command, "bench": bench, "collectives": collectives, "clients": in_clients,
                    "outcomes": run.outcomes}, not run.failed)
    shutil.rmtree(run.folder)
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
