#!/usr/bin/env bash
# Tests that ranks of two hosts with a rendezvous address on loopback report the variable to set, long before their timeout.
# $1: all_reduce_perf
set -euo pipefail
run="$(dirname "${BASH_SOURCE[0]}")/run.sh"
"$run" --hosts 1x1 -- true || exit $?  # 77: hosts cannot be emulated here.

fail() { echo "FAILED: $1" >&2; exit 1; }

export TUTTI_INIT_TIMEOUT_MS=6000
for name in localhost 127.0.0.1; do
  status=0
  said="$("$run" --hosts 2x1 -- env MASTER_ADDR=$name "$1" -b 8 -e 8 2>&1)" || status=$?
  [ $status -eq 2 ] || fail "the status is $status: $said"
  advice="$name works on one host only; for several hosts set MASTER_ADDR to an address"
  [[ "$said" == *"[rank 1] "*"rank 1 is still asking rank 0 for the unique id at 127.0.0.1:29501: "*"$advice"* ]] ||
    fail "rank 1 does not warn: $said"
  [[ "$said" == *"[rank 1] all_reduce_perf: creating"*"$advice"* ]] || fail "the error lacks the advice: $said"
done
