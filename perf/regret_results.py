"""Result files of perf/regret.sh: reading with checks, and atomic writing while measurements continue."""

import json
import os
import re
import stat
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PARTS = {"chosen": str, "choice": list, "times": dict, "same": dict}  # Entries of a cell and their types.


class Unusable(Exception):
    """A file cannot be used; the message has the reason and the remedy."""


def load(path):
    """Returns the cells of a file that --output has written. Raises Unusable for other files, including those of older
    versions, whose cells have fewer entries."""
    try:
        if stat.S_ISCHR(os.stat(path).st_mode):  # Reading a device may never end.
            raise Unusable(f"{path} is a device; name a file that --output wrote")
        with open(path) as file:
            kept = json.load(file)
    except OSError as error:
        raise Unusable(f"reading {path} failed: {error.strerror}") from error
    except ValueError as error:
        raise Unusable(f"{path} is not JSON that --output wrote: {error}") from error
    results = kept.get("cells") if isinstance(kept, dict) else None
    if not isinstance(results, dict):
        raise Unusable(f"{path} has no 'cells', so perf/regret.sh did not write it: name a file that --output wrote, "
                       "or a new one for --output")
    for key, cells in results.items():
        if " " not in key or not isinstance(cells, dict):
            raise Unusable(f"{path}: '{key}' is not the name of a cell of perf/regret.sh: name another file")
        for size, cell in cells.items():
            check_cell(f"{path}: {key}, {size} B", size, cell)
    return results


def check_cell(where, size, cell):
    if not size.isdecimal() or not isinstance(cell, dict):
        raise Unusable(f"{where} is not a cell of perf/regret.sh: name another file")
    for name, kind in PARTS.items():
        if name not in cell:
            raise Unusable(f"{where} has no '{name}': an older version of this script wrote the file; measure again, with "
                           "another file for --output")
        if not isinstance(cell[name], kind):
            raise Unusable(f"{where}: '{name}' is not of type {kind.__name__}: name an unmodified file")
    lists = [cell["choice"], *cell["times"].values()]
    whole = all(isinstance(times, list) and all(isinstance(us, (int, float)) and us > 0 for us in times) for times in lists)
    named = cell["times"].keys() == cell["same"].keys() and set(cell["same"].values()) <= cell["times"].keys()
    if not whole or not named or (cell["chosen"] and not times_of_choice(cell)):
        raise Unusable(f"{where}: its times do not match its candidates: name an unmodified file")


def times_of_choice(cell):
    """Returns the times of the choice and of all candidates that run the same steps."""
    same = cell["same"].get(cell["chosen"])
    forced = [us for name, times in cell["times"].items() if cell["same"][name] == same for us in times]
    return forced + cell["choice"] if same is not None else []


def earlier(path):
    """Returns the cells of the file to which results are added; empty for a new file. Raises Unusable if the file cannot be
    written."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise Unusable(f"--output {path} is not a regular file")
    try:
        open(path, "a").close()  # Checks that the file is writable, and keeps its content.
    except OSError as error:
        raise Unusable(f"--output {path} is not writable: {error.strerror}") from error
    return load(path) if os.path.getsize(path) > 0 else {}


def store(options, results):
    """Writes the results and replaces the file atomically."""
    about = {"date": time.strftime("%Y-%m-%d"), "cpu": cpu(), "cores": os.cpu_count(), "passes": options.passes,
             "commit": subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True,
                                      cwd=ROOT).stdout.strip()}
    lines = [json.dumps(key) + ": " + json.dumps(cells, separators=(",", ":")) for key, cells in results.items()]
    path = os.path.realpath(options.output)
    beside = None
    try:
        mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644
        handle, beside = tempfile.mkstemp(prefix=os.path.basename(path) + ".", dir=os.path.dirname(path))
        with open(handle, "w") as file:
            file.write(json.dumps(about)[:-1] + ', "cells": {\n' + ",\n".join(lines) + "\n}}\n")
        os.chmod(beside, mode)
        os.replace(beside, path)
    except OSError as error:
        if beside and os.path.exists(beside):
            os.unlink(beside)
        raise Unusable(f"--output {options.output} was not written and keeps its content: {error.strerror}") from error


def cpu():
    with open("/proc/cpuinfo") as file:
        found = re.search(r"model name\s*: (.*)", file.read())
    return found.group(1) if found else "unknown"
