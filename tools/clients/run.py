#!/usr/bin/env python3
"""Checks that PyTorch, CuPy and nccl4py load this libnccl.so.2. Needs a Python package index, but no GPU.

Installs the unmodified wheels into an environment below build/clients, runs a small program with each of them on host
memory, and prints the results. Exit status 1: a check failed."""

import argparse
import glob
import os
import runpy
import shutil
import signal
import subprocess
import sys
from collections import namedtuple

import symbols

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "clients")
ENVIRONMENT = os.path.join(FOLDER, "venv")
SCRATCH = os.path.join(FOLDER, "scratch")
NEEDED_GB = 9  # Disk space while pip unpacks its downloads; --keep keeps 6 GB of it.
LIMIT_S = 300
# files: pattern of the package's libraries that are linked with NCCL.
Client = namedtuple("Client", "name packages program files")
Row = namedtuple("Row", "client version shown holds")
OPEN = """
import ctypes, sys
version = ctypes.c_int()
status = ctypes.CDLL(sys.argv[1]).ncclGetVersion(ctypes.byref(version))
print(version.value if status == 0 else f"ncclGetVersion returned {status}")
"""


def stop(sentence):
    sys.exit(f"tools/dev clients: {sentence}")


def say(sentence):
    print(f"tools/dev clients: {sentence}", file=sys.stderr, flush=True)


def last_line(text):
    return ([line.strip() for line in text.splitlines() if line.strip()] or ["no output"])[-1]


def check_machine(kept):
    if not sys.platform.startswith("linux"):
        stop("libnccl.so.2 and the wheels of its clients need Linux")
    if shutil.which("nm") is None:
        stop("nm is missing, which reads the symbols; install binutils")
    try:
        import ensurepip  # noqa: F401: `python3 -m venv` needs it.
        import venv  # noqa: F401
    except ImportError:
        stop(f"{sys.executable} has no module venv; install it (Debian: python3-venv)")
    free_gb = shutil.disk_usage(FOLDER).free / 1e9
    if not kept and free_gb < NEEDED_GB:
        stop(f"{free_gb:.1f} GB are free in {FOLDER}, but {NEEDED_GB} are needed; free some space")
    say(f"{free_gb:.0f} GB are free in {FOLDER}" + ("" if kept else f"; {NEEDED_GB} are needed"))
    say("this machine has an NVIDIA GPU, which is not used" if glob.glob("/dev/nvidia[0-9]*")
        else "this machine has no NVIDIA GPU (no /dev/nvidia*)")


def pip_install(*packages):
    say(f"installing {' and '.join(packages)} with pip")
    # No cache, and temporary files in SCRATCH: nothing must remain outside of the clone.
    return subprocess.run([os.path.join(ENVIRONMENT, "bin", "python"), "-m", "pip", "install", "--no-cache-dir",
                           "--progress-bar", "off", *packages], stdout=sys.stderr,
                          env={**os.environ, "TMPDIR": SCRATCH}).returncode == 0


def packages_folder():
    return glob.glob(os.path.join(ENVIRONMENT, "lib", "python3*", "site-packages"))[0]


def clients_of(torch):
    """Installs the clients for the CUDA version of PyTorch. Yields a Client for each that was installed, and a Row with the
    error for each other."""
    if not pip_install(torch):
        yield Row("PyTorch", "-", f"pip installs {torch} (output above)", False)
        return
    cuda = runpy.run_path(os.path.join(packages_folder(), "torch", "version.py")).get("cuda")
    if cuda is None:
        yield Row("PyTorch", "-", "pip installs a PyTorch for CUDA: this one is for CPUs only", False)
        return
    yield Client("PyTorch", [torch], "use_pytorch.py", "torch/lib/libtorch_cuda.so")
    major = cuda.split(".")[0]
    others = [Client("CuPy", [f"cupy-cuda{major}x"], "use_cupy.py", "cupy_backends/cuda/libs/nccl*.so"),
              Client("nccl4py", ["nccl4py", f"cuda-bindings~={major}.0"], "use_nccl4py.py", None)]
    for client in others:
        # PyTorch is named too, so that pip does not change its dependencies.
        if pip_install(torch, *client.packages):
            yield client
        else:
            yield Row(client.name, "-", f"pip installs {' and '.join(client.packages)} (output above)", False)


def open_row(library):
    """Opens the library at run time with dlopen, as XLA and vLLM do. Returns the row and NCCL's version, or None."""
    run = subprocess.run([sys.executable, "-c", OPEN, library], capture_output=True, text=True, timeout=LIMIT_S)
    if run.returncode != 0 or not run.stdout.strip().isdigit():
        return Row("Python's ctypes", "-", f"opens it at run time: {last_line(run.stdout + run.stderr)}", False), None
    number = int(run.stdout)
    said = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    return Row("Python's ctypes", sys.version.split()[0], f"opens it at run time; ncclGetVersion returns {said}", True), said


