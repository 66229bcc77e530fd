#!/usr/bin/env python3
"""Counts what one all-reduce of 8 ranks executes per GPU on the PTX machine: perf/gpu/counts.sh [--build DIR] [--write]

Needs the preset `ptx` with the targets gpu_counts and all_reduce_perf. --write stores the tables in perf/results/COUNTS.md.
Counts are no times.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "perf", "results", "COUNTS.md")
RANKS = 8
OURS = ("run_plan", "run_ll")
KIB, MIB = 1 << 10, 1 << 20
# Columns after kernel and device, in the order of LaunchCounters (tests/ptx/machine/machine.h).
FIELDS = ("thread blocks", "instructions", "while polling", "barriers", "fences", "sectors loaded", "sectors stored",
          "bytes loaded", "bytes stored")
# A GPU per rank: algorithm, protocol, bytes.
APART = (("one_shot", "LL", 8), ("one_shot", "LL", 4 * KIB), ("one_shot", "LL", 32 * KIB), ("two_shot", "LL", 64 * KIB),
         ("two_shot", "LL", 256 * KIB), ("two_shot_staged", "Simple", MIB), ("switch_staged", "Simple", MIB),
         ("two_shot", "Simple", MIB), ("two_shot_staged", "Simple", 4 * MIB), ("switch_staged", "Simple", 4 * MIB),
         ("two_shot", "Simple", 4 * MIB))
TOGETHER = (4 * KIB, 64 * KIB, MIB, 16 * MIB)
HEAD = """# Counts of GPU kernels

Written by `perf/gpu/counts.sh --write` at commit {commit}. These are counts of the [PTX machine](../../docs/design/ptx-machine.md),
which interprets the PTX of the kernels on a CPU. **They are not times, and nothing here ran on a GPU**; a GPU executes
the instructions that ptxas makes of the PTX.

One all-reduce of float32, 8 ranks, per GPU. *Instructions* are those of warps. *While polling* is their part between executions of
a load of a flag that is repeated: it depends on the schedule. *Barriers* are those of thread blocks. *Fences* are system fences
of warps, and stores that release at system scope. A *sector* has 32 bytes; sectors are counted per instruction of a warp, in device and
host memory, polls included. Bytes are those that threads load and store: a sum by the switch counts its result, and a multicast
store counts once. Larger sizes take the machine too long.
"""
PER_RANK = """## A GPU per rank, with NVLink and switches
"""
BESIDE = """## Beside a kernel written by hand

All ranks on one GPU, two-shot in the buffers of all ranks. The kernel written by hand is `perf/gpu/two_shot.cu`, compiled for 8 ranks and
float32, with as many thread blocks as Tutti's. *Ratio*: Tutti's instructions without polling, divided by those of the other kernel.
"""


def size_text(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB" if size >= KIB else f"{size} B"


def counts_of(command, kernels, devices):
    """Returns the sum of the counts of all launches of the kernels with calls, by field, and the number of launches.

    Launches without calls, of which each device has some when it is opened, have no barriers.
    """
    with tempfile.TemporaryDirectory(prefix="tutti-counts-") as folder:
        file = os.path.join(folder, "counts")
        environment = dict(os.environ, TUTTI_PTX_COUNTS=file, TUTTI_PTX_DEVICES=str(devices), TUTTI_PTX_RACES="0",
                           TUTTI_PTX_WEAK="0")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        with open(file, encoding="utf-8") as lines:
            rows = [line.rstrip("\n").split("\t") for line in lines]
    rows = [[int(field) for field in row[2:]] for row in rows if any(kernel in row[0] for kernel in kernels)]
    rows = [row for row in rows if row[FIELDS.index("barriers")] > 0]
    if not rows:
        sys.exit(f"{' '.join(command)} launched no kernel of {', '.join(kernels)}")
    return dict(zip(FIELDS, map(sum, zip(*rows)))), len(rows)


def row_of(name, size, counts, calls, *more):
    """`calls`: number of calls of a rank in the counts."""
    return "| " + " | ".join((name, size_text(size), *(f"{counts[field] / calls:,.0f}" for field in FIELDS), *more)) + " |"


def table(rows, *more):
    head = ("call", "size", *FIELDS, *more)
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *rows])


def apart(build):
    # The stand-in for NVML reports switches.
    nvml = os.path.join(build, "tests", "ptx", "runtime", "nvml")
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (nvml, os.environ.get("LD_LIBRARY_PATH"))))
    tool = os.path.join(build, "perf", "all_reduce_perf")
    for algorithm, protocol, size in APART:
        forced = [] if algorithm.endswith("_staged") else ["--protocol", protocol]
        command = [tool, "--memory", "cuda", "-g", str(RANKS), "-b", str(size), "-e", str(size), "-n", "1", "-w", "0", "-c", "0",
                   "--algorithm", algorithm, *forced]
        counts, launches = counts_of(command, OURS, RANKS)
        yield row_of(f"`{algorithm}`, {protocol}", size, counts, launches)


def together(build):
    tool = os.path.join(build, "perf", "gpu", "gpu_counts")
    for size in TOGETHER:
        ours, _ = counts_of([tool, "two_shot_mapped", str(size)], OURS, 1)
        blocks = ours["thread blocks"] // RANKS
        hand, _ = counts_of([tool, "hand", str(size), str(blocks)], ("two_shot_of",), 1)
        ratio = (ours["instructions"] - ours["while polling"]) / (hand["instructions"] - hand["while polling"])
        yield row_of("written by hand", size, hand, RANKS, "")
        yield row_of("`two_shot_mapped`", size, ours, RANKS, f"{ratio:.2f}")


def nccl():
    if shutil.which("cuobjdump") is None:
        return "NCCL's own kernels were not read: this machine has no `cuobjdump`."
    return "NCCL's own kernels were not read."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build-ptx"), help="build folder of the preset ptx")
    parser.add_argument("--write", action="store_true", help="write perf/results/COUNTS.md")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty= with changes"], capture_output=True, text=True,
                            check=False).stdout.strip() or "unknown"
    page = "\n".join([HEAD.format(commit=commit), PER_RANK, table(apart(build)), "", BESIDE, table(together(build), "ratio"), "",
                      nccl(), ""])
    if options.write:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(page)
    print(page)


if __name__ == "__main__":
    main()
