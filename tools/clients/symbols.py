"""NCCL functions that a file needs or exports, and the libraries to which the loader bound them."""

import os
import re
import subprocess

NCCL = re.compile(r"p?nccl[A-Z]\w*$")
# A line of the loader's report (LD_DEBUG=bindings).
BINDING = re.compile(r"binding file (.+) \[\d+\] to (.+) \[\d+\]: \w+ symbol `(p?nccl[A-Z]\w*)'")


def functions(which, file):
    """Returns the names of NCCL functions in a file. which: "defined" or "undefined"."""
    run = subprocess.run(["nm", "-D", f"--{which}-only", file], capture_output=True, text=True, check=True)
    names = {line.split()[-1].split("@")[0] for line in run.stdout.splitlines() if line.strip()}
    return {name for name in names if NCCL.match(name)}


def bindings(report):
    """Returns {(file that needs the function, function, file that exports it)} from the lines of the loader's report."""
    found = set()
    for line in report:
        match = BINDING.search(line)
        if match:
            asked, answered, function = match.groups()
            found.add((os.path.realpath(asked), function, os.path.realpath(answered)))
    return found


def foreign_bindings(found, library):
    """Returns the bindings to other libraries than `library`. Ignores bindings of another libnccl that is loaded: it binds
    its functions to itself."""
    return {one for one in found if one[2] != library and not os.path.basename(one[0]).startswith("libnccl.")}
