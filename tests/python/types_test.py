"""Checks the annotations of the package with mypy --strict, and that it exports what __all__ names."""

import os
import subprocess
import sys
import tempfile
import unittest

import tutti

PACKAGE = os.path.dirname(os.path.abspath(tutti.__file__))


class Types(unittest.TestCase):
    def test_annotations_are_consistent(self):
        with tempfile.TemporaryDirectory() as cache:
            run = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", cache, "--config-file",
                                  os.path.join(PACKAGE, "..", "pyproject.toml"), PACKAGE], text=True, capture_output=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_exported_names_exist_and_have_docstrings(self):
        for name in tutti.__all__:
            self.assertTrue(hasattr(tutti, name), name)
            self.assertTrue(getattr(tutti, name).__doc__ or name == "so_path", name)


if __name__ == "__main__":
    unittest.main()
