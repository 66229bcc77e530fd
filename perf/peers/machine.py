"""What the run ran on: the link between the cores and the cores themselves, and the versions of everything."""

import os
import re
import subprocess

# One way of a cache line; above: far. Siblings are two threads of one core, which share its nearest caches.
CLASSES_NS = ((40, "siblings"), (90, "near"), (180, "middle"))


class Machine:
    """What the cores can do, asked of floor_driver."""

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
    """The class of the link, or mixed if it changed in between. Not relative to the run: tags of several compare."""
    classes = [next((name for limit, name in CLASSES_NS if ns < limit), "far") for ns in (before_ns, after_ns)]
    return classes[0] if classes[0] == classes[1] else "mixed"


def cpu_name():
    with open("/proc/cpuinfo") as info:
        found = re.search(r"model name\s*:\s*(.*)", info.read())
    return found.group(1) if found else "unknown"


def said(*command):
    """What a command prints, or "" if it is not there or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def versions():
    return {"openmpi": said("mpirun.openmpi", "--version").split("\n")[0],
            "mpich": " ".join(" ".join(said("mpirun.mpich", "--version").split("\n")[:2]).split()),
            "gloo": said("dpkg-query", "-W", "-f", "${Version}", "libgloo-dev")}


def commit(root):
    """What was measured, if what is built is what is there."""
    return {"commit": said("git", "-C", root, "rev-parse", "HEAD"),
            "dirty": bool(said("git", "-C", root, "status", "--porcelain", "--", ".", ":!perf/results"))}
