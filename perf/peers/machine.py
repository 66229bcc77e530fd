"""Description of the machine of a run: cores, the link between them, and versions of the libraries."""

import os
import re
import subprocess

# Classes of links by the one-way latency of a cache line; above the last one: far. Siblings are two threads of one
# core, which share its caches.
CLASSES_NS = ((40, "siblings"), (90, "near"), (180, "middle"))


class Machine:
    """Limits of the cores, measured by floor_driver."""

    def __init__(self, build, cores):
        self.process = subprocess.Popen([os.path.join(build, "floor_driver"), *map(str, cores)], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.seen = []

    def ask(self, question):
        self.process.stdin.write(question + "\n")
        return float(self.process.stdout.readline())

    def link_ns(self):
        self.seen.append(min(self.ask("latency") for _ in range(3)))
        return self.seen[-1]

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def tag(before_ns, after_ns):
    """Returns the class of the link, or mixed if it changed. Bounds are absolute, so that tags of runs are comparable."""
    classes = [next((name for limit, name in CLASSES_NS if ns < limit), "far") for ns in (before_ns, after_ns)]
    return classes[0] if classes[0] == classes[1] else "mixed"


def cpu_name():
    with open("/proc/cpuinfo") as info:
        found = re.search(r"model name\s*:\s*(.*)", info.read())
    return found.group(1) if found else "unknown"


def said(*command):
    """Returns the output of a command, or "" if it does not exist or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def versions():
    return {"openmpi": said("mpirun.openmpi", "--version").split("\n")[0],
            "mpich": " ".join(" ".join(said("mpirun.mpich", "--version").split("\n")[:2]).split()),
            "gloo": said("dpkg-query", "-W", "-f", "${Version}", "libgloo-dev")}


def commit(root):
    """Returns the commit of the working tree, and whether it has changes. Assumes that the build is up to date."""
    return {"commit": said("git", "-C", root, "rev-parse", "HEAD"),
            "dirty": bool(said("git", "-C", root, "status", "--porcelain", "--", ".", ":!perf/results"))}
