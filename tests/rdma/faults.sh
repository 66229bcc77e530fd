# Runs in a guest: a fault during all-reduces of two ranks over RDMA, each with its own device. Each surviving rank must exit
# soon by itself and name the lost rank; one of them must name the fault. $0 killed|cut|unplugged ALL_REDUCE_PERF
set -euo pipefail
fault="$1" tool="$2" bound_s=20  # The limits are 1 s and 4 s; emulation is slow.
export TUTTI_TRANSPORT=verbs TUTTI_TIMEOUT_MS=60000 TUTTI_INIT_TIMEOUT_MS=60000

fail() {
  echo "FAILED: $1" >&2
  tail -n 5 /run/errors.* >&2
  exit 1
}

# Rank 0 prints a row for each of many sizes, which together take longer than the test.
mkfifo /run/shown
exec {shown}<>/run/shown
for rank in 0 1; do
  TUTTI_IB_HCA="=rxe$rank" TUTTI_RANK=$rank TUTTI_RANKS=2 TUTTI_ROOT=10.77.0.1:29500 \
    "$tool" -b 4K -e 1M -i 4 -n 20 -c 0 >&"$shown" 2>"/run/errors.$rank" &
  process[rank]=$!
done
row=""
until grep -qm 1 '^ *[1-9]' <<<"$row"; do read -rt 60 row <&"$shown" || fail "nothing was measured"; done

began=$SECONDS
case "$fault" in
  # Operations are the measured calls, and calls of the tool itself.
  killed) kill -KILL "${process[1]}" && survivors=(0) wanted='all_(reduce|gather)\(' ;;
  # TCP between the two ranks uses another path, and is not affected.
  cut) bridge link set dev switch1 state disabled && survivors=(0 1) wanted='rxe[01] port 1, gid 1 .*retry' ;;
  unplugged) ip link set dev r1 down && survivors=(0 1) wanted='rxe[01] port 1, gid 1 ' ;;
  *) fail "unknown fault '$fault'" ;;
esac
for rank in "${survivors[@]}"; do
  status=0
  timeout $bound_s tail --pid="${process[rank]}" -f /dev/null || fail "rank $rank still runs $bound_s s after the fault"
  wait "${process[rank]}" || status=$?
  [ $status -eq 2 ] || fail "rank $rank ended with status $status instead of 2, an error's"
  echo "rank $rank, after $((SECONDS - began)) s: $(tail -n 1 "/run/errors.$rank")"
  grep -q "rank $((1 - rank)) died or is out of reach" "/run/errors.$rank" || fail "rank $rank does not report the lost rank"
done
grep -qE "$wanted" "${survivors[@]/#//run/errors.}" || fail "no error reports the fault: $wanted"
