#!/usr/bin/env bash
# examples.sh <build folder> <cmake> <C++ compiler> <C compiler>: installs into a folder of its own, builds the
# examples against what was installed and nothing else, and runs them.
set -euo pipefail
[ $# -eq 4 ] || { echo "usage: examples.sh BUILD_FOLDER CMAKE CXX_COMPILER C_COMPILER" >&2; exit 2; }
build="$1" cmake="$2"
export CXX="$3" CC="$4"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")/../../examples" && pwd)"
work="$build/examples"
rm -rf "$work"

"$cmake" --install "$build" --prefix "$work/prefix" >/dev/null
test -z "$(find "$work/prefix" -name '*.a')"  # Shared libraries, and no part of them besides.
# libnccl.so.2 is in a folder of its own, so that programs load it only on request.
test "$(find "$work/prefix" -name 'libnccl*' | sed 's|.*/\([^/]*/[^/]*\)$|\1|')" = tutti/libnccl.so.2

# The tools run from where they were installed.
"$work/prefix/bin/tutti" --version
"$work/prefix/bin/all_reduce_perf" --ranks 2 -b 8 -e 8 -n 1

"$cmake" -S "$here/c" -B "$work/c" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
"$cmake" --build "$work/c"
"$work/c/two_processes"

"$cmake" -S "$here/cpp" -B "$work/cpp" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
"$cmake" --build "$work/cpp"
"$work/cpp/two_threads"

if command -v mpicc >/dev/null && command -v mpirun >/dev/null; then
  "$cmake" -S "$here/mpi" -B "$work/mpi" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
  "$cmake" --build "$work/mpi"
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 mpirun -n 2 "$work/mpi/ranks_of_mpi"
fi

# Runs only with GPUs. The preset ptx runs it on the stand-in for the CUDA runtime.
if command -v nvcc >/dev/null; then
  "$cmake" -S "$here/cuda" -B "$work/cuda" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
  "$cmake" --build "$work/cuda"
fi

# two_processes with nothing but a compiler and tutti.pc, where pkg-config is there.
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH
  PKG_CONFIG_PATH="$(dirname "$(find "$work/prefix" -name tutti.pc)")"
  read -r -a flags <<<"$(pkg-config --cflags --libs tutti)"
  "$CC" -std=gnu99 "$here/c/two_processes.c" -o "$work/with_pkg_config" "${flags[@]}"
  LD_LIBRARY_PATH="$(pkg-config --variable=libdir tutti)" "$work/with_pkg_config"
fi
