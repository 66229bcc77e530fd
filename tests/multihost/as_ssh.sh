#!/usr/bin/env bash
# Called as ssh is, HOST COMMAND: runs it on a host that a stage plays (hosts.sh), without the caller's environment. The
# stage has the hosts' processes in /dev/shm/pid.HOST.
host="$1"
shift
if ! read -r pid 2>/dev/null <"/dev/shm/pid.$host"; then
  echo "as_ssh.sh: there is no host $host" >&2
  exit 255
fi
exec env -i PATH="$PATH" nsenter --target "$pid" --net --uts --ipc --mount --pid sh -c "cd / && $*"
