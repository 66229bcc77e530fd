#!/bin/sh
# What launchers of MPI take for ssh:   agent.sh host1 COMMAND...   on a host that stage.sh plays.
host="${1#host}"
shift
# shellcheck disable=SC2086  # A list of numbers.
pid="$(set -- $STAGE_HOSTS && shift "$host" && echo "$1")"
exec nsenter --target "$pid" --net --uts --ipc --mount --pid setpriv --pdeathsig KILL sh -c "cd '$PWD' && $*"
