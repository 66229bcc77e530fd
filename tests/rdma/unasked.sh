# Runs in a guest: two hosts, emulated by namespaces, whose ranks choose the transport by default. Namespaces share the devices,
# so RDMA packets pass from port to port and do not use the network of the hosts. $1: all_reduce_perf; $2: all_reduce_perf with
# the GPU emulator
set -euo pipefail
tool=("$1")
export TUTTI_TIMEOUT_MS=60000 TUTTI_INIT_TIMEOUT_MS=60000 TUTTI_LOG=info

fail() {
  echo "FAILED: $1" >&2
  tail -n 20 /run/said.* >&2
  exit 1
}
sent() { echo $(($(cat /sys/class/infiniband/rxe[01]/ports/1/hw_counters/sent_pkts | paste -sd+))); }

for host in 0 1; do ip netns add "host$host"; done
ip link add dev eth0 netns host0 type veth peer name eth0 netns host1
for host in 0 1; do
  ip -n "host$host" address add "192.0.2.$((host + 1))/24" dev eth0
  ip -n "host$host" link set dev lo up
  ip -n "host$host" link set dev eth0 up
done

# all_reduce NAME [VARIABLE=VALUE...]: runs all-reduces of the two ranks; @ stands for the rank. Writes the output to
# /run/said.0 and 1, and sets $packets to the number of packets. Each rank has its own device, since packets from a device to
# itself are not counted.
all_reduce() {
  local rank before status=0 variables=("${@:2}")
  before="$(sent)"
  for rank in 0 1; do
    ip netns exec "host$rank" env "${variables[@]//@/$rank}" TUTTI_RANK=$rank TUTTI_RANKS=2 TUTTI_ROOT=192.0.2.1:29500 \
      "${tool[@]}" -b 256K -e 256K -n 2 -w 0 -c 1 >"/run/said.$rank" 2>&1 &
    process[rank]=$!
  done
  for rank in 0 1; do wait "${process[rank]}" || status=$?; done
  [ $status -eq 0 ] || fail "$1: status $status"
  packets=$(($(sent) - before))
  echo "$1: $packets packets by RDMA, $(grep -ho 'between hosts .*' /run/said.0)"
}
said() { grep -qE "$1" /run/said.0 && grep -qE "$1" /run/said.1 || fail "the output of a rank lacks: $1"; }

all_reduce "software devices are excluded"
said 'between hosts tcp: rank 0 \(.*\) has no verbs: .*rxe0 port 1 is a software device, slower than TCP'
[ "$packets" -eq 0 ] || fail "RDMA was used"

all_reduce "software devices are named" TUTTI_IB_HCA=rxe@
said 'between hosts verbs: all ranks have it'
[ "$packets" -ge 128 ] || fail "RDMA was hardly used"

all_reduce "RDMA is disabled" TUTTI_IB_HCA=rxe@ TUTTI_IB_DISABLE=1
said 'between hosts tcp: rank 0 \(.*\) has no verbs: RDMA is disabled by TUTTI_IB_DISABLE'
[ "$packets" -eq 0 ] || fail "RDMA was used"

all_reduce "TCP checks data" TUTTI_IB_HCA=rxe@ TUTTI_CHECK=mac
[ "$packets" -eq 0 ] || fail "RDMA was used"

tool=("$2" --memory cuda)
all_reduce "on devices" TUTTI_IB_HCA=rxe@
said 'between hosts verbs: all ranks have it'
[ "$packets" -ge 128 ] || fail "RDMA was hardly used"
