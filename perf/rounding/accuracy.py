"""Measures and checks errors of compressed collectives: all formats by algorithm, number of ranks, type and kind of data, with
all ranks in one process. Exit status: 1 if an error is out of bounds or ranks have different results, 2 if nothing was
measured."""

import argparse
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import judge  # noqa: E402
import tables  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RESULTS = os.path.join(ROOT, "perf", "results", "accuracy.json")
HOSTILE = "laplace,student,outlier,zero,single,denormal,largest,not_finite,identical,cancelling,gradient"
OTHERS = ("reduce_scatter", "reduce", "all_gather", "broadcast")


def part(data="gaussian", collective="all_reduce", **rest):
    return {"collective": collective, "data": data} | rest


# Arguments of measure_rounding. Enough Gaussian numbers to determine their error to one per cent.
QUICK = [part(types="float32", ranks="2,4,8,16", elements=32768),
         part(types="float16,bfloat16", ranks="8", elements=32768),
         part(types="float32", ranks="8,64", elements=131072, algorithms="two_shot"),
         part(HOSTILE, ranks="4", elements=8192),
         *(part(types="float32", ranks="8", elements=32768, collective=name) for name in OTHERS)]
FULL = [part(types="float32", ranks="2,4,8,16,64", elements=262144),
        part(types="float16,bfloat16", ranks="2,4,8,16,64", elements=131072),
        part(types="float32", ranks="256", elements=65536),
        part(HOSTILE, ranks="2,4,8,16,64", elements=16384),
        *(part(types="float32", ranks="2,8,64", elements=131072, collective=name) for name in OTHERS)]


def arguments():
    parser = argparse.ArgumentParser(prog="perf/accuracy", description=__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="folder of a build (default: build)")
    parser.add_argument("--quick", action="store_true",
                        help="measure a part of the cells, in less than a minute; store nothing")
    parser.add_argument("--seed", type=int, default=1, help="seed of the data (default 1)")
    parser.add_argument("--algorithm", help="measure only this algorithm, in an all-reduce of Gaussian numbers between "
                                            "8 ranks; also one that communicators reject")
    parser.add_argument("--show", action="store_true", help="print the stored results and exit")
    return parser.parse_args()


def measure(build, asked, seed):
    """Runs measure_rounding and returns the cells of a part."""
    program = os.path.join(build, "perf", "rounding", "measure_rounding")
    if not os.path.exists(program):
        print(f"{program} does not exist; build it with cmake --build {build} --target measure_rounding", file=sys.stderr)
        sys.exit(2)
    command = [program, "--seed", str(seed)]
    for name, value in asked.items():
        command += [f"--{name}", str(value)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(2)
    found = json.loads(done.stdout)
    return [{"collective": asked["collective"]} | dict(zip(found["columns"], cell)) for cell in found["cells"]]


def said(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def store(cells, seed, seconds):
    """Stores the results with commit and date, and updates the page of the formats."""
    result = {"commit": said("git", "describe", "--always", "--dirty"), "date": time.strftime("%Y-%m-%d"), "seed": seed,
              "seconds": round(seconds), **tables.packed(cells)}
    with open(RESULTS, "w", encoding="utf-8") as file:
        file.write(tables.text_of(result))
    tables.write(tables.load(RESULTS))
    print(f"{os.path.relpath(RESULTS)} and docs/reference/compression-formats.md written")


def main():
    options = arguments()
    if options.show:
        print(tables.summary(tables.load(RESULTS)["cells"]))
        return 0
    begin = time.monotonic()
    parts = QUICK if options.quick else FULL
    if options.algorithm:
        parts = [part(types="float32", ranks="8", elements=32768, algorithms=options.algorithm)]
    cells = [cell for asked in parts for cell in measure(options.build, asked, options.seed)]
    seconds = time.monotonic() - begin
    print(tables.summary(cells))
    errors = judge.judge(cells)
    for error in errors:
        print(f"FAILED  {error}")
    print(f"{len(cells)} cells in {seconds:.0f} s, {len(errors)} errors")
    if errors:
        return 1
    if parts is FULL:
        store(cells, options.seed, seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
