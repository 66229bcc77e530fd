#!/usr/bin/env python3
"""Compares Tutti with other libraries on host memory: two ranks on two cores, then four on the same two. All libraries run
interleaved. Also measures the costs of Tutti outside of calls (costs.py).

The link between two cores of a virtual machine changes by a factor of five within seconds. So the libraries alternate within
each row, the link is measured before and after, and the row is tagged with its class. Do not compare rows of different tags;
rows whose link changed have no ratios."""

import argparse
import dataclasses
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import costs  # noqa: E402
import machine as host  # noqa: E402
import report  # noqa: E402
import stored  # noqa: E402
import interleaving  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KIB, MIB = 1 << 10, 1 << 20
SIZES = {"all_reduce": [8, 128, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB,
                        256 * MIB]}
OTHER_SIZES = [KIB, MIB, 64 * MIB]
OVERSUBSCRIBED_SIZES = [8, KIB, 64 * KIB, MIB, 16 * MIB]  # All-reduce of ranks that share cores.
# Data that a rank reads from the other, and data that the other has written, as fractions of the whole vector. In an
# all-reduce a rank reads half of the input, since each rank computes half of the sums. (Sums that are written to the
# other rank cross the link when it reads them.)
TAKEN = {"all_reduce": 0.5, "all_gather": 0.5, "reduce_scatter": 0.5, "broadcast": 1, "all_to_all": 0.5}
WRITTEN = {"all_reduce": 1, "all_gather": 0.5, "reduce_scatter": 1, "broadcast": 1, "all_to_all": 1}
BY_HAND = {"broadcast": "pass", "all_gather": "exchange", "all_to_all": "exchange"}
ATTEMPTS = 3  # Maximum measurements of a row, if its link changes.


def floors(machine, collective, size):
    """Returns lower bounds in us. read: all receiving cores read the data that the other rank has just written. copy, add:
    each core copies or adds that number of its own bytes. one_way: latency of a cache line.
    by_hand: a loop with only the copies that a library with private buffers needs.
    floor: lower bound for libraries that read their peer's data. On fresh data: the maximum of read and one_way. Back to
    back: one_way; None for broadcasts, whose root may run ahead."""
    part = f"{max(int(size * TAKEN[collective]), 8)} {int(size * WRITTEN[collective])}"
    one_way = machine.link_ns() / 1e3
    result = {"read": machine.ask(("take " if collective == "broadcast" else "read ") + part),
              "copy": machine.ask("copy " + part), "add": machine.ask("add " + part), "one_way": one_way}
    if collective in BY_HAND and size >= interleaving.FRESH:
        result["by_hand"] = machine.ask(f"{BY_HAND[collective]} {part}")
    if size >= interleaving.FRESH:
        result["floor"] = max(result["read"], one_way)
    else:
        result["floor"] = None if collective == "broadcast" else one_way
    return result


@dataclasses.dataclass
class Section:
    """Competitors that run interleaved, the core of each of their ranks, and the rows (collective, size)."""
    competitors: list
    cores: list
    rows: list

    def floors(self, machine, collective, size):
        """Returns the lower bounds of a row; none are known for ranks that share cores."""
        return floors(machine, collective, size) if len(self.cores) == libraries.RANKS else {"floor": None}


def sections(cores):
    return [Section(libraries.competitors(), cores, [(collective, size) for collective in libraries.ALL
                                                 for size in SIZES.get(collective, OTHER_SIZES)]),
            Section(libraries.oversubscribed(), [cores[rank % len(cores)] for rank in range(libraries.OVERSUBSCRIBED)],
                    [("all_reduce", size) for size in OVERSUBSCRIBED_SIZES])]


def measure_row(section, running, machine, row, options):
    collective, size = row
    *plan, pass_s = interleaving.first_look([one for one in running if one.takes(*row)], *row)
    taking = [one for one in running if one.name in plan[0]]
    passes = interleaving.passes_for(pass_s, options.quick)
    for _ in range(ATTEMPTS):
        before = machine.link_ns()
        times = interleaving.take(taking, plan, passes, *row)
        limits = section.floors(machine, *row)
        after = machine.link_ns()
        if host.tag(before, after) != "mixed" or time.monotonic() > options.end:
            break
    made = {"collective": collective, "ranks": len(section.cores), "bytes": size, "link": host.tag(before, after),
            "link_ns": [before, after], "times": times, "floors": limits}
    report.summarise(made, {one.name: one.kind for one in running})
    return made


