#!/usr/bin/env bash
# Tests that after a fault during all-reduces of 2x2 ranks, each surviving rank exits soon by itself, and that its error names
# the lost rank and the operation.
#   faults_test.sh FAULT ALL_REDUCE_PERF [ARGUMENTS...]
# FAULT: killed, cut, no_incoming, unplugged, no_outgoing, no_outgoing_small, reject_outgoing, unrouted or altered.
# no_outgoing_small: like no_outgoing, but with small messages. Then the host has little to send, and receives
# retransmissions all the time.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
enter_hosts_namespace "$@"
fault="$1" tool=("${@:2}") bound_s=15  # The limits are 4 s; a loaded machine is slower.

fail() {
  echo "FAILED: $1" >&2
  tail -n 5 /dev/shm/errors.* >&2
  exit 1
}

case "$fault" in
  altered | no_outgoing | no_outgoing_small | reject_outgoing)
    command -v nft >/dev/null || { echo "skipped: nft is not installed (package nftables)" >&2; exit 77; }
    ;;
esac
[ "$fault" != altered ] || export TUTTI_CHECK=mac

# Rank 0 prints a row for each of many sizes, which together take longer than the test.
calls=(-b 64K -e 1M -i 4 -n 100)
[ "$fault" != no_outgoing_small ] || calls=(-b 40 -e 16K -i 4 -n 500) bound_s=8
measure() { run_rank "$1" "${tool[@]}" "${calls[@]}" -c 0 2>"/dev/shm/errors.$1"; }
print_first_row() { measure 0 | { ! grep -qm 1 '^ *[1-9]' || notify row 0; cat >/dev/null; }; }

make_hosts 2x2
start 0 print_first_row
for rank in 1 2 3; do start "$rank" measure "$rank" >/dev/null; done
await_notification
[ "$who" = row ] || fail "rank $who ended with status $what before anything was broken"

# lost[rank]: pattern of the lost ranks that the rank may name.
case "$fault" in
  killed) lost=(3 3 3) && kill_rank 3 ;;
  cut) lost=("[23]" "[23]" "[01]" "[01]") && cut 1 ;;
  no_incoming) lost=("[23]" "[23]" "[01]" "[01]") && block_incoming 1 ;;
  unplugged) lost=("[23]" "[23]" "[01]" "[01]") && unplug 1 ;;
  no_outgoing | no_outgoing_small) lost=("[23]" "[23]" "[01]" "[01]") && drop_outgoing 1 ;;
  reject_outgoing) lost=("[23]" "[23]" "[01]" "[01]") && reject_outgoing 1 ;;
  unrouted) lost=("[23]" "[23]" "[01]" "[01]") && unroute 1 0 ;;
  altered) lost=("[0-3]" "[0-3]" "[0-3]" "[0-3]") && alter 1 ;;  # One connection detects the fault and notifies all ranks.
  *) fail "unknown fault '$fault'" ;;
esac
until=$((SECONDS + bound_s + 1))  # SECONDS counts whole seconds.
while [ ${#running[@]} -gt 0 ]; do
  await_notification $until || fail "rank ${!running[*]} still runs $bound_s s after the fault"
  status_of[$who]="$what"
done

# names_lost PATTERN RANK...: whether the error of one of the ranks says that it lost a rank that matches the pattern.
names_lost() {
  local pattern="$1" files=("${@:2}")
  grep -qsE "\brank $pattern (died|is out of reach).* all_(reduce|gather)\(" "${files[@]/#//dev/shm/errors.}"
}

# Between calls on devices, ranks of the tool have collectives on host memory. There one rank may detect the fault first and exit.
# The other ranks of its host may then report that exit instead of the fault.
if [ ${#tool[@]} -gt 1 ]; then
  case "$fault" in
    killed) lost=("[0-3]" "[0-3]" "[0-3]") && { names_lost 3 0 1 2 || fail "no error names rank 3"; } ;;
    cut)
      lost=("[0-3]" "[0-3]" "[0-3]" "[0-3]")
      names_lost "[23]" 0 1 || fail "no rank of host 0 names a rank of host 1"
      names_lost "[01]" 2 3 || fail "no rank of host 1 names a rank of host 0"
      ;;
  esac
fi

for rank in "${!lost[@]}"; do
  [ "${status_of[$rank]}" = 2 ] || fail "rank $rank ended with status ${status_of[$rank]} instead of 2, an error's"
  # Ignore the prefix with the detecting rank.
  sed 's/(found by rank [0-9]*)//' "/dev/shm/errors.$rank" |
    grep -qE "\brank ${lost[$rank]}\b.*\ball_(reduce|gather)\(|\ball_(reduce|gather)\(.*\brank ${lost[$rank]}\b" ||
    fail "rank $rank does not report the loss of rank ${lost[$rank]} and the operation"
done
[ "$fault" != altered ] || grep -qs "was altered on its way" /dev/shm/errors.[23] || fail "no error reports the altered data"
