"""Generates parts of the reference pages as Markdown: environment, algorithms, api. As a program, updates the first two."""

import os
import re

import source

NAME = re.compile(r"`[^`]+`|\b[\w/]+\.(?:h|cc|md)\b|\b[A-Z]+_[A-Z0-9_]+=\w+|\b\w+\(\)|(?:(?<!\w)\^?=?)\b(?:\w+\+)?\w+_\w+\b(?:\(\)|:\d+)?|\boptions\.\w+|\b\w+\[[^\]\n]*\]|\bnccl[A-Z]\w+")
TAG = re.compile(r"^(Blocks|Blocking|Thread safety|Threads|Errors?|Notes?|Returns|In place|Limits?|Streams?|Types?): ?")


def escape(text):
    return re.sub(r"([\\`*_<>\[\]|])", r"\\\1", text)


def prose(text):
    """Converts the words of a comment to Markdown: names and text in backquotes become code, other text is escaped."""
    made, at = [], 0
    for match in NAME.finditer(text):
        made += [escape(text[at:match.start()]), "`" + match.group().strip("`") + "`"]
        at = match.end()
    return "".join(made) + escape(text[at:])


def paragraphs(text):
    """Converts the text of a comment to Markdown. An indented line begins a paragraph; a dash or a tag begins a list entry."""
    made, indented = [], False
    for line in text.split("\n"):
        words, was_indented, indented = line.strip(), indented, line.startswith("  ")
        tag = TAG.match(words)
        begins = not made or not made[-1] or indented and not was_indented and not made[-1].startswith("- ")
        if tag or words.startswith("- "):
            marked = f"**{tag.group(1)}:** " + prose(words[tag.end():]) if tag else prose(words[2:])
            made += ([""] if made and made[-1] and not made[-1].startswith("- ") else []) + ["- " + marked]
        elif not words:
            made.append("")
        elif begins:
            made += ["", prose(words)]
        else:
            made[-1] += " " + prose(words)
    return "\n".join(made).strip()


def introduction(text):
    """Converts the comment at the head of the public header. Its lines without indentation are headings."""
    parts = re.split(r"^(?=\S)", text, flags=re.M)
    made = []
    for part in filter(None, parts):
        heading, _, rest = part.partition("\n")
        made.append(f"### {heading.strip()}\n\n{paragraphs(rest)}" if rest.strip() else prose(heading.strip()))
    return "\n\n".join(made)


def groups_of(rows):
    """Yields (title, rows) by the groups of the source."""
    for title in dict.fromkeys(row.group for row in rows):
        yield title if title.startswith("lib") else title[0].upper() + title[1:], [row for row in rows if row.group == title]


def environment():
    parts = []
    for title, rows in groups_of(source.settings()):
        parts.append(f"## {title}\n\n| variable | NCCL name | default | meaning | values |\n|---|---|---|---|---|")
        for row in rows:
            nccl = f"`{row.nccl_name}`" if row.nccl_name else ""
            default = f"`{row.default}`" if row.default else "unset"
            parts.append(f"| `{row.name}` | {nccl} | {default} | {prose(row.meaning)} | {prose(row.values)} |")
        parts.append("")
    return "\n".join(parts)


def described(entry):
    """Converts the comment of an algorithm's file. Indented text, such as tables and examples, stays unchanged."""
    parts = []
    for run in re.split(r"((?:^ {2,}\S.*\n?)+)", entry.comment, flags=re.M):
        if run.strip():
            parts.append("```text\n" + run.rstrip("\n") + "\n```" if run.startswith("  ") else paragraphs(run.strip("\n")))
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(parts))


def algorithms():
    """Algorithms of several collectives that share a file are described once."""
    parts, entries, headings = [], source.algorithms(), {}
    for collective in dict.fromkeys(entry.collective for entry in entries):
        mine = [entry for entry in entries if entry.collective == collective]
        parts.append(f"## {collective}\n\n| algorithm | summary |\n|---|---|")
        parts += [f"| `{entry.name}` | {prose(entry.summary)} |" for entry in mine]
        for comment in dict.fromkeys(entry.comment for entry in mine):
            those = [entry for entry in mine if entry.comment == comment]
            names = ", ".join(f"`{entry.name}`" for entry in those)
            heading = f"{collective}: {names}"
            first = headings.setdefault(comment, heading)
            anchor = re.sub(r"[^\w -]", "", first).replace(" ", "-")
            text = described(those[0]) if first == heading else f"See [{first}](#{anchor})."
            parts.append(f"\n### {heading}\n\n{text}")
        parts.append("")
    return "\n".join(parts)


def api():
    parts = []
    for title, blocks in source.header():
        parts.append(f"## {title}\n")
        if title == source.INTRODUCTION:
            parts.append(introduction(blocks[0][0]) + "\n")
            continue
        for comment, declaration in blocks:
            functions = re.findall(r"\b(tutti_\w+)\(", declaration) if "TUTTI_API" in declaration else []
            functions = [name for name in dict.fromkeys(functions)]
            if functions:
                parts.append("### " + ", ".join(f"`{name}`" for name in functions) + "\n")
            if comment:
                parts.append(paragraphs(comment) + "\n")
            if declaration:
                plain = re.sub(r"^TUTTI_API ", "", declaration, flags=re.M)
                parts.append(f"```c\n{plain}\n```\n")
    return "\n".join(parts)


PAGES = {"environment": environment, "algorithms": algorithms, "api": api}
# A part of a page that is generated. Pages in the repository contain the text, except that of the API.
PART = re.compile(r"<!-- generated: (\w+) -->\n(?:.*<!-- end of generated text -->\n)?", re.S)


def filled(page):
    """Returns the text of a page with its generated part replaced by what the sources give now."""
    return PART.sub(lambda mark: f"<!-- generated: {mark.group(1)} -->\n\n{PAGES[mark.group(1)]()}\n"
                                 "<!-- end of generated text -->\n", page)


def main():
    for name in ("environment", "algorithms"):
        path = os.path.join(source.ROOT, "docs", "reference", f"{name}.md")
        with open(path, encoding="utf-8") as file:
            page = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(filled(page))


if __name__ == "__main__":
    main()
