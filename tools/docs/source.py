"""Reads the sources of the generated reference pages: settings, algorithms and the public header."""

import os
import re
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
Setting = namedtuple("Setting", "name nccl_name default group meaning values")
Entry = namedtuple("Entry", "collective name summary comment")
INTRODUCTION = "Introduction"
TOKEN = re.compile(r'"((?:\\.|[^"\\])*)"|(nullptr)|([{},])|//[^\n]*|\s+|[^"{},\s]+')


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def literals(text):
    """Returns the strings of a row of kEntries: the list within its inner braces, and the list of the one after them. Adjacent
    strings are joined, and nullptr becomes None."""
    inner, after, depth, joined = [], [], 0, False
    for match in TOKEN.finditer(text):
        string, null, mark = match.groups()
        found = inner if depth == 2 else after
        if string is not None:
            string = string.replace('\\"', '"')
            found[:] = found[:-1] + [found[-1] + string] if joined else found + [string]
            joined = True
            continue
        if null:
            found.append(None)
        if mark:
            joined = False
            depth += {"{": 1, "}": -1, ",": 0}[mark]
        if after and not joined:
            break
    return inner, after


def settings(text=None):
    """Returns all rows of the table in src/base/config_table.cc."""
    text = read("src/base/config_table.cc") if text is None else text
    rows = []
    for match in re.finditer(r"\bConfigEntry\s*(?=\{\s*\{)", text):
        inner, after = literals(text[match.end():])
        if len(inner) not in (4, 5) or not after or None in (inner[0], inner[-1], after[0]):
            raise ValueError("src/base/config_table.cc: a row of kEntries is not {{name, alias, default, [group,] meaning}, values, ...}")
        rows.append(Setting(*inner[:3], inner[3] if len(inner) == 5 else None, inner[-1], after[0]))
    names = set(re.findall(r'Entry\s*\{\s*\{\s*"(TUTTI_[A-Z0-9_]+)"', text))
    missing = names - {row.name for row in rows}
    if not rows or missing:
        raise ValueError(f"src/base/config_table.cc: rows that could not be read: {sorted(missing) or 'all'}")
    return rows


def head_comment(text):
    lines = []
    for line in text.split("\n"):
        if not line.startswith("//"):
            break
        lines.append(line[3:])
    return "\n".join(lines)


def algorithms():
    """Returns all entries of algorithms/catalogue.cc, in its order, with the comments at the head of their files."""
    folder = os.path.join(ROOT, "algorithms")
    texts = {name: read(f"algorithms/{name}") for name in sorted(os.listdir(folder)) if name.endswith(".cc")}
    entries = []
    for collective, name in re.findall(r"^\s+entry\((\w+), (\w+)\)", texts.pop("catalogue.cc"), re.M):
        text = next(text for text in texts.values() if re.search(rf"& {name}_{collective}\(\) {{", text))
        definition = text[text.index(f"& {name}_{collective}() {{"):]
        summary = re.search(rf'"{name}",\s*"([^"]*)"', definition) or re.search(rf'"{name}",\s*"([^"]*)"', text)
        entries.append(Entry(collective, name, summary.group(1), head_comment(text)))
    return entries


def header():
    """Returns the sections of include/tutti/tutti.h: (title, [(comment, declaration)]), beginning with the introduction."""
    text = read("include/tutti/tutti.h")
    end = text.index("*/")
    sections = [(INTRODUCTION, [(comment_text(text[:end + 2]), "")])]
    body = text[text.index('extern "C" {'):text.rindex("#ifdef __cplusplus")]
    parts = re.split(r"^/\* -{2,} (.+?) -{2,} \*/$", body, flags=re.M)
    for title, content in zip(parts[1::2], parts[2::2]):
        sections.append((title, list(blocks(content))))
    return sections


def comment_text(comment):
    """Returns the text of a C comment, with indentation beyond the first column."""
    lines = [re.sub(r"^\s*(?:/\*|\*/|\*)? ?", "", line) for line in comment.strip().removesuffix("*/").split("\n")]
    return "\n".join(line.rstrip() for line in lines).strip()


def blocks(content):
    """Yields pairs of a separate comment and the declarations after it."""
    comment = ""
    for part in re.split(r"(^/\*.*?\*/$)", content, flags=re.M | re.S):
        if part.startswith("/*"):
            if comment:
                yield comment, ""
            comment = comment_text(part)
        elif part.strip():
            yield comment, part.strip("\n")
            comment = ""
    if comment:
        yield comment, ""
