#!/usr/bin/env bash
# Tests of --hosts of the perf tools: ranks run on the requested hosts, and no processes remain. $1: all_reduce_perf
set -euo pipefail
here="$(realpath "$(dirname "${BASH_SOURCE[0]}")")"
source "$here/hosts.sh"
enter_hosts_namespace "$@"
tool="$(realpath "$1")"
said=/dev/shm/said
unset TUTTI_RANK TUTTI_RANKS TUTTI_ROOT

fail() { echo "start_test.sh: $1" >&2; tail -n 20 "$said" "$said.errors" >&2 || true; exit 1; }
says() { grep -qE "$2" "$1" || fail "the output lacks: $2"; }

make_hosts 2x1
for host in 0 1; do echo "${host_pid[$host]}" >"/dev/shm/pid.host$host"; done

# Arguments: hosts, then options of the tool. Sets $status and the output.
run() {
  status=0
  "$tool" --ssh "bash $here/as_ssh.sh" --hosts "$@" >"$said" 2>"$said.errors" || status=$?
}

# Only the first process of each host remains after the run; others may take a moment to end.
expect_nobody() {
  local host deadline=$((SECONDS + 30))
  for host in 0 1; do
    while on_host "$host" sh -c 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" " " | grep -q -e "[-]-host-part"'; do
      [ $SECONDS -lt $deadline ] || fail "$1: a process still runs on host$host"
    done
  done
}

export TUTTI_LOG=info  # The tool passes it to the ranks.
run host0:2,host1 -b 8 -e 64K -f 8 -n 5 -c 1
[ $status -eq 0 ] || fail "the status of a run was $status"
says "$said" '^# Out of bounds values : 0 OK'
! grep -q 'unique id' "$said" || fail "the output shows the unique id"
says "$said.errors" 'between hosts tcp: rank 0 \(host0 pid [0-9]+\) has no verbs: RDMA is disabled by TUTTI_IB_DISABLE'
says "$said.errors" 'rank 2 of 3 joined at'
says "$said.errors" 'transport: within a host shared memory, between hosts tcp; TCP encryption off'
expect_nobody "after a run"
unset TUTTI_LOG

TUTTI_ALGORITHM=ring run host0:2,host1 -b 8 -e 8 -n 1 -w 0 -c 0 --
[ $status -eq 0 ] || fail "the status of a run whose words end with -- was $status"
says "$said" '^# Algorithms .*ring'

run 'me@[fd00::1]:2' -b 8 -e 8
says "$said.errors" 'unknown host me@fd00::1$'

run host0,nowhere -b 8 -e 8
[ $status -eq 2 ] || fail "the status without a host was $status"
says "$said.errors" 'unknown host nowhere'
says "$said.errors" 'host nowhere \(pid [0-9]+\) ended with status 255: the connection or the login failed'
expect_nobody "without a host"

# Tests of other programs instead of ssh.
for answer in true false 'echo hello'; do
  run host0,host1 --ssh "$answer" -b 8 -e 8
  [ $status -eq 2 ] || fail "the status of a run by $answer was $status"
  says "$said.errors" 'host host[01] .*: the program did not start'
done

mkdir /dev/shm/only_here
(cd /dev/shm/only_here && run host0 -b 8 -e 8 && [ $status -eq 2 ]) || fail "the folder exists"
says "$said.errors" 'host host0 .*: the folder /dev/shm/only_here of this run does not exist there'

cp "$tool" /dev/shm/tool
(tool=/dev/shm/tool && run host0 -b 8 -e 8 && [ $status -eq 2 ]) || fail "the program exists"
says "$said.errors" 'host host0 .*: the program /dev/shm/tool does not exist there; it must have the same path on all hosts'

# start_run: starts a long run in the background as $starter. Returns when it has printed a row.
mkfifo /dev/shm/rows
start_run() {
  local row=""
  exec {rows}<>/dev/shm/rows
  "$tool" --ssh "bash $here/as_ssh.sh" --hosts host0:2,host1:2 -b 4 -e 1M -i 4 -n 10 -c 0 >&"$rows" 2>"$said.errors" {rows}>&- &
  starter=$!
  until grep -qm 1 '^ *[1-9]' <<<"$row"; do read -rt 60 row <&"$rows" || fail "nothing was measured"; done
}
# Reads the remaining output, so that the run never blocks on it.
end_of_run() {
  status=0
  cat <&"$rows" >/dev/null &
  local reader=$!
  wait "$starter" || status=$?
  kill "$reader"
  exec {rows}<&-
}

start_run
victim="$(on_host 1 sh -c 'pgrep -f -- "[-]-host-part" | tail -n 1')"
on_host 1 kill -KILL "$victim"
end_of_run
[ $status -eq 2 ] || fail "the status after a rank was killed was $status"
says "$said.errors" 'process [23] on host1 \(pid [0-9]+\) was ended by signal 9 \(Killed\)'
says "$said.errors" 'host host[01] \(pid [0-9]+\) ended with status 2'
expect_nobody "after a rank was killed"

for signal in TERM KILL; do
  start_run
  kill -$signal "$starter"
  end_of_run
  [ $status -gt 128 ] || fail "the status after SIG$signal was $status"
  expect_nobody "after SIG$signal"
done
