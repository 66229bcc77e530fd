#!/usr/bin/env python3
"""Part of run.py that runs on a stage: measures one setting, prints a line per row, and writes the rows to
FOLDER/part.json."""

import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import machine as host  # noqa: E402
import interleaving  # noqa: E402
from network import libraries, report, settings  # noqa: E402
from network.limits import Limits  # noqa: E402

ATTEMPTS = 2  # Maximum measurements of a row, if the link changes or other programs use the machine.
BUSY = 0.1  # Share of the machine that other programs may use.
LOOK_S = 0.15
TIMEOUT_S = 5  # Maximum wait for other programs before each row.
IDLE_S = 1


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--setting", "--congestion", "--build", "--folder"):
        parser.add_argument(name, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="time in seconds after which no row begins")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--sizes", default="")
    options = parser.parse_args()
    options.end = time.monotonic() + options.seconds
    return options


def chosen(one, options):
    words = [word for word in options.only.split(",") if word]
    return not words or one.kind == "tutti" or any(word in one.name for word in words)


def start(stage, options, folder):
    """Starts the selected competitors. Returns those that became ready, and all selected ones."""
    wanted = [one for one in libraries.competitors_on(stage) if chosen(one, options)]
    running = []
    for index, one in enumerate(wanted):
        if not os.path.exists(os.path.join(options.build, one.driver)):
            one.why = f"{one.driver} was not built"
            print(f"# {one.name} is skipped: {one.why}")
        elif one.start(options.build, os.path.join(folder, str(index)), stage.cores):
            running.append(one)
    return running, wanted


def busy_share():
    """Returns the share of the machine's time that other programs use. Competitors must sleep meanwhile."""
    def idle_and_all():
        with open("/proc/stat") as stat:
            times = [int(word) for word in stat.readline().split()[1:9]]
        return times[3] + times[4], sum(times)
    idle, total = idle_and_all()
    time.sleep(LOOK_S)
    idle_later, total_later = idle_and_all()
    return 1 - (idle_later - idle) / max(total_later - total, 1)


def await_quiet():
    end = time.monotonic() + TIMEOUT_S
    while (share := busy_share()) > BUSY and time.monotonic() < end:
        pass
    return share


def measure_row(running, machine, limits, size, options):
    *plan, pass_s = interleaving.first_look([one for one in running if one.takes("all_reduce", size)], "all_reduce", size)
    taking = [one for one in running if one.name in plan[0]]
    passes = interleaving.passes_for(pass_s, options.quick)
    for _ in range(ATTEMPTS):
        busy_before, before = await_quiet(), machine.link_ns()
        times = interleaving.take(taking, plan, passes, "all_reduce", size)
        after, busy = machine.link_ns(), max(busy_before, busy_share())
        if (host.tag(before, after) != "mixed" and busy < BUSY) or time.monotonic() > options.end:
            break
    return {"setting": limits.stage.setting.name, "congestion": options.congestion, "bytes": size,
            "link": report.tag(host.tag(before, after), busy, BUSY), "link_ns": [before, after], "busy": busy,
            "times": times}


def cpu_s(process):
    """Returns the CPU time of a process, in user and system mode."""
    with open(f"/proc/{process.pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle_share(one):
    """Returns the share of a core that the busiest idle rank uses."""
    before = [cpu_s(process) for process in one.processes]
    time.sleep(IDLE_S)
    return max(cpu_s(process) - start for process, start in zip(one.processes, before)) / IDLE_S


def measure(stage, options, running):
    machine = host.Machine(options.build, sorted(set(stage.cores)))
    limits = Limits(stage, options.build)
    kinds = {one.name: one.kind for one in running}
    rows, whole = [], True
    try:
        await_quiet()
        limits.look()
        for size in stage.setting.sizes:
            if options.sizes and report.size_name(size) not in options.sizes.split(","):
                continue
            if time.monotonic() > options.end:
                print(f"# out of time: {stage.setting.name} is skipped from {report.size_name(size)} on")
                whole = False
                break
            rows.append(measure_row(running, machine, limits, size, options))
            print(report.progress(rows[-1]), flush=True)
        await_quiet()
        limits.look()
    finally:
        machine.stop()
    for row in rows:  # Use the best limits measured before and after the rows.
        report.summarise(row, kinds, limits.of_row(row["bytes"]))
    return {"rows": rows, "limits": limits.best, "missing_limits": limits.missing, "whole": whole}


def main():
    options = parse()
    cores = sorted(os.sched_getaffinity(0))[:2]
    host_pids = [int(pid) for pid in os.environ.get("EMULATED_HOSTS", "").split()]
    stage = settings.Stage(settings.named(options.setting), host_pids, cores)
    running = []
    try:
        running, wanted = start(stage, options, options.folder)
        result = measure(stage, options, running)
        # On hosts, the started processes are nsenter, not the ranks.
        if not host_pids:
            result["idle"] = {one.name: idle_share(one) for one in running if one.kind == "tutti" and not one.why}
    finally:
        for one in running:
            one.stop()
    result["competitors"] = [one.settings(stage.cores) for one in wanted]
    result["absent"] = {one.name: one.why for one in wanted if one.why}
    result["failed"] = [one.name for one in wanted if one.kind == "tutti" and (one.failed or one.why)]
    with open(os.path.join(options.folder, "part.json"), "w") as file:
        json.dump({"setting": options.setting, "congestion": options.congestion, **result}, file)


if __name__ == "__main__":
    main()
