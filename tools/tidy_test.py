"""Tests that each rule of tools/tidy reports an offence, and that no rule reports a clean tree."""

import graphlib
import os
import re
import subprocess
import sys
import tempfile
import unittest

TIDY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tidy")
HEADER = "#pragma once\n\nint answer();\n"


def lines_of_body(count):
    return "".join(f"  value += {i};\n" for i in range(count))


def tables():
    names = {}
    with open(TIDY, encoding="utf-8") as file:
        exec(re.search(r"^ARROWS = .*?^}\n.*?^}\n", file.read(), re.M | re.S).group(), names)
    return names


def tidy(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "wb") as file:
                file.write(text if isinstance(text, bytes) else text.encode())
        run = subprocess.run([sys.executable, TIDY, "--root", root], capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr


class Tidy(unittest.TestCase):
    def accepts(self, files):
        status, output = tidy(files)
        self.assertEqual(status, 0, output)

    def reports(self, error, files):
        status, output = tidy(files)
        self.assertEqual(status, 1, output)
        self.assertIn(error, output)
        self.assertIn("1 errors", output)

    def test_accepts_a_clean_tree(self):
        self.accepts({"src/base/a.h": HEADER, "src/plan/b.cc": '#include "src/base/a.h"\n\nint b() { return answer(); }\n'})

    def test_rejects_an_upward_include(self):
        self.reports("src/base/a.cc:1: src/base includes src/plan/b.h: src/base may include only lower modules",
                       {"src/plan/b.h": HEADER, "src/base/a.cc": '#include "src/plan/b.h"\n'})

    def test_rejects_a_sideways_include_between_modules(self):
        self.reports("transports includes src/plan/b.h: transports may include",
                       {"src/plan/b.h": HEADER, "transports/shm/a.cc": '#include "src/plan/b.h"\n'})

    def test_rejects_a_sideways_include_within_a_module(self):
        self.reports("the folders of transports must not include each other",
                       {"transports/tcp/b.h": HEADER, "transports/shm/a.cc": '#include "transports/tcp/b.h"\n'})

    def test_accepts_a_folder_that_sees_its_module(self):
        self.accepts({"transports/transport.h": HEADER, "transports/shm/a.cc": '#include "transports/transport.h"\n'})

    def test_arrows_have_no_cycle(self):
        for arrows in (tables()["ARROWS"], tables()["FOLDER_ARROWS"]):
            graphlib.TopologicalSorter({origin: targets.split() for origin, targets in arrows.items()}).prepare()

    def test_rejects_an_arrow_that_no_include_uses(self):
        modules = tables()
        arrows = [*modules["ARROWS"].items(), *modules["FOLDER_ARROWS"].items()]
        tree = {f"{module}/a.h": "" for module, _ in arrows}
        for module, targets in arrows:
            tree.update({f"{target}/a.h": "" for target in targets.replace("*", "").split()})
            for target in targets.replace("*", "").split():
                included = "tutti/a.h" if target == "include" else f"{target}/a.h"
                tree[f"{module}/b.cc"] = tree.get(f"{module}/b.cc", "") + f'#include "{included}"\n'
        tree["include/tutti/a.h"] = ""
        self.accepts(tree)
        tree["src/plan/b.cc"] = ""
        self.reports("the arrow from src/plan to src/base is unused", tree)

    def test_rejects_an_include_that_is_no_path_from_the_root(self):
        self.reports("paths must start at the repository root", {"src/base/a.h": HEADER, "src/base/a.cc": '#include "a.h"\n'})

    def test_rejects_what_sees_more_of_us_than_the_public_header(self):
        self.reports("perf includes src/base/a.h", {"src/base/a.h": HEADER, "perf/tool/b.cc": '#include "src/base/a.h"\n'})

    def test_rejects_an_include_cycle(self):
        self.reports("src/base/a.h -> src/base/b.h -> src/base/a.h: an include cycle",
                       {"src/base/a.h": '#include "src/base/b.h"\n', "src/base/b.h": '#include "src/base/a.h"\n'})

    def test_rejects_a_file_over_budget(self):
        self.reports("a.cc: 401 lines", {"src/base/a.cc": "int a;\n" * 401})
        self.accepts({"src/base/a.cc": "int a;\n" * 400})
        self.accepts({"include/tutti/tutti.h": "/* a */\n" * 600})

    def test_rejects_a_script_over_budget(self):
        for path in ("tools/run.sh", "tools/a.py", "cmake/a.cmake", "src/plan/CMakeLists.txt"):
            self.reports("401 lines", {path: "# a\n" * 401})
        self.reports("tools/run: 401 lines", {"tools/run": "#!/bin/sh\n" + "# a\n" * 400})

    def test_measures_nothing_that_programs_write(self):
        long = "1\n" * 401
        self.accepts({"perf/results/host-cpu.json": long, "perf/results/plot.py": long, "tests/plan/data.json": long,
                      "perf/peers/__pycache__/run.cpython-311.pyc": b"\xa7\r\r\n" * 401})

    def test_rejects_a_function_over_budget(self):
        function = "Thing::Thing(int a, int b)\n    : a_(a), b_{b} {\n" + lines_of_body(58) + "}\n"
        self.reports("a.cc:1: Thing::Thing has 61 lines", {"src/base/a.cc": function})
        self.accepts({"src/base/a.cc": function.replace("  value += 0;\n", "")})

    def test_sees_functions_in_classes_and_templates(self):
        method = "struct Thing {\n  template <typename T>\n  auto run(T value) const noexcept -> T {\n"
        self.reports("run has 63 lines", {"src/base/a.cc": method + lines_of_body(60) + "  }\n};\n"})

    def test_sees_functions_with_braces_in_their_header(self):
        for header in ("int run(Options options = {}, int n = 1) {\n", "Run::Run() : a_{1}, b_(2), c_{} {\n"):
            self.reports("has 62 lines", {"src/base/a.cc": header + lines_of_body(60) + "}\n"})

    def test_measures_no_table(self):
        self.accepts({"src/base/a.cc": "constexpr Row kRows[] = {\n" + "    {f(1), 2},\n" * 100 + "};\n"})

    def test_counts_no_braces_in_comments_and_strings(self):
        text = "int a() {\n  // {\n  char c = '{'; /* { */\n  return \"{\"[0] + c;\n}\n\n"
        self.accepts({"src/base/a.cc": text * 20})

    def test_rejects_a_python_function_over_budget(self):
        self.reports("tools/a.py:1: f has 61 lines", {"tools/a.py": "def f():\n" + "    pass\n" * 60})

    def test_rejects_names_that_say_nothing(self):
        for path in ("src/base/utils/a.h", "src/base/common.h", "src/plan/verify_impl.h", "tests/v2/a.h"):
            self.reports("has no meaning", {path: HEADER})

    def test_rejects_getenv_but_for_its_home(self):
        text = '#include <cstdlib>\n\nconst char* a() { return std::getenv("A"); }\n'
        self.reports("src/base/a.cc:3: getenv outside", {"src/base/a.cc": text})
        self.accepts({"src/base/config.cc": text, "src/base/a.cc": "// Not getenv.\n"})
        self.accepts({"src/nccl/environment.cc": text})

    def test_rejects_an_if_directive_within_a_function(self):
        self.reports("src/base/a.cc:2: #if within a", {"src/base/a.cc": "int a() {\n#ifdef X\n#endif\n  return 1;\n}\n"})
        self.accepts({"src/base/a.cc": "#ifdef X\nint a() { return 1; }\n#endif\n"})

    def test_rejects_bounds_that_are_not_min_or_max(self):
        for name in ("least", "most", "least_bytes", "most_of_all", "bytes_most"):
            self.reports(f"src/base/a.cc:2: '{name}' names a bound", {"src/base/a.cc": f"// Most.\nint {name} = 1;\n"})
        self.accepts({"src/base/a.cc": "// The least: `most`.\nint almost = 1, utmost_b = at_least(almost), foremost = 1;\n"})

    def test_rejects_a_type_that_two_files_define(self):
        body = "#pragma once\n\nnamespace tutti {\n\nstruct Ticket {\n  int number = 0;\n};\n\n}  // namespace tutti\n"
        self.reports("tutti::Ticket is defined in src/base/a.h:5, too", {"src/base/a.h": body, "src/plan/b.h": body})
        self.reports("is defined in src/base/a.h:5, too", {
            "src/base/a.h": body, "src/plan/b.cc": "namespace tutti {\n\nusing Ticket = int;\n\n}  // namespace tutti\n"})

    def test_accepts_types_of_other_namespaces_and_of_variants(self):
        body = "namespace tutti%s {\n%s\nclass Ticket {};\n\n}%s  // namespace tutti%s\n"
        self.accepts({"src/base/a.h": "#pragma once\n\n" + body % ("", "", "", ""),
                      "src/plan/b.h": "#pragma once\n\n" + body % ("::plan", "", "", "::plan"),
                      "src/plan/c.cc": "namespace tutti {\nnamespace {\n\nclass Ticket {};\n\n}  // namespace\n}  // namespace tutti\n"})
        self.accepts({f"src/base/a_{kind}.h": "#pragma once\n\n" + body % ("", "", "", "") for kind in ("cuda", "host")})

    def test_rejects_a_comment_without_subject_first(self):
        self.reports("begins with 'What'", {"src/base/a.h": "// What a call costs.\n" + HEADER})
        self.reports("begins with 'Of'", {"src/base/a.h": "// A call. Of a stream, when it is done.\n" + HEADER})
        self.reports("begins with 'Whoever'", {"tools/a.py": "# Whoever calls it waits.\n"})
        self.reports("begins with 'That'", {"tools/a.py": "tests = []  #" + " That execute it.\n"})
        self.reports("begins with 'None'", {"src/base/a.cc": "// None was measured.\n"})
        self.accepts({"tools/a.py": "# None if there is no row.\n"})
        self.reports("begins with 'As of'", {"src/base/a.h": "int type;  // As of type_of().\n" + HEADER})
        self.accepts({"src/base/a.h": "// Returns the cost of a call. Offers none.\n" + HEADER})

    def test_rejects_a_sentence_in_markdown_without_subject_first(self):
        for text in ("What a call costs.\n", "A page. That page is short.\n", "- **Polling.** Who polls sleeps.\n",
                     "A page.\n\nThose pages are short.\n", "## Of calls\n"):
            self.reports("begins with", {"tools/a.md": text})
        self.accepts({"tools/a.md": "The page lists\nwhat a call costs, and\nthat it returns.\n\n```\nWhat is code.\n```\n| Of rows |\n"})

    def test_rejects_a_long_comment_in_a_public_header(self):
        comment = "/* %s */\nint a(void);\n"
        self.reports("tutti.h:1: a comment of 81 words", {"include/tutti/tutti.h": comment % ("word " * 81)})
        self.accepts({"include/tutti/tutti.h": comment % ("word " * 80), "src/base/a.cc": comment % ("word " * 81)})

    def test_rejects_phrases_in_messages(self):
        for phrase in ("type 14 is none", "rank 3 cannot be", "called out of turn", "nobody listens"):
            self.reports("in a message", {"src/base/a.cc": f'const char* text() {{ return "{phrase}"; }}\n'})

    def test_rejects_a_commit_subject_that_is_not_imperative(self):
        with tempfile.TemporaryDirectory() as root:
            def git(*arguments):
                subprocess.run(["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True,
                               capture_output=True)

            def commit(subject):
                git("commit", "--allow-empty", "-m", subject)
                run = subprocess.run([sys.executable, TIDY, "--root", root], capture_output=True, text=True)
                return run.stdout + run.stderr

            git("init", "-b", "main")
            commit("What main has is not checked")
            git("checkout", "-b", "topic")
            self.assertIn(" 0 errors", commit("base: Return early from log()"))
            self.assertIn("is not 'module: Imperative verb and object'", commit("base: What a log line is"))
            self.assertIn("the subject has 73 characters", commit("base: Add " + "x" * 63))

    def test_rejects_a_formatting_difference(self):
        clang_format = subprocess.run("clang-format --version", shell=True, capture_output=True, text=True).stdout
        if " version 14." not in clang_format:
            self.skipTest("no clang-format 14")
        style = "BasedOnStyle: Google\n"
        self.reports("a.cc:2: formatting differs",
                       {".clang-format": style, "src/base/a.cc": "int a;\nint  b;\n"})
        self.accepts({".clang-format": style, "src/base/a.cc": "int a;\nint b;\n"})


if __name__ == "__main__":
    unittest.main()
