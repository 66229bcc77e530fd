#!/usr/bin/env bash
# Checks that the library exports only the functions of tutti.h, and depends only on the C library. It contains libstdc++ and
# libgcc, since the process that loads it may have other versions.
#   check_exports.sh LIBRARY HEADER
set -euo pipefail
exported=$(nm -D --defined-only "$1" | awk '{print $3}' | sort)
declared=$(grep -oE '\btutti_[a-z_0-9]+\(' "$2" | tr -d '(' | sort -u)
status=0
if ! difference=$(diff <(echo "$declared") <(echo "$exported")); then
  echo "declared (<) and exported (>) differ:" && echo "$difference"
  status=1
fi
if needed=$(readelf -d "$1" | grep NEEDED | grep -vE '\[(lib(c|m|pthread|dl|rt)|ld-linux[^]]*)\.so'); then
  echo "needs more than the C library:" && echo "$needed"
  status=1
fi
if nm -D --undefined-only "$1" | grep -w arc4random; then
  echo "needs glibc 2.36: is std::random_device used, or are unused sections kept?"
  status=1
fi
if readelf -d "$1" | grep STATIC_TLS >/dev/null; then
  echo "has data of threads in the static block (initial-exec): a program that is running may have no room for it"
  status=1
fi
exit $status
