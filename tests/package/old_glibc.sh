#!/usr/bin/env bash
# old_glibc.sh <build folder> <python> <C compiler> <C++ compiler> [libraries...]: links a library as TUTTI_GLIBC=2.28 links
# Tutti's, and checks that it needs no newer glibc and works on this one. Checks the same of the given libraries.
set -euo pipefail
build="$1" python="$2" cc="$3" cxx="$4"
shift 4
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
glibc="$here/../../src/old_glibc" folder="$build/old_glibc_test"
fail() { echo "$*"; exit 1; }
rm -rf "$folder"
mkdir -p "$folder"

# check <library>: its newest version of glibc is 2.28 or older, and it loads what older versions have beside libc.
check() {
  local newest loaded
  newest="$(objdump -T "$1" | grep -o 'GLIBC_2[.0-9]*' | sort -V | tail -n 1)"
  [ "$(printf '%s\nGLIBC_2.28\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.28 ] ||
    fail "$1 needs $newest: $(objdump -T "$1" | grep -F "$newest")"
  loaded="$(readelf -d "$1")"
  for name in libpthread.so.0 libdl.so.2 librt.so.1; do
    [[ "$loaded" == *"[$name]"* ]] || fail "$1 does not load $name"
  done
}

"$python" -B "$glibc/stubs.py" 2.28 "$folder" "$cc"
"$cc" -O2 -fPIC -c "$glibc/functions.c" -o "$folder/functions.o"
"$cxx" -std=c++20 -O2 -fPIC -c "$here/old_glibc.cc" -o "$folder/user.o"
"$cxx" -shared "$folder/user.o" "$folder/functions.o" "-L$folder" -Wl,--push-state,--no-as-needed -lpthread -ldl -lrt \
  -Wl,--pop-state -Wl,--exclude-libs,ALL -Wl,--no-undefined -static-libstdc++ -static-libgcc -o "$folder/library.so"
check "$folder/library.so"
for library in "$@"; do check "$library"; done

# Python loads the library beside its own glibc.
"$python" - "$folder/library.so" <<'CODE'
import ctypes, sys
run = ctypes.CDLL(sys.argv[1]).old_glibc_failure
run.restype, run.argtypes = ctypes.c_char_p, [ctypes.c_double]
failure = run(8)
sys.exit(failure and failure.decode())
CODE
echo "the libraries need glibc 2.28 or older"
