#!/usr/bin/env bash
# Checks that libnccl.so.2 can replace NVIDIA's library. It must export only the functions in the lists beside this file,
# ncclX weak and pncclX strong. It must have NVIDIA's soname, and depend only on the C library, so that it loads on any machine.
#   check_symbols.sh LIBRARY
set -euo pipefail
export LC_ALL=C
library=$1
here=$(dirname "${BASH_SOURCE[0]}")
status=0
fail() {
  echo "$library: $1"
  status=1
}

exported=$(nm -D --defined-only "$library" | awk '{print $3}' | sort -u)
wanted=$(sort -u "$here"/symbols-*.txt)
missing=$(comm -23 <(echo "$wanted") <(echo "$exported"))
[ -z "$missing" ] || fail "lacks $(echo $missing)"
surplus=$(comm -13 <(echo "$wanted") <(echo "$exported"))
[ -z "$surplus" ] || fail "exports too much: $(echo $surplus)"
for name in $(nm -D --defined-only "$library" | awk '$2 != "W" && $3 ~ /^nccl/ {print $3}'); do
  [ "$name" = ncclResetDebugInitInternal ] || fail "$name is not weak"
done
for name in $(nm -D --defined-only "$library" | awk '$2 != "T" && $3 ~ /^pnccl/ {print $3}'); do
  fail "$name is not a strong function"
done

readelf -d "$library" | grep -q 'SONAME.*\[libnccl\.so\.2\]' || fail "is not named libnccl.so.2"
grep -aqE 'NCCL version [^+[:space:]]+\+cuda[0-9]+\.[0-9]+' "$library" || fail "does not say which NCCL it is"
needed=$(readelf -d "$library" | grep NEEDED | grep -vE '\[(lib(c|m|pthread|dl|rt)|ld-linux[^]]*)\.so' || true)
[ -z "$needed" ] || fail "needs more than the C library: $needed"
if readelf -d "$library" | grep STATIC_TLS >/dev/null; then
  fail "has data of threads in the static block (initial-exec): a program that is running may have no room for it"
fi
exit $status
