#!/usr/bin/env python3
"""Checks relative links of all Markdown files, and names of pages in sources.  tools/docs/links.py [--root DIR]"""

import argparse
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^\s()<>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
PAGE = re.compile(r"(?<![\w/.-])((?:docs|perf/results)/[\w./-]+?\.(?:md|svg))\b")
SOURCES = (".h", ".hpp", ".c", ".cc", ".cu", ".cuh", ".py", ".sh", ".cmake", ".txt")
SKIPPED = re.compile(r"^(?:build.*|\..*|__pycache__|tables)$")  # `tables` name pages of other projects.


def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not SKIPPED.match(name))
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def without_code(text):
    """Returns the text with code replaced by blanks, so that line numbers stay the same."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r"^(```|~~~).*?^\1[^\n]*$", blank, text, flags=re.M | re.S)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", blank, text)


def slug(heading):
    """Returns the anchor that GitHub and MyST generate for a heading."""
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def anchors(text):
    text = re.sub(r"^(```|~~~).*?^\1[^\n]*$", "", text, flags=re.M | re.S)
    return {slug(heading) for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", text, re.M)}


def links(text):
    """Yields (line, target) of each link that is not a URL."""
    blanked = without_code(text)
    for match in LINK.finditer(blanked):
        if not re.match(r"[a-z][a-z0-9+.-]*:", match.group(1)):
            yield blanked.count("\n", 0, match.start()) + 1, match.group(1)


def check_page(root, path):
    text = read(root, path)
    for line, target in links(text):
        name, _, anchor = target.partition("#")
        there = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(os.path.join(root, there)):
            yield f"{path}:{line}: link to {target}: {there} does not exist"
        elif anchor and there.endswith(".md") and anchor not in anchors(read(root, there)):
            yield f"{path}:{line}: link to {target}: {there} has no heading #{anchor}"


def check_source(root, path):
    text = read(root, path)
    for match in PAGE.finditer(text):
        if not os.path.exists(os.path.join(root, match.group(1))):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: names {match.group(1)}, which does not exist"


def check(root):
    pages, problems = 0, []
    for path in files(root):
        if path.endswith(".md"):
            pages += 1
            problems += check_page(root, path)
        elif path.endswith(SOURCES) or "." not in os.path.basename(path):
            problems += check_source(root, path)
    return pages, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=ROOT)
    pages, problems = check(parser.parse_args().root)
    for problem in problems:
        print(problem)
    print(f"docs: {pages} pages, {len(problems)} broken links")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
