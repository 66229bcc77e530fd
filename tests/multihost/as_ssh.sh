#!/usr/bin/env bash
# Replaces ssh: HOST COMMAND runs the command on an emulated host (hosts.sh), without the caller's environment. The
# stage has the hosts' processes in /dev/shm/pid.HOST.
host="$1"
shift
if ! read -r pid 2>/dev/null <"/dev/shm/pid.$host"; then
  echo "as_ssh.sh: unknown host $host" >&2
  exit 255
fi
exec env -i PATH="$PATH" nsenter --target "$pid" --net --uts --ipc --mount --pid sh -c "cd / && $*"
