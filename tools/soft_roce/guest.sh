# Runs in the guest, on the host's root file system: creates the devices, runs the command, reports its exit status, and waits
# until the host kills the guest. `settings` defines devices, folder, command, and `mark`, which ends each output stream of the
# command.
source /run/settings
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
exec {status}>/dev/vport0p1 {out}>/dev/vport0p2 {err}>/dev/vport0p3  # Each port can be opened only once.
ulimit -l unlimited
echo soft-roce >/proc/sys/kernel/hostname

# Prints `ip` commands that create ports r0, r1, ... of one switch, each with an address; each gets a device rxe0, rxe1, ...
# All addresses belong to this machine, and packets to a local address would not pass a port, where rxe is attached. So
# packets from a port use a routing table of that port before the local table; addresses of other ports are remote there.
# Namespaces cannot replace this, because rxe's socket is in the initial namespace (Linux 6.1).
configure() {
  local port
  echo link set dev lo up
  echo link add dev switch type bridge mcast_snooping 0
  echo link set dev switch up
  for ((port = 0; port < devices; port++)); do
    echo link add dev "r$port" mtu 4200 type veth peer name "switch$port" mtu 4200  # RDMA MTU of 4096 bytes plus headers.
    echo link set dev "switch$port" master switch up
    echo link set dev "r$port" up
    echo address add "10.77.0.$((port + 1))/24" dev "r$port"
    echo rule add priority 10 oif "r$port" table $((100 + port))
    echo route add 10.77.0.0/24 dev "r$port" src "10.77.0.$((port + 1))" table $((100 + port))
    echo route add local "10.77.0.$((port + 1))" dev "r$port" table $((100 + port))
  done
  echo rule add priority 20 table local
  echo rule delete priority 0
}
for group in all default; do
  echo 0 >/proc/sys/net/ipv4/conf/$group/rp_filter
  echo 1 >/proc/sys/net/ipv4/conf/$group/accept_local  # Accept packets from the address of another local port.
  echo 1 >/proc/sys/net/ipv4/conf/$group/arp_ignore    # Each port answers ARP requests for its own address only.
  echo 0 >/proc/sys/net/ipv6/conf/$group/accept_dad    # IPv6 addresses, and therefore GIDs, are usable at once.
done
configure | ip -batch - || echo "creating the ports failed" >/dev/console
for ((port = 0; port < devices; port++)); do
  rdma link add "rxe$port" type rxe netdev "r$port" || echo "creating rxe$port failed" >/dev/console
done

echo begin >&"$status"
(cd "$folder" && exec "${command[@]}") </dev/null >&"$out" 2>&"$err" {status}>&- {out}>&- {err}>&-
code=$?
printf %s "$mark" >&"$out"
printf %s "$mark" >&"$err"
echo "end $code" >&"$status"
exec sleep infinity
