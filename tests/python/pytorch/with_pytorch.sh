#!/usr/bin/env bash
# with_pytorch.sh <python> <program> [arguments]: runs a Python program with PyTorch in a virtual environment in the user's cache
# folder, which it makes on first use (5 GB), and builds the C++ path of the backend there. Exits with 77 if PyPI cannot be reached.
#   TUTTI_LIBRARY:         libtutti.so
#   TUTTI_PYTORCH_VERSION: version of PyTorch; default: the newest
#   PYTHONPATH:            folder of the package tutti
set -euo pipefail
python="$1" version="${TUTTI_PYTORCH_VERSION:-newest}"
shift
cache="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tutti"
name="pytorch-$version-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
venv="$cache/$name"
package=torch
[ "$version" = newest ] || package="torch==$version"
failed="$cache/$name.failed"  # Contains why the environment could not be made. Valid for 10 minutes.

make_venv() {
  rm -rf "$venv.new"
  "$python" -m venv "$venv.new" || { echo "python3 -m venv failed: install python3-venv" >"$failed"; return 1; }
  PYTHONPATH="" "$venv.new/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 20 \
    "$package" numpy expecttest hypothesis || {
    echo "pip could not install $package: make PyPI or a mirror reachable (PIP_INDEX_URL)" >"$failed"
    return 1
  }
  rm -rf "$venv"
  mv "$venv.new" "$venv"
}

mkdir -p "$cache"
exec 9>"$cache/$name.lock"
flock 9  # Tests run side by side.
if [ ! -x "$venv/bin/python" ]; then
  if [ -n "$(find "$failed" -mmin -10 2>/dev/null)" ] || ! make_venv; then
    echo "skipped: the tests of the PyTorch backend need PyTorch from PyPI: $(cat "$failed")"
    exit 77
  fi
fi
# The newest PyTorch changes, so an environment of it is made anew after a month.
if [ "$version" = newest ] && [ -n "$(find "$venv/pyvenv.cfg" -mtime +30)" ]; then make_venv || true; fi
export OMP_NUM_THREADS=1
"$venv/bin/python" -B -m tutti.torch.build >/dev/null
exec 9>&-
exec "$venv/bin/python" -B "$@"
