#!/usr/bin/env bash
# Tests that messages with tags use the interface in TUTTI_SOCKET_IFNAME, even if the routes between the hosts lead through
# another one.
#   message_addresses_test.sh MULTIHOST_MESSAGES
set -euo pipefail
run="$(dirname "${BASH_SOURCE[0]}")/run.sh"
"$run" --hosts 1x1 -- true || exit $?  # 77: hosts cannot be emulated here.

fail() { echo "FAILED: $1" >&2; exit 1; }

# Host 1 calls host 0 from the address of eth0, although over eth1.
exchange='[ "$(uname -n)" = host0 ] || ip route add 198.18.1.1/32 dev eth1 src 192.0.2.2
  TUTTI_LOG=trace exec "$0"'
said="$(TUTTI_SOCKET_IFNAME==eth1 "$run" --hosts 2x1 --rails 2 -- sh -c "$exchange" "$1" 2>&1)" || fail "exchange: $said"
for host in 1 2; do
  grep -q "accepts connections for tagged messages at 198.18.1.$host:" <<<"$said" ||
    fail "host $((host - 1)) does not accept messages at its eth1: $(grep 'tagged messages' <<<"$said")"
done
