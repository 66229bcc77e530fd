"""Costs of Tutti outside of calls: creation of a communicator, an idle communicator, and the steps of the interpreter."""

import json
import os
import statistics
import subprocess

CREATED = (2, 32)  # Ranks.
REPETITIONS = 9
BENCHES = ("65536/4096", "1048576/4096", "1048576/65536")  # Bytes and chunk size in perf/micro/interpreter_bench.cc.


def costs_driver(build, *arguments):
    done = subprocess.run([os.path.join(build, "costs_driver"), *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, check=True)
    return float(done.stdout)


def interpreter(build):
    """Returns ns per step of the interpreter and of hand-written loops, or None without google-benchmark."""
    program = os.path.join(os.path.dirname(build), "micro", "interpreter_bench")
    if not os.path.exists(program):
        return None
    done = subprocess.run([program, "--benchmark_format=json", f"--benchmark_repetitions={REPETITIONS}",
                           "--benchmark_report_aggregates_only=true", "--benchmark_enable_random_interleaving=true"],
                          capture_output=True, text=True, timeout=300, check=True)
    medians = {entry["run_name"]: 1e9 / entry["steps"] for entry in json.loads(done.stdout)["benchmarks"]
               if entry["aggregate_name"] == "median"}
    return {bench: {"interpreted_ns": medians[f"interpreted/{bench}"], "by_hand_ns": medians[f"by_hand/{bench}"]}
            for bench in BENCHES}


def measure(build):
    created = {str(ranks): statistics.median(costs_driver(build, "create", ranks) for _ in range(REPETITIONS))
               for ranks in CREATED}
    return {"create_ms": created, "idle_cpu_ms_per_s": costs_driver(build, "idle", 3), "interpreter": interpreter(build)}


def text(own):
    lines = [f"# creating a communicator of {ranks} ranks takes {ms:.1f} ms" for ranks, ms in own["create_ms"].items()]
    lines.append(f"# an idle communicator with a stream uses {own['idle_cpu_ms_per_s']:.2f} ms of CPU per second")
    if own["interpreter"] is None:
        lines.append("# steps of the interpreter are not measured: google-benchmark is not installed")
        return "\n".join(lines)
    for bench, step in own["interpreter"].items():
        size, chunk = bench.split("/")
        lines.append(f"# a step, {int(size) >> 10} KiB in chunks of {int(chunk) >> 10} KiB: interpreted "
                     f"{step['interpreted_ns']:.1f} ns, by hand {step['by_hand_ns']:.1f} ns")
    return "\n".join(lines)
