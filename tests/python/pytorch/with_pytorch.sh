#!/usr/bin/env bash
# with_pytorch.sh <python> <program> [arguments]: runs a Python program with PyTorch in a virtual environment in the user's cache
# folder (5 GB), and builds the C++ path of the backend there if there is a compiler. Exits with 77 if PyPI cannot be reached.
#   TUTTI_LIBRARY:         libtutti.so
#   TUTTI_PYTORCH_PATH:    path of the backend. python: does not build the C++ path. cpp: exits with 77 without a compiler
#   TUTTI_PYTORCH_VERSION: version of PyTorch; default: the newest of the month in which the environment is made
#   PYTHONPATH:            folder of the package tutti
set -euo pipefail
python="$1" version="${TUTTI_PYTORCH_VERSION:-newest}"
unset TUTTI_PYTORCH_VERSION  # The library warns of unknown variables.
shift
source "$(dirname "${BASH_SOURCE[0]}")/../venv.sh"
package=torch name="pytorch-$version-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
if [ "$version" = newest ]; then name+="-$(date +%Y-%m)"; else package="torch==$version"; fi
enter_venv "$python" "$name" "$package" numpy expecttest hypothesis
export OMP_NUM_THREADS=1
path="${TUTTI_PYTORCH_PATH:-}"
if [ "$path" != python ] && command -v "${CXX:-g++}" >/dev/null; then
  "$venv/bin/python" -B -m tutti.torch.build >/dev/null
elif [ "$path" = cpp ]; then
  echo "skipped: the C++ path of the backend needs a compiler: install g++, or set CXX"
  exit 77
fi
exec 9>&-
exec "$venv/bin/python" -B "$@"
