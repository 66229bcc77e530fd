#!/usr/bin/env bash
# Nothing of ours is made at its first use, behind a guard: a fork beside that use would leave the child waiting for the
# end of it, in a thread that it does not have. What is needed is made when the library is loaded.
#   check_first_uses.sh LIBRARY
set -euo pipefail
if nm -C "$1" | grep 'guard variable for tutti::'; then
  echo "made at its first use: make it at load, beside other variables of its file"
  exit 1
fi
