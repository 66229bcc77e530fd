"""Finds and loads the C++ path: an extension module that `python -m tutti.torch.build` compiles for the installed PyTorch."""

from __future__ import annotations

import atexit
import hashlib
import importlib.machinery
import importlib.util
import os
import sys
import sysconfig
from types import ModuleType
from typing import Optional

import torch

import tutti

NAME = "tutti_torch_native"
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native")

_loaded: Optional[ModuleType] = None


def torch_version() -> int:
    """Returns 21500 for PyTorch 2.15.0."""
    numbers = [int("".join(c for c in part if c.isdigit()) or 0) for part in torch.__version__.split("+")[0].split(".")[:3]]
    return numbers[0] * 10000 + numbers[1] * 100 + numbers[2]


def sources() -> list[str]:
    return sorted(os.path.join(SOURCES, name) for name in os.listdir(SOURCES) if name.endswith((".cc", ".h")))


def include_folder() -> Optional[str]:
    """Returns the folder of tutti/tutti.h: in the package, beside the library, or in the repository. None: it is missing."""
    package = os.path.dirname(os.path.abspath(tutti.__file__))
    library = os.path.dirname(os.path.realpath(tutti.so_path))
    for folder in (os.path.join(package, "include"), os.path.join(library, "..", "include"),
                   os.path.join(package, "..", "..", "include"), "/usr/include", "/usr/local/include"):
        if os.path.exists(os.path.join(folder, "tutti", "tutti.h")):
            return os.path.normpath(folder)
    return None


def _fingerprint() -> str:
    """Returns a hash of the sources and tutti.h, so that a development tree does not load an extension of older ones."""
    digest = hashlib.sha256()
    folder = include_folder()
    for path in sources() + ([] if folder is None else [os.path.join(folder, "tutti", "tutti.h")]):
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:12]


def cache_path() -> str:
    """Returns the path of the extension for this PyTorch, Python and Tutti, whether or not it exists."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    key = f"torch{torch.__version__}-{sys.implementation.cache_tag}-tutti{tutti.__version__}-{_fingerprint()}"
    return os.path.join(base, "tutti", key, NAME + sysconfig.get_config_var("EXT_SUFFIX"))


def load() -> Optional[ModuleType]:
    """Returns the extension, or None if it has not been built. Raises ImportError if it cannot be loaded."""
    global _loaded
    path = cache_path()
    if _loaded is None and os.path.exists(path):
        # The extension needs libtutti.so.0, which `import tutti` has loaded under this name.
        loader = importlib.machinery.ExtensionFileLoader(NAME, path)
        spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        atexit.register(_end_open_groups, module)
        _loaded = module
    return _loaded


def _end_open_groups(module: ModuleType) -> None:
    """Ends groups that the program left open, while their callbacks can run. After an uncaught exception, aborts their calls."""
    module.end_open_groups(aborts=hasattr(sys, "last_type"))
