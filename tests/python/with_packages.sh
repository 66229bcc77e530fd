#!/usr/bin/env bash
# with_packages.sh <python> <program> [arguments]: runs a Python program with the packages of requirements.txt, in a virtual
# environment in the user's cache folder, which it makes on first use. Exits with 77 if PyPI cannot be reached.
set -euo pipefail
python="$1"
shift
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tutti"
name="python-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-$(sha256sum "$here/requirements.txt" | cut -c1-12)"
venv="$cache/$name"
failed="$cache/$name.failed"  # Contains why the environment could not be made. Valid for 10 minutes.

make_venv() {
  rm -rf "$venv.new"
  "$python" -m venv "$venv.new" || { echo "python3 -m venv failed: install python3-venv" >"$failed"; return 1; }
  "$venv.new/bin/pip" install --quiet --disable-pip-version-check --retries 2 --timeout 20 -r "$here/requirements.txt" || {
    echo "pip could not install tests/python/requirements.txt: make PyPI or a mirror reachable (PIP_INDEX_URL)" >"$failed"
    return 1
  }
  mv "$venv.new" "$venv"
}

mkdir -p "$cache"
exec 9>"$cache/$name.lock"
flock 9  # Tests run side by side.
if [ ! -x "$venv/bin/python" ]; then
  if [ -n "$(find "$failed" -mmin -10 2>/dev/null)" ] || ! make_venv; then
    echo "skipped: the tests of the Python package need packages from PyPI: $(cat "$failed")"
    exit 77
  fi
fi
exec 9>&-
exec "$venv/bin/python" -B "$@"
