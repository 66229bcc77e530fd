#!/usr/bin/env python3
"""Tests of the documentation tools: broken links are reported, and generated pages have every entry of their source."""

import os
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import build  # noqa: E402
import generate  # noqa: E402
import links  # noqa: E402
import source  # noqa: E402


class Links(unittest.TestCase):
    def problems(self, **texts):
        with tempfile.TemporaryDirectory() as root:
            for name, text in texts.items():
                path = os.path.join(root, name.replace("__", "/").replace("_md", ".md").replace("_cc", ".cc"))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            return links.check(root)[1]

    def test_accepts_links_that_lead_somewhere(self):
        page = "# One\n\n## A `b` c: d\n\n[x](more/two.md), [y](more/two.md#two), [z](#a-b-c-d), [w](https://a.b/c)\n"
        self.assertEqual(self.problems(one_md=page, more__two_md="# Two\n"), [])

    def test_reports_a_missing_page_with_its_line(self):
        self.assertEqual(self.problems(one_md="# One\n\n[x](two.md)\n"), ["one.md:3: link to two.md: two.md does not exist"])

    def test_reports_a_missing_image(self):
        self.assertEqual(len(self.problems(one_md="![x](two.svg)\n")), 1)

    def test_reports_a_missing_heading(self):
        self.assertIn("no heading #three", self.problems(one_md="[x](two.md#three)\n", two_md="# Two\n```\n# Three\n```\n")[0])

    def test_ignores_code(self):
        self.assertEqual(self.problems(one_md="`[x](two.md)`\n\n```\n[x](two.md)\n```\n"), [])

    def test_reports_a_page_that_a_source_names(self):
        page = "docs/" + "two.md"  # Split, because the check reads this file, too.
        self.assertEqual(self.problems(one_cc=f"// See {page}.\n"), [f"one.cc:1: names {page}, which does not exist"])


class Settings(unittest.TestCase):
    TEXT = '''constexpr std::array kEntries = {
    ConfigEntry{{"TUTTI_A", "NCCL_A", "1", "one, "  // A comment.
           "two {three}"},
          "a number", [](Config& c, const std::string& t) { return f(t, "x"); }},
    ConfigEntry{{"TUTTI_B", nullptr, "", "four"}, "a \\"path\\"", others},
};'''

    def test_reads_rows_with_joined_strings(self):
        self.assertEqual(source.settings(self.TEXT), [("TUTTI_A", "NCCL_A", "1", None, "one, two {three}", "a number"),
                                                      ("TUTTI_B", None, "", None, "four", 'a "path"')])

    def test_reads_groups(self):
        row = source.settings('ConfigEntry{{"TUTTI_A", nullptr, "1", "launch", "one"}, "a number", others},')[0]
        self.assertEqual((row.group, row.meaning, row.values), ("launch", "one", "a number"))

    def test_refuses_a_table_of_another_form(self):
        with self.assertRaises(ValueError):
            source.settings('ConfigEntry{{"TUTTI_A", "1", "one"}, "a number"}')

    def test_page_has_every_variable_once(self):
        page = generate.environment()
        for row in source.settings():
            self.assertEqual(len(re.findall(rf"^\| `{row.name}` \|", page, re.M)), 1, row.name)


class Pages(unittest.TestCase):
    def test_pages_in_the_repository_are_current(self):
        for name in ("environment", "algorithms"):
            page = source.read(f"docs/reference/{name}.md")
            self.assertIn("<!-- end of generated text -->", page)
            self.assertEqual(page, generate.filled(page), f"run python3 tools/docs/generate.py: {name}.md is not current")


class Algorithms(unittest.TestCase):
    def test_page_has_every_entry_of_the_catalogue(self):
        catalogue = re.findall(r"^\s+entry\((\w+), (\w+)\)", source.read("algorithms/catalogue.cc"), re.M)
        self.assertEqual([(entry.collective, entry.name) for entry in source.algorithms()], catalogue)
        self.assertTrue(all(entry.summary and entry.comment for entry in source.algorithms()))


class Api(unittest.TestCase):
    def test_page_has_every_function(self):
        functions = re.findall(r"^TUTTI_API [^;(]*?\b(tutti_\w+)\(", source.read("include/tutti/tutti.h"), re.M)
        page = generate.api()
        self.assertGreater(len(functions), 60)
        for name in functions:
            self.assertRegex(page, rf"(?m)^### .*`{name}`", name)

    def test_escapes_what_markdown_would_read(self):
        self.assertEqual(generate.prose("a * b <c> of send[n * count]"), r"a \* b \<c\> of `send[n * count]`")
        self.assertEqual(generate.prose("=mlx5_0:1, ^=mlx5_3, a=two_shot"), "`=mlx5_0:1`, `^=mlx5_3`, a=`two_shot`")

    def test_makes_tagged_lines_a_list(self):
        self.assertEqual(generate.paragraphs("Does x.\nErrors: y,\n  and z.\n- last"),
                         "Does x.\n\n- **Errors:** y, and z.\n- last")


class Site(unittest.TestCase):
    def test_every_page_is_in_the_navigation(self):
        listed = set()
        for path in ("docs/index.md", "docs/decisions/README.md"):
            text = links.read(build.ROOT, path)
            listed |= {os.path.normpath(os.path.join(os.path.dirname(path), name)) for name in build.LIST_LINK.findall(text)}
        self.assertEqual(set(build.pages()) - {"docs/index.md"}, listed)


if __name__ == "__main__":
    unittest.main()
