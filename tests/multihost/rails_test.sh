#!/usr/bin/env bash
# Tests that the ranks of a host use all interfaces in TUTTI_SOCKET_IFNAME.
#   rails_test.sh ALL_REDUCE_PERF ipv4|ipv6
set -euo pipefail
run="$(dirname "${BASH_SOURCE[0]}")/run.sh"
perf="$1"
family=()
[ "$2" = ipv4 ] || family=(--ipv6)
"$run" --hosts 1x1 "${family[@]}" -- true || exit $?  # 77: hosts cannot be emulated here.

fail() { echo "FAILED: $1" >&2; exit 1; }

# Prints "HOST: BYTES BYTES" for each host: the bytes that its interfaces have sent after all ranks are done.
count='"$0" -b 1M -e 1M -n 20 -w 0 >/dev/null || exit
  sent() { cat "/sys/class/net/$1/statistics/tx_bytes"; }
  [ "$LOCAL_RANK" -ne 0 ] || echo "$(uname -n): $(sent eth0) $(sent eth1)" >&2'
sent_with() { TUTTI_SOCKET_IFNAME="$1" "$run" --hosts 2x2 --rails 2 "${family[@]}" -- sh -c "$count" "$perf" 2>&1; }

# expect INTERFACES PERCENT PERCENT: minimum and maximum share of eth1 in the traffic of a host.
expect() {
  local said host first second share hosts=0
  said="$(sent_with "$1")" || fail "all-reduces by $1: $said"
  while read -r host first second; do
    [[ "$host" == host?: ]] || continue
    hosts=$((hosts + 1))
    share=$((100 * second / (first + second)))
    [ "$share" -ge "$2" ] && [ "$share" -le "$3" ] ||
      fail "with $1 eth1 of $host carries $share % instead of $2 to $3: $second bytes, and eth0 $first"
  done < <(sed 's/^\[rank [0-9]*\] //' <<<"$said")
  [ "$hosts" -eq 2 ] || fail "$hosts hosts reported their bytes instead of 2: $said"
}

expect =eth0 0 1
expect =eth1 99 100
expect =eth0,eth1 40 60
expect eth1,eth0 40 60
expect eth 0 1  # Not a list: ranks use the interface of the route to rank 0.

# Each host warns once about a name without interface.
said="$(sent_with =eth0,eth9)" || fail "all-reduces by =eth0,eth9: $said"
warned="$(grep -c '(=eth0,eth9) names eth9, which does not exist: there are .*eth1' <<<"$said" || true)"
[ "$warned" = 2 ] || fail "$warned ranks of 2 hosts warn about eth9: $said"
! grep -q 'names eth' <<<"$(sent_with =eth0,eth1)" || fail "a rank warns about eth0 or eth1"
