#!/usr/bin/env python3
"""Names of figures in docs/design/simulator.md and in `tutti simulate --figure`.  figures_test.py PATH/tutti"""

import os
import re
import subprocess
import sys
import unittest

TUTTI = sys.argv.pop() if len(sys.argv) > 1 else "build/tools/tutti"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "design", "simulator.md")
PLACEHOLDERS = {"PROTOCOL": "(Simple|LL|LL128)", "LINK": "(memory|nvlink|pci|network)",
                "KIND": "(memory|smp|pci|nvlink|c2c|network)", "FORMAT": r"\w+"}


def accepted():
    """Returns the names that the error for an unknown one lists."""
    done = subprocess.run([TUTTI, "simulate", "--topology", "dgx-h100", "--bytes", "8", "--figure", "unknown=1"],
                          capture_output=True, text=True)
    return done.stderr.split("valid figures are ")[1].strip().split(", ")


def documented():
    """Returns the names in the table of the page."""
    with open(PAGE, encoding="utf-8") as file:
        table = file.read().split("| name | unit | meaning |")[1].split("\n\n")[0]
    return re.findall(r"^\| `([^`]+)` \| \w", table, re.MULTILINE)


def pattern_of(name):
    words = re.escape(name).split(r"\.")
    return r"\.".join(PLACEHOLDERS.get(word, word) for word in words)


class Figures(unittest.TestCase):
    def test_page_has_each_name_once(self):
        patterns = [pattern_of(name) for name in documented()]
        for name in accepted():
            self.assertEqual(sum(re.fullmatch(pattern, name) is not None for pattern in patterns), 1, name)

    def test_page_has_no_other_name(self):
        names = accepted()
        for name in documented():
            self.assertTrue(any(re.fullmatch(pattern_of(name), each) for each in names), name)


if __name__ == "__main__":
    unittest.main()
