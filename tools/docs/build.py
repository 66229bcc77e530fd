#!/usr/bin/env python3
"""Builds the documentation site.  tools/docs/build.py [--output build/docs]

Needs Sphinx, MyST and furo, in this Python or in build/docs-venv, where tools/dev docs installs them. Exits with 77 if
both lack them. Warnings are errors, including broken links.
"""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import generate  # noqa: E402
import links  # noqa: E402

ROOT = links.ROOT
NEEDED = ("sphinx", "myst_parser", "furo")
VENV_PYTHON = os.path.join(ROOT, "build", "docs-venv", "bin", "python")
MOVED = {"README.md": "index.md", "ARCHITECTURE.md": "project/architecture.md", "CONTRIBUTING.md": "project/contributing.md",
         "SECURITY.md": "project/security.md", "CHANGELOG.md": "project/changelog.md",
         "tests/ptx/runtime/README.md": "design/ptx-runtime.md"}
LIST_LINK = re.compile(r"^(?:- |\| *)\[[^\]]+\]\(([^)#\s]+\.md)\)", re.M)  # First link of a list entry or a table row.


def place(path):
    """Returns the path of a repository file in the site's source."""
    if path in MOVED:
        return MOVED[path]
    for folder, to in (("docs/", ""), ("perf/results/", "results/")):
        if path.startswith(folder) and path.endswith((".md", ".svg")):
            return to + path[len(folder):]
    return "files/" + path


def pages():
    found = [path for path in links.files(ROOT) if path.endswith(".md")]
    return [path for path in found if path.startswith(("docs/", "perf/results/")) or path in MOVED and path != "README.md"]


def copy(path, output):
    target = os.path.join(output, place(path))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(os.path.join(ROOT, path), target)


def moved_links(path, text, output):
    """Returns the text with its links changed to paths in the site. Copies linked files that are no pages to the site."""
    for target in sorted({target for _, target in links.links(text)}, key=len, reverse=True):
        name, _, anchor = target.partition("#")
        if not name:
            continue
        there = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if os.path.isfile(os.path.join(ROOT, there)) and not there.endswith(".md"):
            copy(there, output)
        new = os.path.relpath(place(there), os.path.dirname(place(path)) or ".") + (f"#{anchor}" if anchor else "")
        text = re.sub(rf"\]\({re.escape(target)}\)", f"]({new})", text)
    return text


def navigation(path, text):
    """Appends a hidden table of contents to the index (by its sections) and to the list of decisions."""
    if place(path) not in ("index.md", "decisions/README.md"):
        return text
    parts = re.split(r"^## (.+)$", text, flags=re.M)
    trees = []
    for title, part in zip(["", *parts[1::2]], parts[0::2]):
        entries = dict.fromkeys(target.removesuffix(".md") for target in LIST_LINK.findall(part))
        if entries:
            caption = f":caption: {title}\n" if title else ""
            trees.append("```{toctree}\n:hidden:\n" + caption + "\n" + "\n".join(entries) + "\n```\n")
    return text + "\n" + "\n".join(trees)


def assemble(output):
    shutil.rmtree(output, ignore_errors=True)
    for path in pages():
        text = generate.filled(links.read(ROOT, path))
        text = navigation(path, moved_links(path, text, output))
        target = os.path.join(output, place(path))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--output", default=os.path.join(ROOT, "build", "docs"))
    output = os.path.abspath(parser.parse_args().output)
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing and sys.executable != VENV_PYTHON and os.path.exists(VENV_PYTHON):
        return subprocess.run([VENV_PYTHON, "-B", *sys.argv], check=False).returncode
    if missing:
        print(f"docs: skipped, because this Python has no {', '.join(missing)}; tools/dev docs installs them below build/")
        return 77
    made = output + ".source"
    assemble(made)
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-n", "-c",
               os.path.dirname(os.path.abspath(__file__)), "-d", output + ".cache", made, output]
    status = subprocess.run(command, check=False).returncode
    if status == 0:
        print(f"docs: {os.path.relpath(output)}/index.html")
    return status


if __name__ == "__main__":
    sys.exit(main())
