#!/usr/bin/env python3
"""Compares the PyTorch backend of Tutti with Gloo, interleaved in the same processes, and prints tables.

perf/pytorch/run.py [--ranks 2,4] [--parts all_reduce,ddp,tensor_parallel] [--network] [--store NAME]

Needs PyTorch and the package tutti in the Python that runs it; `tools/dev pytorch --bench` provides both. With
--network, two emulated hosts with links of 1 and 10 Gbit/s are compared, too; that needs root and iproute2.
--store writes perf/results/NAME.json, NAME.md and NAME.svg.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import bars  # noqa: E402

LOADED = "while :; do :; done"  # A process that occupies one core.
LINKS = [(rate, congestion) for rate in ("1gbit", "10gbit") for congestion in ("cubic", "bbr")]
NETWORK_SIZES = "8,1024,65536,1048576,16777216"


def described_size(size):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size} B"


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
    return {"processor": model, "cpus": len(os.sched_getaffinity(0)), "kernel": platform.release(), "commit": commit.strip()}


class Runner:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.TemporaryDirectory(prefix="tutti-pytorch-")

    def measure(self, ranks, parts, prefix=(), loaded=False, options=()):
        """Runs the worker on `ranks` ranks and returns its results. `prefix` is a command that starts one worker per rank.

        Returns None if the command exits with 77: this machine does not permit the setting.
        """
        output = os.path.join(self.folder.name, "results.json")
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        worker = [os.path.join(HERE, "worker.py"), "--backend", self.options.backend, "--rounds", str(self.options.rounds),
                  "--parts", parts, "--output", output, *options]
        load = subprocess.Popen(["bash", "-c", LOADED]) if loaded else None
        try:
            environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
            if prefix:
                environment["GLOO_SOCKET_IFNAME"] = "eth0"  # Gloo would use the address of the host name.
            status = subprocess.run([*prefix, *(worker if prefix else launch + worker)], env=environment).returncode
            if status == 77:
                return None
            if status != 0:
                sys.exit(f"perf/pytorch/worker.py failed with exit status {status}")
        finally:
            if load is not None:
                load.kill()
                load.wait()
        with open(output, encoding="utf-8") as file:
            return json.load(file)

    def between_hosts(self, rate, congestion):
        hosts = os.path.join(ROOT, "tests", "multihost", "run.sh")
        prefix = (hosts, "--hosts", "2x1", "--rate", rate, "--congestion", congestion, "--", sys.executable)
        options = ["--sizes", NETWORK_SIZES]
        if self.options.backend == "tutti":
            options += ["--compress", "int8"]
        return self.measure(2, "all_reduce", prefix, options=options)


def ratio(times, of, to):
    return times[of]["median_us"] / times[to]["median_us"]


def all_reduce_table(results, backend):
    compressed = "int8 blocking" in results["all_reduce"][0]["times"]
    header = ["size", "PyTorch alone", "Gloo", backend, "ratio", "Gloo, async", f"{backend}, async", "ratio"]
    header += ["int8", "ratio of int8"] if compressed else []
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for row in results["all_reduce"]:
        times = row["times"]
        median = {name: f"{figures['median_us']:.1f}" for name, figures in times.items()}
        cells = [described_size(row["bytes"]), median["fake blocking"]]
        for style in ("blocking", "async"):
            gloo, ours = f"gloo {style}", f"{backend} {style}"
            cells += [median[gloo], median[ours], f"{ratio(times, gloo, ours):.1f}x"]
        if compressed:
            cells += [median["int8 blocking"], f"{ratio(times, 'gloo blocking', 'int8 blocking'):.1f}x"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def step_table(rows, backend):
    lines = ["| parameters | batch | no communication | Gloo | " + backend + " | " + backend +
             ", blocking | exposed communication | step |", "|" + "---|" * 8]
    for row in rows:
        ms = {name: figures["median_us"] / 1000 for name, figures in row["times"].items()}
        exposed = max(ms[backend] - ms["fake"], 0.0) / max(ms["gloo"] - ms["fake"], 1e-9)
        names = ("fake", "gloo", backend, f"{backend} blocking")
        cells = [f"{row['parameters'] / 1e6:.1f} M", str(row["batch"]), *(f"{ms[name]:.1f}" for name in names),
                 f"{exposed:.2f} of Gloo's", f"{ms['gloo'] / ms[backend]:.2f}x"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def token_table(rows, backend):
    lines = ["| all_reduce per layer | Gloo | " + backend + " | tokens per second |", "|---|---|---|---|"]
    for row in rows:
        times = row["times"]
        lines.append(f"| {described_size(row['bytes'])} | {times['gloo']['median_us']:.0f} | "
                     f"{times[backend]['median_us']:.0f} | {ratio(times, 'gloo', backend):.2f}x |")
    return lines


def report(measured, options):
    backend = options.backend
    about = measured["machine"]
    lines = ["# torch.distributed on CPU: Tutti and Gloo", "",
             f"{about['processor']}, {about['cpus']} CPUs, kernel {about['kernel']}, commit {about['commit']}, PyTorch "
             f"{measured['runs'][0]['torch']}. Both backends run in the same processes and alternate. Medians of "
             f"{options.rounds} rounds. One thread per rank. Command: `perf/pytorch/run.py {' '.join(sys.argv[1:])}`.", "",
             "*PyTorch alone* is the time of dispatch: the backend `fake` of PyTorch does nothing. *No communication* is DDP with a "
             f"hook that returns each bucket as it is. *{backend}, blocking* is a model without DDP, which averages all gradients in one "
             "blocking call after the backward pass.", ""]
    for run in measured["runs"]:
        where = f", {run['ranks']} ranks" + (f", {run['setting']}" if run["setting"] else "")
        if "all_reduce" in run:
            lines += [f"## all_reduce in us{where}", "", *all_reduce_table(run, backend), ""]
        if "ddp" in run:
            lines += [f"## DDP step in ms{where}", "", *step_table(run["ddp"], backend), ""]
        if "tensor_parallel" in run:
            lines += [f"## Tensor-parallel token in us{where}", "", *token_table(run["tensor_parallel"], backend), ""]
    return "\n".join(lines)


def chart(run, about):
    """Returns the chart of the all_reduce of `run`, as SVG."""
    rows = [(described_size(row["bytes"]), [ratio(row["times"], f"gloo {style}", f"{run['backend']} {style}")
                                            for style in ("blocking", "async")]) for row in run["all_reduce"]]
    return bars.svg(f"all_reduce of torch.distributed, {run['ranks']} processes, {about['processor']}, float32",
                    "times as fast as Gloo at that size", ("blocking", "async_op=True"), rows, grid=10)


def store(measured, report_text, name):
    """Writes perf/results/NAME.json, .md and, if all_reduce was measured, .svg."""
    contents = {".json": json.dumps(measured, indent=1) + "\n", ".md": report_text}
    if "all_reduce" in measured["runs"][0]:
        contents[".svg"] = chart(measured["runs"][0], measured["machine"])
    for suffix, content in contents.items():
        with open(os.path.join(ROOT, "perf", "results", name + suffix), "w", encoding="utf-8") as file:
            file.write(content)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti", help="backend to compare with Gloo (default: tutti)")
    parser.add_argument("--ranks", default="2,4", help="numbers of ranks, a list (default: 2,4)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each measurement (default: 15)")
    parser.add_argument("--parts", default="all_reduce,ddp,tensor_parallel", help="parts to measure, a list")
    parser.add_argument("--loaded", action="store_true", help="also measure DDP beside a process that occupies one core")
    parser.add_argument("--network", action="store_true", help="also compare between two emulated hosts")
    parser.add_argument("--store", help="name of the files in perf/results to write")
    return parser.parse_args()


def main():
    options = parse()
    runner = Runner(options)
    runs = []
    for ranks in map(int, options.ranks.split(",")):
        parts = [part for part in options.parts.split(",") if part == "all_reduce" or ranks == 2]
        if parts:
            runs.append(dict(runner.measure(ranks, ",".join(parts)), setting=""))
    if options.loaded:
        runs.append(dict(runner.measure(2, "ddp_small", loaded=True), setting="one core also runs another process"))
    if options.network:
        for link in LINKS:
            run = runner.between_hosts(*link)
            if run is not None:
                runs.append(dict(run, setting="two hosts, {}, {}".format(*link)))
    measured = {"machine": machine(), "runs": runs}
    text = report(measured, options)
    print(text)
    if options.store:
        store(measured, text, options.store)


if __name__ == "__main__":
    main()
