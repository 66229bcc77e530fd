#!/usr/bin/env bash
# Tests that only their network connects emulated hosts, and that faults have the documented effects.
#   hosts_test.sh ipv4|ipv6
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
enter_hosts_namespace "$@"
family="$1"

fail() { echo "FAILED: $1" >&2; exit 1; }
expect() { [ "$2" = "$3" ] || fail "$1 is '$2' instead of '$3'"; }

# No program listens on the port, so a reachable host refuses the connection.
call() {
  on_host "$1" ip neigh flush dev eth0
  LC_ALL=C on_host "$1" bash -c "exec 3<>/dev/tcp/$(address_of "$2")/9" 2>&1 || true
}
expect_reached() { [[ "$(call "$1" "$2")" == *"Connection refused"* ]] || fail "host$1 does not reach host$2: $3"; }
expect_silence() {
  # Shortens the timeout of a host that must give up.
  on_host "$1" sh -c "echo 50 >/proc/sys/net/$family/neigh/eth0/retrans_time_ms"
  [[ "$(call "$1" "$2")" == *"No route to host"* ]] || fail "host$1 reaches host$2: $3"
  on_host "$1" sh -c "echo 1000 >/proc/sys/net/$family/neigh/eth0/retrans_time_ms"
}
received() { on_host "$1" cat /sys/class/net/eth0/statistics/rx_packets; }

make_hosts 2+1 "$family"
expect_reached 0 1 "at the beginning"
expect_reached 1 0 "at the beginning"

expect "the name of host1" "$(on_host 1 uname -n)" host1
expect "the first process of host1" "$(on_host 1 cat /proc/1/comm)" sleep
on_host 0 touch /dev/shm/own
expect "the shared memory of host1" "$(on_host 1 ls /dev/shm)" ""
expect "the folder of a command" "$(on_host 1 pwd)" "$PWD"

cut 1
expect_silence 0 1 "though it was cut off"
before="$(received 0) $(received 1)"
expect_silence 0 1 "though it was cut off"
expect_silence 1 0 "though it is cut off"
expect "the packets that host0 and host1 received since the cut" "$(received 0) $(received 1)" "$before"
heal 1
expect_reached 0 1 "healed after a cut"

block_incoming 1
expect_silence 0 1 "though its incoming packets are blocked"
before_0="$(received 0)" before_1="$(received 1)"
expect_silence 0 1 "though its incoming packets are blocked"
expect_silence 1 0 "though its incoming packets are blocked"
expect "the packets that host1 received since its incoming packets are blocked" "$(received 1)" "$before_1"
[ "$(received 0)" -gt "$before_0" ] || fail "host1 does not send, either"
heal 1
expect_reached 1 0 "healed after its incoming packets were blocked"

unplug 1
expect "the carrier of host1" "$(on_host 1 cat /sys/class/net/eth0/carrier)" 0
expect "the carrier of host0" "$(on_host 0 cat /sys/class/net/eth0/carrier)" 1
plug 1
until [ "$(on_host 1 cat /sys/class/net/eth0/carrier)" = 1 ]; do :; done
expect_reached 0 1 "plugged in again"

slow 1 1mbit
[[ "$(on_host 1 tc qdisc show dev eth0)" == *"rate 1Mbit"* ]] || fail "the rate of host1 is not limited"

for rank in 0 1 2; do
  start "$rank" run_rank "$rank" sh -c 'echo begun "$RANK" >&3; exec sleep infinity' 3>&"$news" 2>/dev/null
done
for rank in 0 1 2; do
  await_notification
  expect "the news of a rank" "$who" begun
done
kill_rank 1
await_notification
expect "the rank that ended, and how" "$who $what" "1 137"
for rank in 0 2; do
  on_host "${host_of[$rank]}" sh -c 'grep -qszx "RANK=$0" /proc/[0-9]*/environ' "$rank" || fail "rank $rank ended, too"
done
