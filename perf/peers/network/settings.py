"""Network settings and their sizes: loopback, hosts, and hosts with slow links."""

import dataclasses
import os
import re

KIB, MIB = 1 << 10, 1 << 20
LOOPBACK = "loopback"
# TCP over Ethernet: bytes of data in a segment, and bytes of its frame with TCP (time stamps), IPv4 and Ethernet
# headers.
BYTES_PER_SEGMENT, WIRE_BYTES_PER_SEGMENT = 1448, 1514


@dataclasses.dataclass(frozen=True)
class Setting:
    layout: str  # "loopback", or hosts x ranks per host, such as "2x1".
    rate: str  # Maximum rate at which each host sends, in units of tc; "" for no limit.
    sizes: tuple

    @property
    def name(self):
        return self.layout + (f"@{self.rate}" if self.rate else "")

    @property
    def hosts(self):
        return 1 if self.layout == LOOPBACK else int(self.layout.split("x")[0])

    @property
    def ranks(self):
        return 2 if self.layout == LOOPBACK else self.hosts * int(self.layout.split("x")[1])

    def host_of(self, rank):
        return rank * self.hosts // self.ranks

    @property
    def burst_bytes(self):
        """Bytes that a slow link sends at once after a pause: few, but more than the kernel passes to it at once."""
        return 128 * KIB if self.rate.endswith("gbit") else 32 * KIB

    def bits_per_us(self):
        """Rate of the link in bits per us; 0 without limit."""
        found = re.fullmatch(r"(\d+)(m|g)bit", self.rate)
        return int(found.group(1)) * {"m": 1, "g": 1000}[found.group(2)] if found else 0

    def min_from_host(self, size):
        """Minimum bytes that each host sends in an all-reduce, if all hosts send equally."""
        return 2 * (self.hosts - 1) * size // self.hosts

    def link_us(self, size):
        """Time of a slow link for these bytes and their headers, if its burst takes no time."""
        compressed_bytes = self.min_from_host(size) * WIRE_BYTES_PER_SEGMENT / BYTES_PER_SEGMENT
        return max(compressed_bytes - self.burst_bytes, 0) * 8 / self.bits_per_us()

    def moved_bytes(self, size):
        """Bytes that all ranks together send, with one rank per host."""
        return 2 * (self.ranks - 1) * size


ALL = (8, KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB)
SETTINGS = (
    Setting(LOOPBACK, "", ALL),
    Setting("2x1", "", ALL),
    Setting("4x1", "", (8, 64 * KIB, MIB, 16 * MIB)),
    Setting("2x2", "", (MIB, 16 * MIB, 64 * MIB)),
    Setting("2x1", "1gbit", (MIB, 16 * MIB, 64 * MIB)),
    Setting("2x2", "1gbit", (MIB, 16 * MIB)),
    Setting("2x1", "100mbit", (MIB, 4 * MIB)),
    Setting("2x2", "100mbit", (MIB, 4 * MIB)),
)


def named(name):
    return next(setting for setting in SETTINGS if setting.name == name)


class Stage:
    """Starts processes on the hosts of a setting."""

    SUBNET = "192.0.2"  # tests/multihost/hosts.sh chooses it.

    def __init__(self, setting, host_pids, cores):
        self.setting = setting
        self.host_pids = host_pids
        self.cores = [cores[rank % len(cores)] for rank in range(setting.ranks)]
        self.interface = "eth0" if host_pids else "lo"
        self.network = f"{self.SUBNET}.0/24" if host_pids else "127.0.0.0/8"

    @property
    def oversubscribed(self):
        return len(set(self.cores)) < len(self.cores)

    def address(self, rank):
        return f"{self.SUBNET}.{self.setting.host_of(rank) + 1}" if self.host_pids else "127.0.0.1"

    def on(self, rank, command):
        if not self.host_pids:
            return command
        pid = self.host_pids[self.setting.host_of(rank)]
        # A killed nsenter does not end its child, but PDEATHSIG does.
        return ["nsenter", "--target", str(pid), "--net", "--uts", "--ipc", "--mount", "--pid", "setpriv", "--pdeathsig",
                "KILL", *command]

    def launcher(self, mpi):
        """Returns the command of an MPI launcher, without the number of ranks."""
        agent = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent.sh")
        each = self.setting.ranks // self.setting.hosts
        hosts = [f"host{host}:{each}" for host in range(self.setting.hosts)]
        if mpi == "mpich":
            there = ["-launcher", "rsh", "-launcher-exec", agent, "-hosts", ",".join(hosts), "-iface", "switch"]
            return ["mpiexec.mpich", *(there if self.host_pids else ["-localhost", "127.0.0.1"])]
        there = ["--host", ",".join(hosts), "--mca", "plm_rsh_agent", agent] if self.host_pids else ["--oversubscribe"]
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return ["mpirun.openmpi", *root, "--bind-to", "none", *there, "--mca", "oob_tcp_if_include", self.network,
                "--mca", "btl_tcp_if_include", self.network]
