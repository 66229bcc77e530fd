#!/usr/bin/env bash
# Tests that run.sh starts the requested ranks, returns their status, and never leaves processes.
set -euo pipefail
run="$(dirname "${BASH_SOURCE[0]}")/run.sh"
"$run" --hosts 1x1 -- true || exit $?  # 77: hosts cannot be emulated here.

fail() { echo "FAILED: $1" >&2; exit 1; }
expect() { [ "$2" = "$3" ] || fail "$1 is '$2' instead of '$3'"; }

# Prints the output and errors of COMMAND, and its status in the last line. Readers of the pipe wait for all processes of the
# command, so a remaining process exceeds the test's deadline.
all_of() { "$@" 2>&1 && echo "status 0" || echo "status $?"; }
status_of() { all_of "$@" | tail -n 1; }
left_behind() { ip netns list; ip -o link show | cut -d : -f 2; }
before="$(left_behind)"

# Tests of ranks.
said='echo "$(uname -n): rank $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE here, $MASTER_ADDR:$MASTER_PORT" >&2'
expect "the output of the ranks" "$("$run" --hosts 2+1 -- sh -c "$said" 2>&1 | sort)" \
"[rank 1] host0: rank 1 of 3, 1 of 2 here, 192.0.2.1:29500
[rank 2] host1: rank 2 of 3, 0 of 1 here, 192.0.2.1:29500
host0: rank 0 of 3, 0 of 2 here, 192.0.2.1:29500"
expect "the output of rank 0" "$("$run" --hosts 2x2 -- sh -c 'echo rank $RANK')" "rank 0"
expect "the address of the master" "$("$run" --hosts 1x1 --ipv6 -- sh -c 'echo $MASTER_ADDR')" "fd00::1"
shapes='tc qdisc show dev eth0 | grep -o "rate [^ ]*" >&2'
expect "the rates" "$("$run" --hosts 2x1 --rate 3mbit -- sh -c "$shapes" 2>&1 | sort | xargs)" \
"[rank 1] rate 3Mbit rate 3Mbit"

# Tests of the end of a run.
expect "the status of a success" "$(status_of "$run" --hosts 2x2 -- true)" "status 0"
expect "a rank that fails" "$(status_of "$run" --hosts 2x2 -- sh -c 'exit $((RANK == 3 ? 7 : 0))')" "status 7"
waits='[ $RANK -ne 1 ] || kill -KILL $$; exec sleep infinity'
expect "a rank that is killed" "$(status_of "$run" --hosts 2x1 --grace 1 -- sh -c "$waits")" "status 137"
[[ "$(all_of "$run" --hosts 2x1 --grace 1 -- sh -c "$waits")" == *"killed 1 s after the failure of rank 1: rank 0"* ]] ||
  fail "the output does not report that rank 0 was killed"
[[ "$(all_of "$run" --help)" == "usage: run.sh --hosts "*"status 0" ]] || fail "--help prints no usage"
expect "an invalid layout" "$(status_of "$run" --hosts 2x0 -- true)" "status 2"
expect "an option without its value" "$(status_of "$run" --hosts)" "status 2"

# Signals to run.sh after a rank has begun. The caller of this test may ignore SIGINT.
ended_by() {
  local said status=0
  coproc runner { exec env --default-signal=INT "$run" --hosts 2x1 -- sh -c 'echo begun; exec sleep infinity' 2>&1; }
  local from="${runner[0]}" pid="$runner_PID"
  read -r said <&"$from" && [ "$said" = begun ] || fail "no rank has begun"
  kill -"$1" "$pid"
  cat <&"$from" >/dev/null  # Ends when the last process with the pipe has ended.
  wait "$pid" 2>/dev/null || status=$?
  echo "$status"
}
expect "run.sh after SIGTERM" "$(ended_by TERM)" 143
expect "run.sh after SIGINT" "$(ended_by INT)" 130
expect "run.sh after SIGKILL" "$(ended_by KILL)" 137

expect "the remaining processes" "$(left_behind)" "$before"
