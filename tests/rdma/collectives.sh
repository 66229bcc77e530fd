# Runs in a guest: all collectives over RDMA, with checks of the results. $1: folder of the perf tools.
set -euo pipefail
folder="$1"
export TUTTI_TRANSPORT=verbs TUTTI_TIMEOUT_MS=60000 TUTTI_INIT_TIMEOUT_MS=60000

sent() { cat "/sys/class/infiniband/$1/ports/1/hw_counters/sent_pkts"; }

# perf TOOL OPTIONS...: prints one line of its output. Fails if the tool fails or has checked nothing.
perf() {
  local tool="$1" said
  shift
  said="$("$folder/${tool}_perf" -b 8 -e 256K -f 32 -n 2 -w 1 -c 1 "$@" 2>&1)" || { echo "$said"; return 1; }
  grep -q '^# Out of bounds values : 0 OK' <<<"$said" || { echo "$said"; return 1; }
  echo "$tool $*: passed"
}

# With both devices per rank, messages of 64 KiB and more are divided.
for tool in all_reduce all_gather reduce_scatter broadcast reduce alltoall gather scatter sendrecv; do
  perf "$tool" --ranks 2
done
perf all_reduce --ranks 4
perf alltoall --ranks 4

# With one device per rank, all packets pass from port to port.
before0="$(sent rxe0)" before1="$(sent rxe1)"
for rank in 0 1; do
  TUTTI_IB_HCA="=rxe$rank" TUTTI_RANK=$rank TUTTI_RANKS=2 TUTTI_ROOT=10.77.0.1:29500 \
    "$folder/all_reduce_perf" -b 1M -e 1M -n 1 -w 0 -c 1 >"/run/rank$rank" 2>&1 &
done
wait %1 || { cat /run/rank0; exit 1; }
wait %2 || { cat /run/rank1; exit 1; }
for packets in $(($(sent rxe0) - before0)) $(($(sent rxe1) - before1)); do
  echo "a device sent $packets packets of 4096 bytes at most, for 1 MiB"
  [ "$packets" -ge 128 ]  # At least half of the data, in two calls.
done
