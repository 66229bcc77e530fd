#!/bin/sh
# What the tuner's choices cost beside the best that could have been forced, on this machine. See perf/regret.py --help.
exec python3 -B "$(dirname "$0")/regret.py" "$@"
