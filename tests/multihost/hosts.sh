# Emulated hosts for tests, made of namespaces. Each has its own network, name, processes, shared memory and /proc, and a link
# to a common switch. Bash scripts source this file and first call `enter_hosts_namespace "$@"`. Hosts end with the script, so no cleanup
# is needed, and several scripts can run at the same time.

PATH="$PATH:/usr/sbin:/sbin"  # Location of ip and bridge, missing in the PATH of some users.
export TUTTI_IB_DISABLE=1  # RDMA devices, if any, do not connect these hosts.
master_port=29500  # Any port is free: the networks have no other programs.

# All processes of a process namespace end with its init process, which ends with its parent.
namespaces=(unshare --net --mount --pid --kill-child)

declare -A running=()  # Ranks that have started and not ended.

# Runs the script again in new namespaces, the stage, and returns only there. Exits with 77 if namespaces are not permitted.
enter_hosts_namespace() {
  if [ "${MULTIHOST_STAGE:-}" = entered ]; then
    unset MULTIHOST_STAGE
    mount -t tmpfs tmpfs /dev/shm  # Files of the stage; the hosts have their own /dev/shm.
    mkfifo /dev/shm/news
    exec {news}<>/dev/shm/news
    return
  fi
  local stage=("${namespaces[@]}" --mount-proc) why status=0
  local needs="hash ip bridge tc mount hostname nsenter setpriv && mount -t tmpfs tmpfs /dev/shm &&
    ip link add dev a type bridge && ip link add dev b type veth"
  [ "$(id -u)" -eq 0 ] || stage+=(--map-root-user)
  if ! why="$("${stage[@]}" bash -c "$needs" 2>&1)"; then
    echo "skipped: emulated hosts need iproute2, and root or user namespaces: ${why//$'\n'/; }" >&2
    exit 77
  fi
  # Run the stage in the background, so that this process handles signals. The stage ends with this process.
  MULTIHOST_STAGE=entered setpriv --pdeathsig KILL "${stage[@]}" bash "$0" "$@" &
  wait $! || status=$?
  exit $status
}

# Parses a layout, "2x3" (hosts x ranks) or "3+1" (ranks of each host), and sets ranks_on[host], host_of[rank] and
# local_rank[rank].
read_layout() {
  local layout="$1" host rank i
  if [[ "$layout" =~ ^([1-9][0-9]?)x([1-9][0-9]?)$ ]]; then
    ranks_on=()
    for ((i = 0; i < BASH_REMATCH[1]; i++)); do ranks_on+=("${BASH_REMATCH[2]}"); done
  elif [[ "$layout" =~ ^[1-9][0-9]?([+][1-9][0-9]?)*$ ]]; then
    IFS=+ read -ra ranks_on <<<"$layout"
  else
    echo "hosts '$layout': pass HOSTSxRANKS, such as 2x4, or the ranks of each host, such as 3+1; each from 1 to 99" >&2
    exit 2
  fi
  host_of=() local_rank=()
  for host in "${!ranks_on[@]}"; do
    for ((rank = 0; rank < ranks_on[host]; rank++)); do host_of+=("$host") local_rank+=("$rank"); done
  done
}

# make_hosts LAYOUT [ipv4|ipv6]: creates hosts 0, 1, ... named host0, host1, ..., each with an interface eth0.
make_hosts() {
  read_layout "$1"
  family="${2:-ipv4}"
  ip link add dev switch type bridge mcast_snooping 0
  ip link set dev switch addrgenmode none  # The switch must not send packets itself.
  ip link set dev switch up
  host_pid=()
  for host in "${!ranks_on[@]}"; do make_host "$host"; done
}

address_of() { if [ "$family" = ipv6 ]; then echo "fd00::$(($1 + 1))"; else echo "192.0.2.$(($1 + 1))"; fi; }

# Starts the process that keeps the namespaces of a host until the stage ends. Its process id is that in the stage.
keeper='
read -r pid _ </proc/self/stat
mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs /dev/shm &&
  hostname "$1" && ip link set lo up && echo $pid && exec sleep infinity'

make_host() {
  local host="$1" address words
  exec {words}< <(exec "${namespaces[@]}" --uts --ipc bash -c "$keeper" keeper "host$host")
  read -r "host_pid[$host]" <&$words || { echo "creating host$host failed" >&2; exit 2; }
  # The switch does not learn addresses: it floods all frames. A port without flooding blocks a host's incoming packets.
  ip link add dev "port$host" master switch type veth peer name eth0 netns "${host_pid[$host]}"
  bridge link set dev "port$host" learning off
  ip link set dev "port$host" addrgenmode none
  ip link set dev "port$host" up
  address="$(address_of "$host")"
  if [ "$family" = ipv6 ]; then
    on_host "$host" ip address add "$address/64" dev eth0 nodad
  else
    on_host "$host" ip address add "$address/24" dev eth0
  fi
  on_host "$host" ip link set dev eth0 up
}

