#!/bin/sh
# Replaces ssh for MPI launchers: `agent.sh host1 COMMAND...` runs COMMAND in the namespaces of host1 of emulated_hosts.sh.
host="${1#host}"
shift
# shellcheck disable=SC2086  # EMULATED_HOSTS is a list of numbers.
pid="$(set -- $EMULATED_HOSTS && shift "$host" && echo "$1")"
exec nsenter --target "$pid" --net --uts --ipc --mount --pid setpriv --pdeathsig KILL sh -c "cd '$PWD' && $*"
