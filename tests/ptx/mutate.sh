#!/bin/sh
# Weakens the synchronization of our kernels, one instruction at a time, and lists what tests on the PTX machine find.
# See tests/ptx/mutate.sh --help.
exec python3 -B "$(dirname "$0")/mutate.py" "$@"
