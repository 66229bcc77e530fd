#!/usr/bin/env bash
# Tests that ranks measure the links between their hosts when they join, and log the result. $1: all_reduce_perf, $2:
# all_reduce_perf with the GPU emulator
set -euo pipefail
run="$(dirname "${BASH_SOURCE[0]}")/run.sh"
"$run" --hosts 1x1 -- true || exit $?  # 77: hosts cannot be emulated here.

fail() { echo "FAILED: $1" >&2; exit 1; }

# Sets `said` to the output. Retries if other programs kept a rank from running, since ranks then measure nothing. Skips
# the test if that happens each time, but only on a machine with more than twice as many running programs as CPUs.
try() {
  local attempt load
  for attempt in {1..20}; do
    said="$("$run" "$@" 2>&1)" || fail "$* ends with $?: $said"
    grep -q 'links between hosts were not measured' <<<"$said" || return 0
  done
  read -r load _ </proc/loadavg
  awk -v load="$load" -v cpus="$(nproc)" 'BEGIN { exit !(load > 2 * cpus) }' ||
    fail "nothing was measured in $attempt attempts, and the load of the machine is only $load: $said"
  echo "skipped: in $attempt attempts, other programs kept ranks from running; the load of the machine is $load" >&2
  exit 77
}

# Like try(), but keeps only the line with the measured rates, if there is one.
try_rates() {
  try "$@"
  said="$(grep 'between hosts a message takes' <<<"$said" || true)"
}

# 100 Mbit/s are 0.0125 GB/s, except for a burst. Two ranks of a host share the link.
try_rates --hosts 2x2 --rate 100mbit -- env TUTTI_LOG=info "$1" -b 8 -e 8
[[ "$said" =~ "a rank sends "([0-9.e-]+)" GB/s, a host "([0-9.e-]+)" GB/s" ]] || fail "the output lacks the measured rates: $said"
for rate in "${BASH_REMATCH[@]:1:2}"; do
  awk -v rate="$rate" 'BEGIN { exit !(rate > 0.004 && rate < 0.025) }' || fail "100 Mbit/s were measured as $rate GB/s: $said"
done

# 10 Mbit/s are 0.00125 GB/s. After a burst of 256 KiB, at most 40 ms of data are in flight. A probe sized for a faster link
# would have written far more.
counted='"$1" -b 8 -e 8 -n 1 && echo "sent $(cat /sys/class/net/eth0/statistics/tx_bytes) bytes"'
try --hosts 2x1 --rate 10mbit -- env TUTTI_LOG=info sh -c "$counted" sh "$1"
[[ "$said" =~ "a rank sends "([0-9.e-]+)" GB/s" ]] || fail "the output lacks the measured rates: $said"
awk -v rate="${BASH_REMATCH[1]}" 'BEGIN { exit !(rate > 0.0003 && rate < 0.0025) }' || fail "10 Mbit/s were measured as ${BASH_REMATCH[1]} GB/s: $said"
[[ "$said" =~ "sent "([0-9]+)" bytes" ]] || fail "the output lacks the number of bytes: $said"
[ "${BASH_REMATCH[1]}" -lt 450000 ] || fail "too many bytes were sent at 10 Mbit/s: $said"

# Ranks on devices measure too: an error bound may be set after they have joined.
try_rates --hosts 2x1 --rate 100mbit -- env TUTTI_LOG=info "$2" --memory cuda -b 8 -e 8
[[ "$said" == *"a rank sends "* ]] || fail "the links were not measured for devices"

for off in TUTTI_PROBE=0 TUTTI_DETERMINISTIC=1; do
  try_rates --hosts 2x1 -- env TUTTI_LOG=info $off "$1" -b 8 -e 8
  [ -z "$said" ] || fail "the links were measured with $off: $said"
done
