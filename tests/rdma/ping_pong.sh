# Runs in a guest of tools/soft_roce_vm: a standard RDMA program between the first two devices, over their ports.
set -euo pipefail

sent() { cat "/sys/class/infiniband/$1/ports/1/hw_counters/sent_pkts"; }

rounds=200
ibv_rc_pingpong -d rxe0 -g 1 -n $rounds >/dev/null &
# The server is ready when it listens on its TCP port.
until ss -Hltn 'sport = :18515' | grep -q .; do kill -0 $!; done
ibv_rc_pingpong -d rxe1 -g 1 -n $rounds 127.0.0.1
wait $!

# Ports do not count packets from a device to itself.
for device in rxe0 rxe1; do
  packets="$(sent $device)"
  echo "$device sent $packets packets"
  [ "$packets" -ge $rounds ]
done
