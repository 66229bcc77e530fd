#!/bin/sh
# Measures the tuner's choices against the best forced choice on this machine. See perf/regret.py --help.
exec python3 -B "$(dirname "$0")/regret.py" "$@"
