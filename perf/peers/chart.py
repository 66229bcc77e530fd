#!/usr/bin/env python3
"""Draws the chart of README.md from a stored run: speed of all-reduce relative to the best tuned peer.

perf/peers/chart.py writes perf/results/all-reduce.svg from perf/results/host-amd-epyc.json.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import bars  # noqa: E402
from report import size_name  # noqa: E402
from stored import load  # noqa: E402

RESULTS = os.path.join(os.path.dirname(HERE), "results")
RUN = os.path.join(RESULTS, "host-amd-epyc.json")
CHART = os.path.join(RESULTS, "all-reduce.svg")
SERIES = (("tuned/tutti", "private buffers (malloc)"), ("tuned/mapped", "buffers of tutti_mem_alloc"))


def rows_of(run):
    """Returns the all-reduces of two ranks, without rows during which the link between the cores changed."""
    return [row for row in run["rows"] if row["collective"] == "all_reduce" and row.get("ranks", 2) == 2
            and row["link"] != "mixed" and max(row["link_ns"]) < 1.5 * min(row["link_ns"])]


def svg(run):
    rows = [(size_name(row["bytes"]), [row["ratios"][key] for key, _ in SERIES]) for row in rows_of(run)]
    return bars.svg(f"All-reduce in shared memory, 2 processes, {run['cpu']}, float32",
                    "times as fast as the fastest tuned peer (Open MPI, MPICH, Gloo) at that size",
                    [name for _, name in SERIES], rows)


def main():
    with open(CHART, "w", encoding="utf-8") as file:
        file.write(svg(load(RUN)))
    print(f"{os.path.relpath(CHART)} written")


if __name__ == "__main__":
    main()
