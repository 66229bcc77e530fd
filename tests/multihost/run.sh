#!/usr/bin/env bash
# Runs a command once per rank on emulated hosts of this machine, with the variables of torchrun:
#   run.sh --hosts 2x2 [--ipv6] [--rails 2] [--rate 1gbit] [--congestion bbr] [--grace 10] -- COMMAND...
#     --hosts  2x3: 2 hosts with 3 ranks each; 3+1: one with 3, one with 1
#     --rails  interfaces of each host: eth0, eth1, ...
#     --rate   maximum rate at which each interface sends, in units of tc
#     --congestion  TCP congestion control of all hosts (default: that of the system)
#     --grace  seconds in which the other ranks must end by themselves after a rank has failed
# Prints the output of rank 0, and the errors of other ranks after "[rank r]". Returns the status of the first rank that
# failed, and 77 if hosts or the congestion control cannot be had.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"

usage="run.sh --hosts 2x2 [--ipv6] [--rails 2] [--rate 1gbit] [--congestion bbr] [--grace 10] -- COMMAND..."
refuse() { echo "run.sh: $1; usage: $usage" >&2; exit 2; }

layout="" family=ipv4 rails=1 rate="" congestion="" grace=10 arguments=("$@")
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case "$1" in
    --hosts) layout="${2:-}"; shift ;;
    --rails) rails="${2:-}"; shift ;;
    --rate) rate="${2:-}"; shift ;;
    --congestion) congestion="${2:-}"; shift ;;
    --grace) grace="${2:-}"; shift ;;
    --ipv6) family=ipv6 ;;
    -h | --help) echo "usage: $usage"; exit 0 ;;
    *) refuse "unknown option '$1'" ;;
  esac
  shift || refuse "the last option has no value"
done
[ $# -gt 1 ] || refuse "no command after --"
shift
read_layout "$layout"
enter_hosts_namespace "${arguments[@]}"

make_hosts "$layout" "$family"
if [ -n "$congestion" ]; then
  for host in "${!ranks_on[@]}"; do
    on_host "$host" sysctl -qw net.ipv4.tcp_congestion_control="$congestion" 2>/dev/null || {
      echo "skipped: add $congestion to net.ipv4.tcp_allowed_congestion_control of this machine" >&2
      exit 77
    }
  done
fi
for ((rail = 0; rail < rails; rail++)); do
  [ "$rail" -eq 0 ] || add_rail "$rail"
  [ -n "$rate" ] || continue
  for host in "${!ranks_on[@]}"; do slow "$host" "$rate" "" "eth$rail"; done
done

show_errors() { run_rank "$@" 2>&1 >/dev/null | sed -u "s/^/[rank $1] /" >&2; }

start 0 run_rank 0 "$@"
for ((rank = 1; rank < ${#host_of[@]}; rank++)); do start "$rank" show_errors "$rank" "$@"; done

until="" failed="" result=0
while [ ${#running[@]} -gt 0 ]; do
  if ! await_notification $until; then
    echo "run.sh: killed $grace s after the failure of rank $failed: rank ${!running[*]}" >&2
    break
  fi
  if [ "$what" -ne 0 ] && [ $result -eq 0 ]; then failed="$who" result="$what" until=$((SECONDS + grace)); fi
done
exit $result
