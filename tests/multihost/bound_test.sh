#!/usr/bin/env bash
# Tests that an error bound selects a compression format over a slow link, and none between ranks that share memory. $1:
# all_reduce_perf
set -euo pipefail
run="$(dirname "${BASH_SOURCE[0]}")/run.sh"
"$run" --hosts 1x1 -- true || exit $?  # 77: hosts cannot be emulated here.

fail() { echo "FAILED: $1" >&2; exit 1; }

bounded=("$1" --max-relative-error 0.01 -b 4M -e 4M -n 1 -w 1)
over_link="$("$run" --hosts 2x1 --rate 1gbit -- "${bounded[@]}" 2>&1)"
[[ "$over_link" == *" in int8 4194304 B"* ]] || fail "int8 is not used at 1 Gbit/s: $over_link"
together="$("$run" --hosts 1x2 -- "${bounded[@]}" 2>&1)"
[[ "$together" == *"Algorithms"*"4194304 B"* && "$together" != *" in "*" 4194304 B"* ]] || fail "ranks of one host compress: $together"
