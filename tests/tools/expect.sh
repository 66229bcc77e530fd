#!/usr/bin/env bash
# expect.sh STATUS PATTERN COMMAND...: the command must exit with STATUS and print what matches PATTERN. (ctest looks at
# only one of the two.)
set -uo pipefail
wanted="$1" pattern="$2"
shift 2
output="$("$@" 2>&1)"
status=$?
echo "$output"
if [ "$status" -ne "$wanted" ]; then echo "exit status $status instead of $wanted"; exit 1; fi
if ! [[ "$output" =~ $pattern ]]; then echo "nothing matches $pattern"; exit 1; fi