def measure_rows(section, running, machine, options):
    """Returns the measured rows, and whether all rows were measured."""
    measured = []
    for collective, size in section.rows:
        if options.sizes and report.size_name(size) not in options.sizes:
            continue
        if time.monotonic() > options.end:
            print(f"# out of time: {collective} from {size} bytes on and all later rows are skipped")
            return measured, False
        measured.append(measure_row(section, running, machine, (collective, size), options))
        print(report.line(measured[-1]), flush=True)
    return measured, True


def measure_all(machine, cores, folder, options):
    """Returns all rows, the settings of the competitors, whether the run is complete, and the names of ours that failed."""
    rows, settings, whole, ours = [], [], True, []
    for section in sections(cores):
        running = []
        print(f"# {len(section.cores)} ranks on {len(cores)} cores", flush=True)
        try:
            ours += start(section, running, options, os.path.join(folder, str(len(section.cores))))
            measured, complete = measure_rows(section, running, machine, options)
        finally:
            for one in running:
                one.stop()
        rows += measured
        settings += [{"ranks": len(section.cores), **one.settings(section.cores)} for one in running]
        whole = whole and complete
        ours += [one.name for one in running if one.kind == "tutti" and one.failed]
    return rows, settings, whole and not (options.only or options.quick or options.sizes), ours


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "perf", "peers"), help="folder of the drivers")
    parser.add_argument("--results", default=os.path.join(ROOT, "perf", "results"))
    parser.add_argument("--seconds", type=float, default=900, help="time in seconds after which no row begins")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--only", help="competitors to measure, by a part of their names, in addition to tutti")
    parser.add_argument("--sizes", type=lambda text: text.split(","), help="sizes to measure, as in the table: '8 B,1 MiB'")
    options = parser.parse_args()
    options.end = time.monotonic() + options.seconds
    return options


def start(section, running, options, folder):
    """Starts the competitors and adds those that become ready to `running`. Returns the names of ours that do not."""
    missing = []
    os.mkdir(folder)
    for index, one in enumerate(section.competitors):
        if options.only and one.kind != "tutti" and options.only not in one.name:
            continue
        if not os.path.exists(os.path.join(options.build, one.driver)):
            print(f"# {one.name} is skipped: {one.driver} was not built")
        elif one.start(options.build, os.path.join(folder, str(index)), section.cores):
            running.append(one)
            continue
        if one.kind == "tutti":
            missing.append(one.name)
    return missing


def store(options, result, whole):
    path = stored.store(options.results, "host", result, whole)
    shown = [row for row in result["rows"] if row["collective"] == "all_reduce" and row["ranks"] == libraries.RANKS]
    with open(path + ".svg", "w") as file:
        file.write(report.svg(shown, result["cpu"]))
    print(f"# {path}.json and .svg written")


def main():
    options = parse()
    cores = sorted(os.sched_getaffinity(0))[:libraries.RANKS]
    if len(cores) < libraries.RANKS:
        sys.exit(f"run.py: {libraries.RANKS} cores are needed, but only {len(cores)} are available")
    folder = tempfile.mkdtemp(prefix="tutti-peers-")
    machine = host.Machine(options.build, cores)
    try:
        print(report.HEADER, flush=True)
        rows, settings, whole, failed = measure_all(machine, cores, folder, options)
    finally:
        machine.stop()
        shutil.rmtree(folder)
    own = costs.measure(options.build)
    print(costs.text(own))
    store(options, {**host.commit(ROOT), "date": time.strftime("%Y-%m-%d"), "cpu": host.cpu_name(), "cores": cores,
                    "kernel": os.uname().release, "versions": host.versions(),
                    "options": {"quick": options.quick, "only": options.only, "sizes": options.sizes},
                    "competitors": settings, "links_ns": machine.seen, "costs": own, "rows": rows}, whole)
    if failed:
        sys.exit(f"run.py: {', '.join(failed)} had wrong results, hung or ended; see above")


if __name__ == "__main__":
    main()
