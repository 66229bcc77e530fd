#!/bin/sh
# Counts what all-reduces execute on the PTX machine, beside a kernel written by hand. See perf/gpu/counts.py --help.
exec python3 -B "$(dirname "$0")/counts.py" "$@"
