"""The compared libraries over TCP, with their settings. Ranks start on the hosts of the network setting."""

import os
import shlex

import competitors
from competitors import KEEP_MEMORY, SEGMENTED

MIB = 1 << 20
TUTTI = "tutti"  # Competitor of every setting. Other variants of Tutti are named after their transport or algorithm.
ONLY_TCP = "--mca pml ob1 --mca btl tcp,self"
TCP_BETWEEN_HOSTS = "--mca pml ob1 --mca btl vader,tcp,self"
OVER_UCX = "--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any"  # Without a NIC, Open MPI needs all three.
YIELDING = "--mca mpi_yield_when_idle 1"
HUGE = 64 * MIB  # Maximum size of competitors that cannot win, to limit memory.


class Competitor(competitors.Competitor):
    """A library with a setting on a stage. kind: tutti, default, tuned."""

    def __init__(self, stage, name, kind, launch, **limits):
        program = limits.pop("driver", launch.split()[0] + "_driver")
        super().__init__(name, kind, program, launch, collectives=("all_reduce",), **limits)
        self.stage = stage
        self.min_bytes = limits.get("min_bytes", 0)

    def takes(self, collective, size):
        return super().takes(collective, size) and size >= self.min_bytes

    def may_be_long(self, size):
        return self.stage.setting.rate != "" and size >= MIB

    def commands(self, build, folder, cores):
        how, _, arguments = self.launch.partition(" ")
        program = os.path.join(build, self.driver)
        if how in ("openmpi", "mpich"):
            return [[*self.stage.launcher(how), "-n", str(len(cores)), *shlex.split(arguments), program, folder,
                     ",".join(map(str, cores))]]
        pinned = "unpinned" not in self.name
        return [self.stage.on(rank, [program, folder, str(rank), str(len(cores)), str(core if pinned else -1),
                                     *arguments.format(address=self.stage.address(rank)).split()])
                for rank, core in enumerate(cores)]


def ours(stage):
    """Returns the variants of Tutti. Add a line for each new transport."""
    setting = stage.setting
    only_tcp = {"TUTTI_IB_DISABLE": "1"}  # RDMA devices of the machine are not on the stage's network.
    make = lambda name, **environment: Competitor(stage, name, "tutti", "tutti host",
                                                  environment={**only_tcp, **environment})
    if setting.ranks > setting.hosts > 1:  # Ranks of a host share memory.
        return [make(TUTTI), make("tutti ring", TUTTI_ALGORITHM="ring"),
                make("tutti hierarchical", TUTTI_ALGORITHM="hierarchical"),
                Competitor(stage, "tutti phases", "tutti", f"tutti phases {setting.ranks // setting.hosts}",
                           environment=only_tcp, min_bytes=MIB)]
    return [make(TUTTI, TUTTI_TRANSPORT="tcp")]


def peers(stage):
    setting = stage.setting
    shared = setting.ranks > setting.hosts > 1
    ucx = {"UCX_TLS": "tcp,posix,self" if shared else "tcp,self",
           "UCX_NET_DEVICES": stage.interface}
    tcp = TCP_BETWEEN_HOSTS if shared else ONLY_TCP
    yielding = f" {YIELDING}" if stage.oversubscribed else ""
    make = lambda *arguments, **limits: Competitor(stage, *arguments, **limits)
    found = [
        make("openmpi tcp", "default", f"openmpi {tcp}"),
        make("openmpi tcp malloc", "tuned", f"openmpi {tcp}{yielding}", environment=KEEP_MEMORY),
        make("openmpi ucx", "default", f"openmpi {OVER_UCX}", environment=ucx, max_bytes=HUGE),
        make("openmpi ucx malloc", "tuned", f"openmpi {OVER_UCX}{yielding}", environment={**ucx, **KEEP_MEMORY},
             max_bytes=HUGE),
        make("mpich", "default", "mpich", environment=ucx),
        make("mpich malloc", "tuned", "mpich", environment={**ucx, **KEEP_MEMORY}),
        make("gloo", "default", "gloo plain {address}"),
    ]
    if setting.rate:
        return found
    return found + [
        make("openmpi tcp seg+malloc", "tuned", f"openmpi {tcp} {SEGMENTED}{yielding}", environment=KEEP_MEMORY,
             min_bytes=MIB, max_bytes=HUGE),
        # Not pinned: on a pinned core, its thread may notice received data only at the next tick of the scheduler.
        make("gloo unpinned", "default", "gloo plain {address}", max_bytes=16 * MIB),
        make("gloo busy", "tuned", "gloo busy {address}", max_bytes=16 * MIB),
    ]


def competitors_on(stage):
    return ours(stage) + peers(stage)