def run_program(client, library, said):
    """Runs a client's program. Returns its output, the error or None, and the bindings of the loader."""
    report = os.path.join(SCRATCH, client.name)
    environment = {**os.environ, "LD_PRELOAD": library, "TUTTI_NCCL_MEMORY": "host", "LD_DEBUG": "bindings",
                   "LD_DEBUG_OUTPUT": report, "PYTHONPATH": "", "CUPY_CACHE_DIR": SCRATCH}
    command = [os.path.join(ENVIRONMENT, "bin", "python"), "-B", os.path.join(HERE, client.program), library, said]
    wrong = None
    try:
        run = subprocess.run(command, env=environment, cwd=SCRATCH, capture_output=True, text=True, timeout=LIMIT_S)
        output = run.stdout
        if run.returncode != 0:
            say(f"{client.program} ended with status {run.returncode}, after\n{run.stderr}")
            wrong = last_line(run.stderr)
    except subprocess.TimeoutExpired as late:
        output, wrong = (late.stdout or b"").decode(), f"did not end within {LIMIT_S} s"
    found = set()
    for path in glob.glob(glob.escape(report) + ".*"):
        with open(path, errors="replace") as lines:
            found |= symbols.bindings(lines)
        os.remove(path)
    return output, wrong, found


def some(names):
    return ", ".join(sorted(names)[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def linked_claims(client, library, found):
    """Yields claims about a client that is linked with NCCL: the library exports all functions that it needs, and the loader
    bound them to the library. found: bindings of the loader, or None if the program failed."""
    files = glob.glob(os.path.join(packages_folder(), client.files))
    if not files:
        yield f"has {client.files}, which is linked with NCCL: the file does not exist", False
    for file in map(os.path.realpath, files):
        name, needed = os.path.basename(file), symbols.functions("undefined", file)
        missing = needed - symbols.functions("defined", library)
        yield (f"{name} needs {len(needed)} functions of NCCL, and all are exported"
               + (f": not {some(missing)}" if missing else ""), bool(needed) and not missing)
        if found is not None:
            unbound = needed - {function for asked, function, answered in found if (asked, answered) == (file, library)}
            yield (f"the loader bound all {len(needed)} to this libnccl.so.2"
                   + (f": not {some(unbound)}" if unbound else ""), bool(needed) and not unbound)


def lookup_claims(client, library, found):
    ours = {function for _, function, answered in found if answered == library}
    if not client.files:  # The client looks functions up by name, including some of later versions that are missing.
        yield f"looks up functions of NCCL by name, and finds {len(ours)} in this libnccl.so.2", bool(ours)
    others = symbols.foreign_bindings(found, library)
    yield ("no function of NCCL was bound to another library"
           + (f": {some({f'{function} to {answered}' for _, function, answered in others})}" if others else ""), not others)


def rows_of(client, library, said):
    output, wrong, found = run_program(client, library, said)
    version, claims = "-", []
    for line in output.splitlines():
        word, _, text = line.partition(" ")
        if word == "version":
            version = text
        elif word in ("ok", "failed"):
            claims.append((text, word == "ok"))
    if wrong:
        claims.append((f"{client.program} runs to its end: {wrong}", False))
    if client.files:
        claims += linked_claims(client, library, None if wrong else found)
    if not wrong:
        claims += lookup_claims(client, library, found)
    return [Row(client.name, version, text, holds) for text, holds in claims]


def print_table(rows):
    table = [("client", "version", "claim", "")]
    table += [(row.client, row.version, row.shown, "ok" if row.holds else "FAILED") for row in rows]
    widths = [max(len(cells[i]) for cells in table) for i in range(2)]
    for client, version, shown, result in table:
        print(f"{client:{widths[0]}}  {version:{widths[1]}}  {result:6}  {shown}")


def show(library, torch):
    first, said = open_row(library)
    rows = [first]
    if said is None:
        return rows
    if subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT]).returncode != 0:
        stop(f"{sys.executable} -m venv {ENVIRONMENT} failed (output above)")
    for found in clients_of(torch):
        rows += [found] if isinstance(found, Row) else rows_of(found, library, said)
    return rows


def main():
    parser = argparse.ArgumentParser(prog="tools/dev clients", description=__doc__)
    parser.add_argument("--library", dest="nccl", metavar="FILE", required=True,
                        help="path of libnccl.so.2 (tools/dev clients passes the one that it builds)")
    parser.add_argument("--torch", default="torch", help="PyTorch package for pip, such as torch==2.11.0; default: the newest")
    parser.add_argument("--keep", action="store_true", help=f"keep {ENVIRONMENT} for the next run")
    options = parser.parse_args()
    if not os.path.isfile(options.nccl):
        stop(f"{options.nccl} does not exist; build the target tutti_nccl")
    os.makedirs(SCRATCH, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # Runs the cleanup below.
    try:
        check_machine(os.path.exists(ENVIRONMENT))
        rows = show(os.path.realpath(options.nccl), options.torch)
    finally:
        shutil.rmtree(SCRATCH)
        if not options.keep:
            shutil.rmtree(FOLDER)
    print_table(rows)
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
