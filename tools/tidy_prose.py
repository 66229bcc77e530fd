"""Rules of tools/tidy about names and prose: unique types, bounds, openings of comments, phrases of messages, commit subjects."""

import re
import subprocess

# Suffixes of variants of a header. A build includes one variant.
VARIANT = re.compile(r"_(cuda|host|portable|x86)(?=\.\w+$)")
SCOPE = re.compile(r"[{};]")
NAMESPACE = re.compile(r"\bnamespace\b\s*([\w:]*)\s*$")
TYPE = re.compile(r"\b(?:struct|class|union|enum(?:\s+class)?)\s+(?:\[\[\w+\]\]\s*)?(\w+)\s*(?:final\s*)?$")
ALIAS = re.compile(r"\s*(?:template\s*<[^;]*?>\s*)?using\s+(\w+)\s*=")

# Maximum words of a comment in a public header. Longer explanations belong in docs/guide.
MAX_HEADER_WORDS = 80
COMMENT = re.compile(r"^\s*(?://|/\*|\*|#)\s?(.*)$")
WORDS = r"(Of|What|Who|Whoever|Whose|Those|That|As of|Likewise|Nobody|None) [a-z]"
OPENING = re.compile(r"(?:^|[.;:!?] )" + WORDS)
# In Markdown, sentences also begin after the mark of a list, heading or quotation, and after emphasis.
OPENING_IN_MARKDOWN = re.compile(r"(?:^\s*(?:[-*>] |\d+\. |#+ )?\**|[.;:!?]\)?\** )" + WORDS)
PHRASE = re.compile(r" is none\b| cannot be\"|out of turn|\bnobody\b|\bheed")
# Identifiers of bounds. Comparisons may be called at_least and at_most. Two locals of the same name are left to rename.
BOUND = re.compile(r"\b(?:(?:least|most)(?:_\w+)?|(?!at_)\w+_(?:least|most))\b")
OTHER_BOUNDS = ("perf/gpu/bench.cc", "tests/ptx/machine/link.cc")
SUBJECT = re.compile(r"^[\w./,{} -]+: (?P<verb>[A-Z][a-z]+)\b(?! has\b)")
NOT_IMPERATIVE = {"What", "Of", "Who", "Those", "That", "The", "It", "No", "Names", "Where", "Which", "As", "In", "An",
                  "Whose", "Likewise", "Nobody", "None", "How", "When", "There", "This", "These", "All"}
LONGEST_SUBJECT = 72


def declared_types(code, declarator):
    """Yields (namespace, name, offset) of each type and alias at namespace scope, outside of anonymous namespaces."""
    opened, start = [], 0  # For each open brace: the name of the namespace, or None.
    for match in SCOPE.finditer(code):
        head, at = code[start:match.start()], match.start()
        at_namespace_scope = all(name is not None for name in opened)
        space = "::".join(name for name in opened if name) if at_namespace_scope else ""
        if match.group() == "}":
            if opened:
                opened.pop()
        elif match.group() == ";":
            alias = ALIAS.match(head) if at_namespace_scope else None
            if alias and space:
                yield space, alias.group(1), at
        else:
            namespace = NAMESPACE.search(head) if at_namespace_scope else None
            words = "" if namespace or not at_namespace_scope else declarator(head).strip()
            named = TYPE.search(words) if words and "=" not in words else None
            if named and space:
                yield space, named.group(1), at
            # Types in anonymous namespaces are local to their file.
            opened.append(namespace.group(1) or None if namespace else None)
        start = match.end()


def check_unique_names(sources, declarator, line_of):
    """Reports names of types that two files define. They violate the one definition rule, and linkers do not detect it."""
    seen = {}
    for source in sources:
        for space, name, offset in declared_types(source.code, declarator):
            where = f"{source.path}:{line_of(source.code, offset)}"
            first, path = seen.setdefault((space, name), (where, source.path))
            if VARIANT.sub("", path) != VARIANT.sub("", source.path):
                yield f"{where}: {space}::{name} is defined in {first}, too: rename one of them"


def check_comments(path, text):
    if path.startswith("include/"):
        for match in re.finditer(r"/\*.*?\*/", text, re.S):
            words = len(match.group().replace("*", " ").replace("/", " ").split())
            if words > MAX_HEADER_WORDS:
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: a comment of {words} words; the maximum is {MAX_HEADER_WORDS}: move details to docs/guide"
    for number, line in enumerate(text.splitlines(), 1):
        comment = COMMENT.match(line) or re.search(r"\s# (.*)$" if path.endswith(".py") else r"\s//\s(.*)$", line)
        match = OPENING.search(comment.group(1)) if comment else None
        if match and not (match.group(1) == "None" and path.endswith(".py")):  # A value in Python.
            yield f"{path}:{number}: a sentence begins with '{match.group(1)}': put the subject first"


def check_markdown(path, text):
    """Checks openings of sentences, except in code and in tables."""
    in_code, ended = False, True  # ended: the previous line ended a sentence or paragraph.
    for number, line in enumerate(text.splitlines(), 1):
        in_code ^= line.lstrip().startswith("```")
        match = None if in_code or line.startswith("|") else OPENING_IN_MARKDOWN.search(line)
        if match and (ended or match.start() > 0 or not line.lstrip()[0].isalpha()):
            yield f"{path}:{number}: a sentence begins with '{match.group(1)}': put the subject first"
        ended = line.rstrip(" *`").endswith((".", ":", "!", "?")) or not line.strip()


def check_messages(source):
    for number, line in enumerate(source.text.splitlines(), 1):
        for literal in re.findall(r'"(?:\\.|[^"\\])*"', line):
            match = PHRASE.search(literal)
            if match:
                yield f"{source.path}:{number}: '{match.group().strip()}' in a message: name what is wrong and what is allowed"


def check_bounds(source, line_of):
    if source.path in OTHER_BOUNDS:
        return
    for match in BOUND.finditer(source.code):
        yield f"{source.path}:{line_of(source.code, match.start())}: '{match.group()}' names a bound: call it min or max"


def check_subjects(root):
    """Reports wrong subjects of commits of this branch: those that its upstream, origin/main or main lacks."""
    def git(*arguments):
        return subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    bases = ["@{upstream}", "origin/main", "main"]
    base = next((base for base in bases if git("rev-parse", "--verify", "-q", base).returncode == 0), "HEAD")
    for line in git("log", "--no-merges", "--format=%h %s", f"{base}..HEAD").stdout.splitlines():
        commit, subject = line.split(" ", 1)
        match = SUBJECT.match(subject)
        if len(subject) > LONGEST_SUBJECT:
            yield f"commit {commit}: the subject has {len(subject)} characters, more than {LONGEST_SUBJECT}"
        elif not match or match.group("verb") in NOT_IMPERATIVE:
            yield f"commit {commit}: '{subject}' is not 'module: Imperative verb and object'"
