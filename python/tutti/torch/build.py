"""Builds the C++ path for the installed PyTorch: python -m tutti.torch.build [--force]

It needs g++ 12 or newer and takes about a minute. Without it the backend uses its Python path.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import torch

import tutti

from . import _native


def include_folder() -> str:
    folder = _native.include_folder()
    if folder is None:
        raise SystemExit(f"tutti/tutti.h is neither in {os.path.dirname(os.path.abspath(tutti.__file__))}/include nor beside "
                         f"{tutti.so_path}: install the package with `pip install ./python`")
    return folder


def compiler() -> str:
    command = os.environ.get("CXX", "g++")
    if shutil.which(command) is None:
        raise SystemExit(f"the compiler {command} is missing: install g++, or set CXX to a C++20 compiler")
    return command


def link_to_library(folder: str) -> list[str]:
    """Returns the flags that link to the library by its soname, which `import tutti` satisfies at run time."""
    link = os.path.join(folder, "libtutti.so")
    os.symlink(os.path.realpath(_file_of_library()), link)
    return ["-L" + folder, "-ltutti"]


def _file_of_library() -> str:
    """Returns the file of the loaded library. Its path may be a bare name that the system's loader has found."""
    if os.path.exists(tutti.so_path):
        return tutti.so_path
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if os.path.basename(path).startswith("libtutti.so"):
                return path
    raise SystemExit(f"the file of {tutti.so_path} is unknown: set TUTTI_LIBRARY to its path")


def command(source: str, output: str, folder: str) -> list[str]:
    root = os.path.dirname(torch.__file__)
    includes = [folder, include_folder(), os.path.join(root, "include"),
                os.path.join(root, "include", "torch", "csrc", "api", "include"), sysconfig.get_paths()["include"]]
    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    return [compiler(), "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden",
            f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"-DTUTTI_TORCH_VERSION={_native.torch_version()}",
            f"-DTORCH_EXTENSION_NAME={_native.NAME}", *("-I" + path for path in includes), source, "-o", output,
            "-L" + os.path.join(root, "lib"), "-ltorch", "-ltorch_cpu", "-ltorch_python", "-lc10",
            *link_to_library(folder)]


def _scratch_folder(parent: str) -> tempfile.TemporaryDirectory[str]:
    try:
        os.makedirs(parent, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=parent)
    except OSError as error:
        raise SystemExit(f"the folder {parent} cannot be written ({error.strerror}): set XDG_CACHE_HOME to another "
                         "folder for caches, also where the backend runs") from None


def build(force: bool = False) -> str:
    """Returns the path of the extension, after building it if it is missing or `force` is set."""
    target = _native.cache_path()
    if os.path.exists(target) and not force:
        return target
    compiler(), include_folder()  # If one is missing, leaves no folder.
    with _scratch_folder(os.path.dirname(target)) as folder:
        print(f"tutti.torch.build: compiling for PyTorch {torch.__version__}, which takes about a minute", file=sys.stderr)
        # One unit compiles in a fraction of the time, because PyTorch's headers are most of it.
        unit = os.path.join(folder, "unit.cc")
        with open(unit, "w", encoding="utf-8") as file:
            file.writelines(f'#include "{path}"\n' for path in _native.sources() if path.endswith(".cc"))
        os.mkdir(os.path.join(folder, "python"))  # Include paths of the sources begin at the root of the repository.
        os.symlink(os.path.dirname(os.path.abspath(tutti.__file__)), os.path.join(folder, "python", "tutti"))
        output = os.path.join(folder, _native.NAME + ".so")
        subprocess.run(command(unit, output, folder), check=True)
        os.replace(output, target)
    return target


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tutti.torch.build", description=__doc__.splitlines()[0])
    parser.add_argument("--force", action="store_true", help="build even if the extension exists")
    try:
        path = build(parser.parse_args().force)
    except subprocess.CalledProcessError as error:
        print(f"tutti.torch.build: the compiler failed with status {error.returncode}; its messages are above. The backend "
              "uses its Python path.", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
