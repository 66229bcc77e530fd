"""Storage of runs as JSON, with a line per row, so that a run has some hundred lines and diffs are readable."""

import json
import os
import re

LONGEST = 4000  # Maximum characters of a line, unless it is a single value.


def text(value, indent=0):
    """Returns JSON in which each value that fits a line is on one line."""
    line = json.dumps(value)
    if len(line) <= LONGEST or not isinstance(value, (dict, list)):
        return line
    inside = " " * (indent + 1)
    if isinstance(value, dict):
        parts, ends = [f"{json.dumps(key)}: {text(one, indent + 1)}" for key, one in value.items()], "{}"
    else:
        parts, ends = [text(one, indent + 1) for one in value], "[]"
    return f"{ends[0]}\n{inside}" + f",\n{inside}".join(parts) + f"\n{' ' * indent}{ends[1]}"


def store(folder, kind, result, whole):
    """Stores a run and returns the path without extension. Partial runs never replace whole ones."""
    slug = re.sub(r"[^a-z0-9]+", "-", result["cpu"].lower()).strip("-")
    path = os.path.join(folder, f"{kind}-{slug}{'' if whole else '-partial'}")
    os.makedirs(folder, exist_ok=True)
    with open(path + ".json", "w") as file:
        file.write(text(result) + "\n")
    return path


def load(path):
    with open(path) as file:
        return json.load(file)
