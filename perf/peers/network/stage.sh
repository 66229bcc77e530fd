#!/usr/bin/env bash
# Runs a command where hosts are played, as tests/multihost does, with one congestion control for all connections:
#   stage.sh LAYOUT RATE BURST CONTROL -- COMMAND...
#     LAYOUT   loopback: no hosts, a network with nothing but its loopback; otherwise as 2x1
#     RATE     what each host sends at most, in tc's words, or "-"; BURST what passes at once, after a pause
#     CONTROL  a congestion control that the system allows
# The command runs beside the hosts, from where they can be entered: STAGE_HOSTS has a process of each. Exits with
# 77 where hosts cannot be played, and with 78 where the congestion control cannot be set.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../tests/multihost/hosts.sh"
enter_stage "$@"
layout="$1" rate="$2" burst="$3" control="$4"
shift 5

set_control='[ "$(cat $0)" = "$1" ] || echo "$1" >$0'
controlled() { "$@" sh -c "$set_control" /proc/sys/net/ipv4/tcp_congestion_control "$control" 2>/dev/null || exit 78; }

ip link set dev lo up
controlled env
if [ "$layout" != loopback ]; then
  make_hosts "$layout"
  # Launchers run beside the hosts, and are reached through the switch.
  ip address add "$(address_of 252)/24" dev switch
  for host in "${!ranks_on[@]}"; do
    # Here no host is to be made deaf, and frames that go to all would cost all others' cores.
    bridge link set dev "port$host" learning on
    controlled on_host "$host"
    [ "$rate" = - ] || slow "$host" "$rate" "$burst"
  done
  export STAGE_HOSTS="${host_pid[*]}"
fi
"$@"
