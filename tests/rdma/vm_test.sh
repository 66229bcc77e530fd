#!/usr/bin/env bash
# Tests that tools/soft_roce_vm returns the streams and the status of any command, and does not change the host.
set -euo pipefail
vm="$(dirname "${BASH_SOURCE[0]}")/../../tools/soft_roce_vm"

refuse() { echo "vm_test.sh: $1" >&2; exit 1; }

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
status_of() { status=0; "$@" || status=$?; }

# The command prints 1 MiB of random bytes from a file of the host, then overwrites the file. The machine ends with the command,
# even if processes still run in it.
head -c 1M /dev/urandom >"$folder/bytes"
status_of "$vm" -- bash -c 'sleep 1000 & cat "$1"; echo "two  words: $2" >&2; echo >"$1"; exit 3' bash "$folder/bytes" 'a "b' \
  >"$folder/out" 2>"$folder/err"
if [ $status -eq 77 ]; then cat "$folder/err" >&2; exit 77; fi
[ $status -eq 3 ] || refuse "the status was $status, not the command's own: $(tail -n 5 "$folder/err")"
cmp "$folder/bytes" "$folder/out" || refuse "the output differs, or the host's file was written"
[ "$(cat "$folder/err")" = 'two  words: a "b' ] || refuse "the errors are: $(cat "$folder/err")"

# The limit also covers the time before the command begins.
status_of "$vm" --seconds 1 -- true 2>"$folder/err"
[ $status -eq 124 ] || refuse "the status was $status after the time limit"
grep -q 'within 1' "$folder/err" || refuse "the output lacks the time limit: $(cat "$folder/err")"

status_of "$vm" -- bash -c 'echo c >/proc/sysrq-trigger; sleep 1000' 2>"$folder/err"
[ $status -eq 125 ] || refuse "the status was $status after a panic"
grep -q 'sysrq' "$folder/err" || refuse "the last output of the console is not shown: $(cat "$folder/err")"

# A signal from outside also ends the machine.
mkfifo "$folder/begun"
"$vm" -- bash -c 'echo begun; sleep 1000' >"$folder/begun" &
tool=$!
read -r _ <"$folder/begun"
machine="$(pgrep -P $tool)" || refuse "no machine runs"
kill -KILL $tool
status_of wait $tool 2>/dev/null
tail --pid="$machine" -f /dev/null
