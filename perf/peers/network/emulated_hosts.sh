#!/usr/bin/env bash
# Runs a command beside hosts that are emulated like in tests/multihost, with one congestion control for all connections:
#   emulated_hosts.sh LAYOUT RATE BURST CONTROL -- COMMAND...
#     LAYOUT   loopback (no hosts, only a loopback interface), or hosts x ranks, such as 2x1
#     RATE     maximum rate at which each host sends, in units of tc, or "-"
#     BURST    bytes that a slow link sends at once after a pause
#     CONTROL  a congestion control that the system allows
# The command runs outside of the hosts. EMULATED_HOSTS has the process id of each host, by which nsenter can enter it. Exits
# with 77 if hosts cannot be emulated, and with 78 if the congestion control cannot be set.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../tests/multihost/hosts.sh"
enter_hosts_namespace "$@"
layout="$1" rate="$2" burst="$3" control="$4"
shift 5

set_control='[ "$(cat $0)" = "$1" ] || echo "$1" >$0'
controlled() { "$@" sh -c "$set_control" /proc/sys/net/ipv4/tcp_congestion_control "$control" 2>/dev/null || exit 78; }

ip link set dev lo up
controlled env
if [ "$layout" != loopback ]; then
  make_hosts "$layout"
  # MPI launchers run outside of the hosts, which reach them through the switch.
  ip address add "$(address_of 252)/24" dev switch
  for host in "${!ranks_on[@]}"; do
    # The switch learns addresses, since flooded frames would use cores of all hosts. No test here blocks incoming packets.
    bridge link set dev "port$host" learning on
    controlled on_host "$host"
    [ "$rate" = - ] || slow "$host" "$rate" "$burst"
  done
  export EMULATED_HOSTS="${host_pid[*]}"
fi
"$@"
