#!/usr/bin/env python3
"""Compares Tutti with other libraries over TCP: on loopback, between hosts emulated by namespaces, and over slow links.

Within a row the competitors run interleaved, like in perf/peers/run.py. All connections of a row, including those that
measure limits, use the congestion control that the row names. Do not compare rows of different congestion controls. Hosts
need root or user namespaces; otherwise only loopback is measured, with the system's congestion control."""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.dirname(HERE))
import machine as host  # noqa: E402
import stored  # noqa: E402
from network import report, settings  # noqa: E402

SYSCTL = "/proc/sys/net/ipv4/"
WANTED = ("bbr", "cubic")
NO_STAGE, NO_CONTROL = 77, 78  # Exit statuses of emulated_hosts.sh.


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "perf", "peers"), help="folder of the drivers")
    parser.add_argument("--results", default=os.path.join(ROOT, "perf", "results"))
    parser.add_argument("--seconds", type=float, default=840, help="time in seconds after which no row begins")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--only", default="",
                        help="competitors to measure, by parts of their names, in addition to tutti: mpich,gloo")
    parser.add_argument("--sizes", default="", help="sizes to measure, as in the table: '8 B,1 MiB'")
    parser.add_argument("--settings", default="", help="settings to measure, of " +
                        ", ".join(setting.name for setting in settings.SETTINGS))
    parser.add_argument("--show", metavar="FILE", help="print a stored result and exit")
    parser.add_argument("--congestion", default="", help="congestion controls to measure, of those of the system: bbr,cubic")
    options = parser.parse_args()
    options.end = time.monotonic() + options.seconds
    unknown = set(filter(None, options.settings.split(","))) - {setting.name for setting in settings.SETTINGS}
    if unknown:
        parser.error(f"unknown setting: {', '.join(sorted(unknown))}")
    return options


def read(name):
    with open(SYSCTL + name) as file:
        return file.read().split()


def allow(names):
    with contextlib.suppress(OSError), open(SYSCTL + "tcp_allowed_congestion_control", "w") as file:
        file.write(" ".join(names))


def controls(options):
    """Returns the congestion controls to measure with; that of the system is first."""
    own, there = read("tcp_congestion_control")[0], read("tcp_available_congestion_control")
    wanted = options.congestion.split(",") if options.congestion else sorted({own, *WANTED}, key=lambda name: name != own)
    for name in wanted:
        if name not in there:
            print(f"# {name} is skipped: this system has only {' '.join(there)}")
    return [name for name in wanted if name in there]


@contextlib.contextmanager
def allowed(control):
    """Allows the congestion control to all users while the context is active, since namespaces can choose only such ones."""
    before = read("tcp_allowed_congestion_control")
    if control in before or os.geteuid() != 0:
        yield
        return
    allow([*before, control])  # If this fails, emulated_hosts.sh reports the error.
    try:
        yield
    finally:
        allow(before)


def run_part(setting, control, options, left_s):
    """Measures a setting. Returns the result of measure.py, or the reason why there is none."""
    with tempfile.TemporaryDirectory(prefix="tutti-network-") as folder:
        return run_part_in(folder, setting, control, options, left_s)


def run_part_in(folder, setting, control, options, left_s):
    command = [sys.executable, "-B", os.path.join(HERE, "measure.py"), "--setting", setting.name, "--congestion", control,
               "--build", options.build, "--folder", folder, "--seconds", f"{left_s:.0f}", "--only", options.only, "--sizes",
               options.sizes, *(["--quick"] if options.quick else [])]
    stage = [os.path.join(HERE, "emulated_hosts.sh"), setting.layout, setting.rate or "-", f"{setting.burst_bytes}b", control, "--"]
    sys.stdout.flush()
    with allowed(control):
        status = subprocess.run([*stage, *command]).returncode
    if status == NO_STAGE and setting.layout == settings.LOOPBACK and control == read("tcp_congestion_control")[0]:
        status = subprocess.run(command).returncode
    if status == NO_STAGE:
        return "hosts cannot be emulated here: install iproute2, and run as root or with user namespaces"
    if status == NO_CONTROL:
        return f"setting {control} needs root"
    if status != 0:
        return f"emulated_hosts.sh ended with status {status}"
    return stored.load(os.path.join(folder, "part.json"))


def measure(options):
    """Returns the results of all parts, and whether the run is complete."""
    parts, whole = [], not (options.only or options.sizes or options.settings or options.congestion or options.quick)
    wanted = [setting for setting in settings.SETTINGS
              if not options.settings or setting.name in options.settings.split(",")]
    jobs = [(control, setting) for control in controls(options) for setting in wanted]
    for control, setting in jobs:
        left_s = options.end - time.monotonic()
        part = run_part(setting, control, options, left_s) if left_s > 0 else "no time is left"
        if isinstance(part, str):
            print(f"# {setting.name} with {control} is skipped: {part}")
            whole = False
            continue
        whole = whole and part["whole"]
        parts.append(part)
    return parts, whole


def versions():
    return {**host.versions(), "ucx": host.said("dpkg-query", "-W", "-f", "${Version}", "libucx0"),
            "iperf3": host.said("iperf3", "--version").split("\n")[0]}


def show(parts):
    print("\n".join(["", *report.limit_lines(parts), report.HEADER]))
    for part in parts:
        for row in part["rows"]:
            print("\n".join(report.lines(row)))
    for part in parts:
        for name, why in part["absent"].items():
            print(f"# {name} is missing in {part['setting']} {part['congestion']}: {why}")
    print("\n".join(["", *report.target_lines(parts)]))


def main():
    options = parse()
    if options.show:
        return show(stored.load(options.show)["parts"])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("run.py: ended by SIGTERM"))  # Restores changed settings.
    parts, whole = measure(options)
    show(parts)
    result = {**host.commit(ROOT), "date": time.strftime("%Y-%m-%d"), "cpu": host.cpu_name(),
              "kernel": os.uname().release, "versions": versions(), "parts": parts}
    print(f"# {stored.store(options.results, 'network', result, whole)}.json written")
    failed = sorted({f"{name} in {part['setting']}" for part in parts for name in part["failed"]})
    if failed or not parts:
        sys.exit(f"run.py: {', '.join(failed) or 'nothing was measured'}: see above")


if __name__ == "__main__":
    main()
