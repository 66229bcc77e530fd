"""Finds and loads libtutti.so."""

from __future__ import annotations

import ctypes
import os
import sys

VARIABLE = "TUTTI_LIBRARY"
FILE = "libtutti.so"
SYSTEM_NAME = "libtutti.so.0"  # The library's soname. The system's loader searches its folders for it.


def candidates() -> list[tuple[str, str]]:
    """Returns (origin, path) of each place of the library, in the order in which load() tries them.

    The variable TUTTI_LIBRARY excludes all other places, so that a wrong path is an error.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return [(f"the variable {VARIABLE}", chosen)]
    # An editable installation has two folders: the sources, and that of built files.
    folders = dict.fromkeys(os.path.abspath(folder) for folder in sys.modules[__package__].__path__)
    return [*(("this package", os.path.join(folder, FILE)) for folder in folders), ("the system's libraries", SYSTEM_NAME)]


def load() -> tuple[ctypes.CDLL, str]:
    """Returns the library and the path from which it was loaded. Raises ImportError that lists what was tried."""
    failures = []
    for origin, path in candidates():
        try:
            return ctypes.CDLL(path), path
        except OSError as error:
            failures.append(f"{origin} ({error})")
    raise ImportError("tutti: libtutti.so cannot be loaded; tried " + "; ".join(failures) + ": install the package with "
                      f"`pip install ./python`, or set {VARIABLE} to the path of libtutti.so")
