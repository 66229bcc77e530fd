"""The compared libraries with their settings. Each runs in processes that sleep until they get a command."""

import os
import select
import shlex
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RANKS = 2
OVERSUBSCRIBED = 4  # Ranks of runs in which ranks share cores.
ALL = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all")
# Otherwise malloc returns the scratch of large calls to the kernel, and every call has page faults.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "8589934592",
               "MALLOC_TOP_PAD_": "67108864"}
NO_CMA = "--mca btl_vader_single_copy_mechanism none"
SEGMENTED = ("--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 5 "
             "--mca coll_tuned_allreduce_algorithm_segmentsize 262144")
WIDE = "--mca btl_vader_max_send_size 131072"
YIELD = "--mca mpi_yield_when_idle 1"  # Explicit, although Open MPI detects that ranks share cores.
OVER_UCX = "--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any"  # Without a NIC, Open MPI needs all three.
POSIX_ONLY = {"UCX_TLS": "posix,self"}


class Competitor:
    """A library with a setting. kind: default (as installed), tuned, tutti."""

    def __init__(self, name, kind, driver, launch, **limits):
        self.name = name
        self.kind = kind
        self.driver = driver
        self.launch = launch  # "openmpi ARGUMENTS", "mpich", or "each ARGUMENTS": one process per rank.
        self.collectives = limits.get("collectives", ALL)
        self.max_bytes = limits.get("max_bytes", 1 << 40)
        self.environment = limits.get("environment", {})
        self.timeout_s = 60
        self.processes = []
        self.log = None
        self.why = ""  # Reason why it is left out, or empty.
        self.failed = False  # It had a wrong result, or has ended.

    def takes(self, collective, size):
        return collective in self.collectives and size <= self.max_bytes

    def may_be_long(self, _size):
        """Returns true if calls may take so long that they need no warm-up."""
        return False

    def commands(self, build, folder, cores):
        """Returns the commands to start, with one core per rank."""
        how, _, arguments = self.launch.partition(" ")
        program = os.path.join(build, self.driver)
        listed = ",".join(map(str, cores))
        if how == "each":
            return [[program, folder, str(rank), str(len(cores)), str(core), *arguments.split()]
                    for rank, core in enumerate(cores)]
        launcher = {"openmpi": "mpirun.openmpi --bind-to none --oversubscribe", "mpich": "mpirun.mpich"}[how]
        if how == "openmpi" and os.geteuid() == 0:
            launcher += " --allow-run-as-root"
        return [[*launcher.split(), "-n", str(len(cores)), *shlex.split(arguments), program, folder, listed]]

    def settings(self, cores):
        """Returns name, environment and commands, so that a run can be repeated."""
        return {"name": self.name, "kind": self.kind, "environment": self.environment,
                "commands": [shlex.join(command).replace(ROOT + os.sep, "")
                             for command in self.commands("", "DIRECTORY", cores)]}

    def start(self, build, folder, cores):
        """Starts the processes. Returns false and prints the reason if they do not become ready."""
        os.makedirs(folder)
        for name in ("command", "answer", "id"):
            for rank in range(len(cores)):
                os.mkfifo(os.path.join(folder, f"{name}.{rank}"))
        # O_RDWR, so that open() does not block, and ids stay in the pipe until all ranks have read them.
        pipes = {name: [os.open(os.path.join(folder, f"{name}.{rank}"), os.O_RDWR) for rank in range(len(cores))]
                 for name in ("command", "answer", "id")}
        self.command_pipes, self.answer_pipes = pipes["command"], pipes["answer"]
        self.log = os.path.join(folder, "log")
        with open(self.log, "w") as log:
            for command in self.commands(build, folder, cores):
                self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                       env={**os.environ, **self.environment}))
        if all(answer == "ready" for answer in self.answers(30)):
            return True
        self.why = self.last_words() or "the driver did not start in time"
        print(f"# {self.name} is skipped: {self.why}")
        self.stop()
        return False

    def last_words(self):
        with open(self.log) as log:
            return " ".join(log.read().split())[-300:]

    def answers(self, seconds):
        """Returns a line from each rank; an empty one if the driver ended or took longer than `seconds`."""
        lines = []
        end = time.monotonic() + seconds
        for pipe in self.answer_pipes:
            text = b""
            while not text.endswith(b"\n") and time.monotonic() < end:
                if select.select([pipe], [], [], 0.2)[0]:
                    text += os.read(pipe, 1 << 16)
                elif any(process.poll() is not None for process in self.processes):
                    break
            lines.append(text.decode().strip() if text.endswith(b"\n") else "")
        return lines

    def run(self, collective, size, order):
        """Runs a command. Returns the times in us of the slowest rank, one per repetition, or None if it failed."""
        order = {"warmups": 0, "calls": 1, "repetitions": 1, "checked": 0, **order}
        numbers = " ".join(str(order[name]) for name in ("warmups", "calls", "repetitions", "checked"))
        order = f"run {collective} {size} {numbers}\n".encode()
        for pipe in self.command_pipes:
            os.write(pipe, order)
        ranks = []
        for line in self.answers(self.timeout_s):
            times, found, wrong = line.partition("wrong ")
            if not found:
                self.why = f"ended or hung in {collective} of {size} bytes. {self.last_words()}"
                print(f"# {self.name} {self.why} It is skipped from now on")
                self.failed = True
                self.collectives = ()
                self.stop()
                return None
            if wrong != "0":
                print(f"# {self.name}: {collective} of {size} bytes has {wrong} wrong elements")
                self.failed = True
                return None
            ranks.append([float(time_us) for time_us in times.split()])
        return [max(times) for times in zip(*ranks)]

    def stop(self):
        for pipe in self.command_pipes:
            os.write(pipe, b"quit\n")
        for process in self.processes:
            for insist in (process.terminate, process.kill):  # SIGTERM lets a launcher end its ranks.
                try:
                    process.wait(5)
                    break
                except subprocess.TimeoutExpired:
                    insist()
            process.wait()


