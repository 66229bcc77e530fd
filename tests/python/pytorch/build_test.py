"""Failures of python -m tutti.torch.build before it compiles: one line, and no folder left behind."""

import os
import subprocess
import sys
import tempfile


def failure(cache, **environment):
    """Returns the messages of a build that fails."""
    run = subprocess.run([sys.executable, "-B", "-m", "tutti.torch.build"], text=True, capture_output=True,
                         env={**os.environ, "XDG_CACHE_HOME": cache, **environment})
    assert run.returncode == 1 and not run.stdout, run
    return run.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        text = failure(folder, CXX="nope")
        assert text == "the compiler nope is missing: install g++, or set CXX to a C++20 compiler\n", text
        assert os.listdir(folder) == [], os.listdir(folder)
        file = os.path.join(folder, "file")
        with open(file, "w"):
            pass
        text = failure(file, CXX="true")  # A folder below a file cannot be made, not even by root.
        assert text.startswith(f"the folder {file}/tutti/") and "set XDG_CACHE_HOME" in text and text.count("\n") == 1, text
        text = failure(folder, CXX="false")
        first, last = text.splitlines()
        assert first.startswith("tutti.torch.build: compiling for PyTorch 2."), text
        assert last.startswith("tutti.torch.build: the compiler failed with status 1"), text


if __name__ == "__main__":
    main()
