#!/usr/bin/env bash
# with_packages.sh <python> <program> [arguments]: runs a Python program with the packages of requirements.txt, in a virtual
# environment in the user's cache folder. Exits with 77 if PyPI cannot be reached.
set -euo pipefail
python="$1"
shift
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/venv.sh"
version="$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
enter_venv "$python" "python-$version-$(sha256sum "$here/requirements.txt" | cut -c1-12)" -r "$here/requirements.txt"
exec 9>&-
exec "$venv/bin/python" -B "$@"
