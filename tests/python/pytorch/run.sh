#!/usr/bin/env bash
# run.sh <build folder> [--torch VERSION] [--bench [options of perf/pytorch/run.py]]: tests the backend of torch.distributed with
# the newest PyTorch or another version, or measures it against Gloo. The build folder has the library.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
build="$(cd "$1" && pwd)"
shift
version=newest bench=no
while [ $# -gt 0 ]; do
  case "$1" in
    --torch) version="${2:?--torch needs a version, such as 2.9.1}"; shift 2 ;;
    --bench) bench=yes; shift; break ;;
    *) echo "unknown option '$1' of tools/dev pytorch; valid options are --torch VERSION and --bench" >&2; exit 2 ;;
  esac
done
export TUTTI_PYTORCH_VERSION="$version"
if [ "$bench" = yes ]; then
  export TUTTI_LIBRARY="$build/lib/libtutti.so" PYTHONPATH="$here/../../../python"
  exec "$here/with_pytorch.sh" python3 "$here/../../../perf/pytorch/run.py" "$@"
fi
exec ctest --test-dir "$build" -L pytorch --output-on-failure
