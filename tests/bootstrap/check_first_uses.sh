#!/usr/bin/env bash
# Checks that the library has no function-local statics with guards. After a fork during their initialization, the child would
# wait for a thread that it does not have. Such objects must be created when the library is loaded.
#   check_first_uses.sh LIBRARY
set -euo pipefail
if nm -C "$1" | grep 'guard variable for tutti::'; then
  echo "made at its first use: make it at load, beside other variables of its file"
  exit 1
fi
