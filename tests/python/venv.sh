# Virtual environments in the user's cache folder. Sourced by scripts that run Python programs with packages from PyPI.
#
# enter_venv <python> <name> <pip arguments>...: sets `venv` to the environment, which it makes on first use. Exits with 77 if
# PyPI cannot be reached, and then does not try again for 10 minutes. Holds a lock in descriptor 9, since tests run side by side.

enter_venv() {
  local python="$1" cache="${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tutti"
  venv="$cache/$2"
  local failed="$venv.failed"  # Contains why the environment could not be made.
  shift 2
  mkdir -p "$cache"
  exec 9>"$venv.lock"
  flock 9
  [ ! -x "$venv/bin/python" ] || return 0
  if [ -n "$(find "$failed" -mmin -10 2>/dev/null)" ] || ! make_venv "$@"; then
    echo "skipped: the test needs packages from PyPI: $(cat "$failed")"
    exit 77
  fi
}

# Uses the variables of enter_venv.
make_venv() {
  rm -rf "$venv.new"
  "$python" -m venv "$venv.new" || { echo "python3 -m venv failed: install python3-venv" >"$failed"; return 1; }
  PYTHONPATH="" "$venv.new/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 20 "$@" || {
    echo "pip could not install $*: make PyPI or a mirror reachable (PIP_INDEX_URL)" >"$failed"
    return 1
  }
  mv "$venv.new" "$venv"
}