def tuned_openmpi(name, arguments, environment=None, **limits):
    return Competitor(f"openmpi {name}", "tuned", "openmpi_driver", f"openmpi {arguments}",
                      environment={**KEEP_MEMORY, **(environment or {})}, **limits)


def competitors():
    plain_gloo = ("all_reduce", "all_gather", "broadcast", "all_to_all")
    return [
        Competitor("tutti", "tutti", "tutti_driver", "each host"),
        Competitor("tutti mapped", "tutti", "tutti_driver", "each mapped"),
        Competitor("openmpi", "default", "openmpi_driver", "openmpi"),
        tuned_openmpi("malloc", ""),
        tuned_openmpi("nocma+malloc", NO_CMA),
        tuned_openmpi("nocma+seg+malloc", f"{NO_CMA} {SEGMENTED}", collectives=("all_reduce",)),
        tuned_openmpi("nocma+wide+malloc", f"{NO_CMA} {WIDE}"),
        tuned_openmpi("nocma+seg+wide+malloc", f"{NO_CMA} {SEGMENTED} {WIDE}", collectives=("all_reduce",)),
        # Open MPI's collectives in shared memory, for small broadcasts, reduces and all-reduces.
        tuned_openmpi("nocma+sm+malloc", f"{NO_CMA} --mca coll_sm_priority 90", max_bytes=64 << 10),
        tuned_openmpi("ucx+malloc", OVER_UCX, environment={"UCX_TLS": "posix,cma,self"}),
        tuned_openmpi("ucx+posix+malloc", OVER_UCX, environment=POSIX_ONLY),
        Competitor("mpich", "default", "mpich_driver", "mpich"),
        Competitor("mpich malloc", "tuned", "mpich_driver", "mpich", environment=KEEP_MEMORY),
        Competitor("mpich posix+malloc", "tuned", "mpich_driver", "mpich", environment={**KEEP_MEMORY, **POSIX_ONLY}),
        Competitor("gloo", "default", "gloo_driver", "each plain", collectives=plain_gloo),
        Competitor("gloo busy", "tuned", "gloo_driver", "each busy", collectives=("all_reduce",),
                   max_bytes=16 << 20),
    ]


def oversubscribed():
    """Returns the competitors with two ranks per core. Speed depends on how ranks wait, so these settings are tuned."""
    everyone = [
        Competitor("tutti", "tutti", "tutti_driver", "each host"),
        Competitor("tutti mapped", "tutti", "tutti_driver", "each mapped"),
        Competitor("openmpi", "default", "openmpi_driver", "openmpi"),
        tuned_openmpi("yield+malloc", YIELD),
        tuned_openmpi("nocma+yield+malloc", f"{NO_CMA} {YIELD}"),
        tuned_openmpi("nocma+sm+yield+malloc", f"{NO_CMA} {YIELD} --mca coll_sm_priority 90", max_bytes=64 << 10),
        Competitor("mpich", "default", "mpich_driver", "mpich", max_bytes=1 << 20),  # Never yields.
        Competitor("mpich yield+posix+malloc", "tuned", "mpich_driver", "mpich", max_bytes=1 << 20,
                   environment={**KEEP_MEMORY, **POSIX_ONLY, "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}),
        Competitor("gloo", "default", "gloo_driver", "each plain"),
    ]
    for one in everyone:
        one.collectives = ("all_reduce",)
    return everyone
