#!/usr/bin/env bash
# debs.sh <build folder> <cpack> <C compiler>: makes the Debian packages in <build folder>/debs, checks their names,
# dependencies and files, and runs the C example with the unpacked library. Needs no root.
set -euo pipefail
build="$1" cpack="$2" cc="$3"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
for program in dpkg-deb dpkg-shlibdeps readelf; do
  command -v "$program" >/dev/null || { echo "skipped: no $program (Debian: dpkg-dev and binutils)"; exit 77; }
done
fail() { echo "$*"; exit 1; }

debs="$build/debs"
rm -rf "$debs"
"$cpack" --config "$build/CPackConfig.cmake" -B "$debs"
for name in libtutti0 libtutti-dev tutti-tools; do
  files=("$debs/$name"_*.deb)
  [ ${#files[@]} -eq 1 ] && [ -f "${files[0]}" ] || fail "$debs should have one package $name: ${files[*]}"
  dpkg-deb --extract "${files[0]}" "$debs/$name"
  dpkg-deb --control "${files[0]}" "$debs/$name.control"
  [ -s "$debs/$name/usr/share/doc/$name/copyright" ] || fail "$name has no licence"
done

# expect_field <package> <field> <pattern>: checks a field of the control file.
expect_field() {
  local value
  value="$(sed -n "s/^$2: //p" "$debs/$1.control/control")"
  [[ "$value" =~ $3 ]] || fail "$1: $2 is '$value', which does not match $3"
}
version="$(sed -n 's/^Version: //p' "$debs/libtutti0.control/control")"
expect_field libtutti0 Depends '^libc6 \(>= [0-9.]+\)$'  # libstdc++ and libsodium are linked statically.
expect_field libtutti-dev Depends "^libtutti0 \(= $version\)$"
expect_field tutti-tools Depends "libtutti0 \(= $version\)"
expect_field tutti-tools Depends 'libstdc\+\+6'
[ "$(cat "$debs/libtutti0.control/shlibs")" = "libtutti 0 libtutti0 (>= $version)" ] || fail "unexpected file shlibs"

# The name for the linker belongs to the development package, the soname to the other.
runtime="$debs/libtutti0" development="$debs/libtutti-dev" tools="$debs/tutti-tools"
library="$(find "$runtime" -name libtutti.so.0)"
[ -e "$library" ] || fail "libtutti0 has no libtutti.so.0"
readelf -d "$library" | grep -q 'SONAME.*\[libtutti.so.0\]' || fail "unexpected soname of $library"
[ -z "$(find "$runtime" -name '*.so')" ] || fail "libtutti0 has a name for the linker"
[ -L "$(find "$development" -name libtutti.so)" ] || fail "libtutti-dev has no link libtutti.so"
[ -z "$(find "$development" "$tools" -name '*.so.*')" ] || fail "a library is in the wrong package"
for file in usr/include/tutti/tutti.h usr/include/tutti/mpi.h usr/include/tutti/nccl.h; do
  [ -f "$development/$file" ] || fail "libtutti-dev has no $file"
done
[ -n "$(find "$development" -path '*/cmake/Tutti/TuttiConfig.cmake')" ] || fail "libtutti-dev has no CMake package"
[ -x "$tools/usr/bin/tutti" ] || fail "tutti-tools has no tutti"
# NVIDIA's package has libnccl.so.2 in a folder of the loader's path.
[ "$(find "$debs"/lib* "$tools" -name 'libnccl*' | sed 's|.*/\([^/]*/[^/]*\)$|\1|')" = tutti/libnccl.so.2 ] ||
  fail "libnccl.so.2 must be in a folder of its own, once"
[ -z "$(find "$runtime" "$development" "$tools" ! -type l -perm /o+w)" ] || fail "a file is writable by all"

# The example compiles against the packages.
mkdir "$debs/all"
cp -a "$runtime/." "$development/." "$tools/." "$debs/all"
libraries="$(dirname "$(find "$debs/all" -name libtutti.so)")"
"$cc" -std=gnu99 "$here/../../examples/c/two_processes.c" -I "$debs/all/usr/include" -L "$libraries" -ltutti -o "$debs/two_processes"
LD_LIBRARY_PATH="$libraries" "$debs/two_processes"
LD_LIBRARY_PATH="$libraries" "$debs/all/usr/bin/tutti" --version
