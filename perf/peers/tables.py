#!/usr/bin/env python3
"""Writes perf/results/README.md: tables of the stored comparisons with other libraries."""

import glob
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import costs  # noqa: E402
from network import report as network_report  # noqa: E402
from machine import tag  # noqa: E402
from report import number, size_name  # noqa: E402
from stored import load  # noqa: E402

RESULTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "results")
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH", "gloo": "Gloo", "ucx": "UCX", "iperf3": "iperf3"}
BEGIN = """# Results

`perf/peers/tables.py` writes this page from the stored runs. Each run has its commit, the versions of the libraries and the
settings of every competitor; later commits may be faster or slower. [LIMITS.md](LIMITS.md) explains rows that miss their
targets, [REGRET.md](REGRET.md) has the cost of the tuner's choices, and [PENDING.md](PENDING.md) lists what is not measured yet.

GPUs: [H200.md](H200.md) has what ran on one H200, also beside NCCL, and [COUNTS.md](COUNTS.md) the instructions of the kernels. All
tables below are of host memory.

The link between two cores is *siblings* (two threads of one core: below 40 ns one way), *near* (below 90), *middle*, *far* (180 and
more), or *mixed*, if it changed during the row. Names of tuned peers list what differs from the installed settings: nocma (no
copies by the kernel), seg (segments of 256 KiB), wide (fragments of 128 KiB), sm (collectives in shared memory), malloc (the C
library keeps memory), posix, ucx, yield, busy.
"""
HOST = """All-reduce and broadcast are in place. "Private": the program's own buffers; "mapped": buffers of `tutti_mem_alloc`. "Installed":
the best peer as Debian installs it; "tuned": the best peer with the best of its settings that we know. Below 16 KiB calls are back
to back; from 16 KiB on each call is alone, on freshly written data. "Floor": lower bound for a library that reads its peer's data.
Rows without ratios: the link between the cores changed during the measurement.
"""
NETWORK = """All-reduce of float32. Hosts are network namespaces. Do not compare rows of different congestion control. "Limit": time of the
network by iperf3 and a spinning exchange of 8 bytes, or by the rate of a slow link. Libraries that send both ways at once can
beat iperf3, most under bbr, which paces its single connection ([method](LIMITS.md#method-over-tcp)). 2x1: two hosts of one rank each;
2x2@1gbit: two hosts of two ranks with a link of 1 Gbit/s. Rows in which other programs used the machine are omitted.
"""


def versions_of(run):
    """Returns "Open MPI 4.1.4, Gloo 0.0~git20220518", from what the programs and packages print."""
    found = ((NAMES[name], re.search(r"\d+\.[\w.~+-]*", said)) for name, said in run["versions"].items() if said)
    return ", ".join(f"{name} {version[0]}" for name, version in found if version)


def heading(kind, path, run):
    dirty = ", with changes" if run["dirty"] else ""
    versions = versions_of(run)
    return (f"## {kind}: {run['cpu']}\n\n[{os.path.basename(path)}]({os.path.basename(path)}), {run['date']}, commit "
            f"{run['commit'][:7]}{dirty}, Linux {run['kernel']}. {versions}.\n")


def ratio(value):
    return f"{value:.2f}x" if value else "-"


def host_line(row):
    ranks = "" if row.get("ranks", 2) == 2 else f", {row['ranks']} ranks"
    peer = lambda kind: f"{number(row[f'{kind}_us'])} {row[f'best_{kind}'] or ''}"
    link = tag(*row["link_ns"])  # The stored tag may be older than the current classes.
    names = ("default/tutti", "tuned/tutti", "tuned/mapped")
    ratios = [ratio(None if link == "mixed" else row["ratios"][name]) for name in names]
    span = "-".join(f"{ns:.0f}" for ns in row["link_ns"])
    cells = [row["collective"].replace("_", "-") + ranks, size_name(row["bytes"]), f"{link} {span}",
             number(row["tutti_us"]), number(row["mapped_us"]), peer("default"), peer("tuned"),
             number(row["floor_us"]), *ratios]
    return f"| {' | '.join(cells)} |"


def host(path):
    run = load(path)
    plot = os.path.basename(path).replace(".json", ".svg")
    parts = [heading("Host memory", path, run), f"Two cores; [a plot]({plot}). Medians in us, links in ns one way.\n", HOST,
             "| collective | size | link | private | mapped | installed | tuned | floor | installed / private | "
             "tuned / private | tuned / mapped |\n|" + "---|" * 11,
             *map(host_line, run["rows"])]
    if "costs" in run:
        parts.append("\n" + "\n".join(f"- {line.lstrip('# ')}" for line in costs.text(run["costs"]).split("\n")))
    return "\n".join(parts) + "\n"


def network(path):
    run = load(path)
    rows = [line for part in run["parts"] for row in part["rows"] if not row["link"].endswith(network_report.BUSY)
            for line in network_report.lines(row)]
    header = network_report.HEADER[network_report.HEADER.index("|"):]
    targets = [line for line in network_report.target_lines(run["parts"]) if line.startswith("|")]
    return "\n".join([heading("TCP", path, run), NETWORK, header, *rows, "", *targets]) + "\n"


def text(results):
    found = lambda kind: sorted(path for path in glob.glob(os.path.join(results, f"{kind}-*.json"))
                                if not path.endswith("-partial.json"))
    return "\n".join([BEGIN, *map(host, found("host")), *map(network, found("network"))])


def main():
    with open(os.path.join(RESULTS, "README.md"), "w") as file:
        file.write(text(RESULTS))


if __name__ == "__main__":
    main()
