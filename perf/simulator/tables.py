"""Published tables of times of collectives, and simulated times of the same calls."""

import csv
import json
import os
import subprocess
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "tests", "simulator", "tables")
TUTTI = os.path.join(ROOT, "build", "tools", "tutti")
KIB, MIB = 1 << 10, 1 << 20
BANDS = (("below 64 KiB", 0, 64 * KIB), ("64 KiB to 16 MiB", 64 * KIB, 16 * MIB), ("from 16 MiB", 16 * MIB, 1 << 62))

# Use of a row: constants were fitted to it; it was visible while the model or a constant was chosen; or neither.
FITTED, SEEN, LEFT_OUT = "fitted", "seen", "left out"

# A published table. machine(ranks): options of `tutti simulate`. part(row): FITTED, SEEN or LEFT_OUT.
Table = namedtuple("Table", "file title generation machine part")
# A published time. Times from `min_us` to `max_us` are printed as the same number.
Row = namedtuple("Row", "table collective algorithm protocol ranks bytes us min_us max_us")
Answer = namedtuple("Answer", "row us algorithm protocol")

RINGS = ("all_reduce", "all_gather", "reduce_scatter")
NETWORK = os.path.join(FOLDER, "gb200-network.json")


def one_host(preset, launch):
    """Returns a function for `machine`, with NCCL's choices."""
    def machine(ranks):
        return ["--topology", preset, "--ranks-per-host", str(ranks), "--launch", launch, "--like", "nccl"]
    return machine


def rack(ranks):
    return ["--topology", "gb200-nvl72", "--hosts", str(ranks // 4), "--launch", "graph", "--channels", "4",
            "--chunk", "1M", "--kernels", "nccl"]


def whole_rack(ranks):
    return ["--topology", "gb200-nvl72", "--hosts", str(ranks // 4), "--launch", "eager", "--like", "nccl"]


def network(ranks):
    """Sends whole blocks with 8 thread blocks, like the measured library (CTRAN of NCCLX)."""
    return ["--topology", NETWORK, "--hosts", str(ranks), "--launch", "eager", "--channels", "8", "--chunk", "16G",
            "--kernels", "nccl"]


def eager_part(row):
    """Small calls of one process determined the host's time per call, and chains determined the size of chunks.

    All rows of one host were used to find that a ring waits once per chunk, and that calls are slower at their begin.
    """
    if row.collective in RINGS:
        return FITTED if row.bytes >= 64 * KIB else SEEN
    return SEEN


def rack_part(row):
    """Rows of 8 and 72 ranks determined the rate of switches and their time per chunk."""
    return FITTED if row.bytes >= 2 * MIB else SEEN


def graph_part(row):
    """Rows of 8 ranks determined the time per chunk, too."""
    return FITTED if row.ranks == 8 and row.bytes >= 2 * MIB else SEEN


TABLES = (
    Table("a100-8.csv", "8 A100, one process", "sm80", one_host("dgx-a100", "eager-many"), eager_part),
    Table("h100-4.csv", "4 H100, one process", "sm90", one_host("dgx-h100", "eager-many"), eager_part),
    Table("h100-arms.csv", "2 to 6 H100, forced", "sm90", one_host("dgx-h100", "eager-many"),
          lambda row: FITTED if row.algorithm in ("ring", "nvls") and row.ranks == 4 else SEEN),
    Table("h200.csv", "4 to 8 H200", "sm90", one_host("dgx-h200", "eager-many"),
          lambda row: LEFT_OUT if row.bytes == 16 << 30 else SEEN),
    Table("h100-graph.csv", "6 and 8 H100, a graph", "sm90", one_host("dgx-h100", "graph"), graph_part),
    Table("h200-graph.csv", "8 H200, a graph", "sm90", one_host("dgx-h200", "graph"), lambda row: SEEN),
    Table("b200.csv", "4 to 8 B200", "sm100", one_host("dgx-b200", "eager-many"),
          lambda row: FITTED if row.ranks == 8 else SEEN),
    Table("gb200-nvlink.csv", "4 and 8 GB200 on NVLinks, a graph, 4 channels", "sm100", rack, lambda row: FITTED),
    Table("gb200-rack.csv", "8 and 72 GB200 on NVLinks", "sm100", whole_rack, rack_part),
    Table("gb200-network.csv", "4 to 32 GB200 on the network", "sm100", network,
          lambda row: SEEN),
    Table("gb200-network-by-port.csv", "4 to 32 GB200 on the network, port by port", "sm100", network,
          lambda row: SEEN),
)


def bus_factor(collective, ranks):
    if collective == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return 1 if collective in ("broadcast", "reduce") else (ranks - 1) / ranks


def read(table):
    with open(os.path.join(FOLDER, table.file), encoding="utf-8") as file:
        for line in csv.DictReader(line for line in file if not line.startswith("#")):
            us, ranks, size = float(line["time_us"]), int(line["ranks"]), int(line["bytes"])
            min_us = max_us = us
            rate = float(line.get("busbw_gbytes_per_s") or 0)
            if rate:  # Rates are published with two decimals.
                scale = size * bus_factor(line["collective"], ranks) * 1e-3
                min_us, max_us = scale / (rate + 0.005), scale / (rate - 0.005)
            yield Row(table, line["collective"], line["algorithm"], line["protocol"], ranks, size, us, min_us, max_us)


def simulate(tutti, arguments):
    done = subprocess.run([tutti, "simulate", "--json", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"tutti simulate {' '.join(arguments)}: {done.stderr.strip()}")
    return {int(size["bytes"]): size["runs"] for size in json.loads(done.stdout)["sizes"]}


def answers(rows, tutti=TUTTI, figures=()):
    """Returns the simulated time of each row, with the protocol of the row or else the fastest one."""
    groups = {}
    for row in rows:
        groups.setdefault((row.table, row.collective, row.algorithm, row.protocol, row.ranks), []).append(row)
    found = []
    for (table, collective, algorithm, protocol, ranks), group in groups.items():
        sizes = [row.bytes for row in group]
        arguments = [*table.machine(ranks), "--collective", collective, "--bytes", f"{min(sizes)}..{max(sizes)}"]
        arguments += ["--algorithm", algorithm] if algorithm else []
        for name, value in dict(figures).items():
            arguments += ["--figure", f"{name}={value:.9g}"]
        # NCCL's estimates are for rings, and chains start sooner: chains are compared with their best protocol.
        tried = [protocol] if protocol or collective in RINGS else ["LL", "LL128", "Simple"]
        runs = [simulate(tutti, arguments + (["--protocol", each] if each else [])) for each in tried]
        for row in group:
            best = min((each[row.bytes][0] for each in runs), key=lambda run: run["time_us"])
            found.append(Answer(row, best["time_us"], best["algorithm"], best["protocol"]))
    return found


def error(answer):
    """Returns the relative error of the simulated time."""
    return answer.us / answer.row.us - 1


def error_beyond_rounding(answer):
    nearest = min(max(answer.us, answer.row.min_us), answer.row.max_us)
    return answer.us / nearest - 1