# add_rail NUMBER: adds an interface eth1 or eth2 to each host, on a separate switch.
add_rail() {
  local number="$1" host port
  ip link add dev "rail$number" type bridge mcast_snooping 0
  ip link set dev "rail$number" addrgenmode none up
  for host in "${!ranks_on[@]}"; do
    port="rail${number}port$host"
    ip link add dev "$port" master "rail$number" type veth peer name "eth$number" netns "${host_pid[$host]}"
    ip link set dev "$port" addrgenmode none up
    if [ "$family" = ipv6 ]; then
      on_host "$host" ip address add "fd00:$number::$((host + 1))/64" dev "eth$number" nodad
    else
      on_host "$host" ip address add "198.18.$number.$((host + 1))/24" dev "eth$number"
    fi
    on_host "$host" ip link set dev "eth$number" up
  done
}

# on_host HOST COMMAND...: runs a command on a host, in the caller's folder.
on_host() {
  local host="$1"
  shift
  nsenter --target "${host_pid[$host]}" --net --uts --ipc --mount --pid \
    sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "$@"
}

# run_rank RANK COMMAND...: runs a command on the rank's host, with torchrun's variables. Returns the status of the command.
run_rank() {
  local rank="$1" host="${host_of[$1]}"
  shift
  on_host "$host" env -u TUTTI_RANK -u TUTTI_RANKS -u TUTTI_ROOT RANK="$rank" WORLD_SIZE="${#host_of[@]}" \
    LOCAL_RANK="${local_rank[$rank]}" LOCAL_WORLD_SIZE="${ranks_on[$host]}" MASTER_ADDR="$(address_of 0)" \
    MASTER_PORT="$master_port" "$@"
}

# Kills all processes with the rank's variable: the command and its children.
kill_rank() {
  on_host "${host_of[$1]}" bash -c '
    for process in /proc/[0-9]*; do
      ! grep -qszx "RANK=$1" "$process/environ" || kill -KILL "${process#/proc/}" || true  # The process may have ended.
    done' kill_rank "$1"
}

# start RANK COMMAND...: runs COMMAND (`run_rank RANK ...`) in the background. Its end is that of the rank.
start() {
  running[$1]=started
  note_end "$@" &
}

note_end() {
  local rank="$1" status=0
  shift
  "$@" || status=$?
  notify "$rank" "$status"
}

# Sends two words to `await_notification`: RANK STATUS, or words of a command.
notify() { echo "$1 $2" >&"$news"; }

# await_notification [UNTIL]: waits for the next rank that ends, or for words of a command, and sets `who` and `what`. Fails if
# none arrives before SECONDS is UNTIL.
await_notification() {
  local deadline=()
  [ -z "${1:-}" ] || deadline=(-t "$(($1 > SECONDS ? $1 - SECONDS : 1))")
  read -r "${deadline[@]}" who what <&"$news" || return 1
  [ -z "${running[$who]:-}" ] || unset "running[$who]"
}

# slow HOST RATE [BURST [INTERFACE]]: limits the rate at which the host sends, in tc's units: 1gbit. BURST passes at
# once after a pause.
slow() { on_host "$1" tc qdisc replace dev "${4:-eth0}" root tbf rate "$2" burst "${3:-256kb}" latency 50ms; }

# Faults of a host's link. The host detects only the last one, since its interface loses its carrier.
cut() { bridge link set dev "port$1" state disabled; }
block_incoming() { bridge link set dev "port$1" flood off mcast_flood off bcast_flood off; }  # The host can still send.
heal() { bridge link set dev "port$1" state forwarding flood on mcast_flood on bcast_flood on; }
unplug() { ip link set dev "port$1" down; }
plug() { ip link set dev "port$1" up; }
# Faults by which the host itself blocks outgoing packets, in three ways.
drop_outgoing() {
  on_host "$1" nft 'add table inet no_outgoing
    add chain inet no_outgoing out { type filter hook output priority 0; }
    add rule inet no_outgoing out oifname "eth0" drop'
}
reject_outgoing() {
  on_host "$1" nft 'add table inet reject_outgoing
    add chain inet reject_outgoing out { type filter hook output priority 0; }
    add rule inet reject_outgoing out oifname "eth0" reject'
}
unroute() { on_host "$1" ip route add blackhole "$(address_of "$2")"; }
# Changes a byte of each long incoming segment, like broken memory of a switch. TCP does not detect it.
alter() {
  on_host "$1" nft 'add table inet broken
    add chain inet broken way { type filter hook prerouting priority -300; }
    add rule inet broken way meta l4proto tcp meta length > 1000 @ih,800,8 set 0x41'
}
