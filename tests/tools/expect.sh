#!/usr/bin/env bash
# expect.sh STATUS PATTERN COMMAND...: checks that the command exits with STATUS and that its output matches PATTERN. (ctest
# checks only one of the two.)
set -uo pipefail
wanted="$1" pattern="$2"
shift 2
output="$("$@" 2>&1)"
status=$?
echo "$output"
if [ "$status" -ne "$wanted" ]; then echo "exit status $status instead of $wanted"; exit 1; fi
if ! [[ "$output" =~ $pattern ]]; then echo "nothing matches $pattern"; exit 1; fi
