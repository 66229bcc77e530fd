"""Measures PyTorch and nccl-tests on the GPU of this machine, with their own NCCL and with Tutti's libnccl.so.2."""

import os
import shutil
import subprocess
import sys

import mps

HERE = os.path.dirname(os.path.abspath(__file__))
# Load all kernels at start: in a process with several ranks, loading a kernel may wait for ranks that wait for each other.
LOADED = {"CUDA_MODULE_LOADING": "EAGER"}


def measure(run, found):
    """Adds the results of each part to `found`, by name. Skips parts whose programs are missing, with a message."""
    ours = os.path.join(run.options.build, "lib", "libnccl.so.2")
    side_by_side(run, found, ours)
    if run.options.skip_pytorch:
        run.skip("PyTorch", "--skip-pytorch")
    elif not has_torch(limit_s=max(min(run.left_s(), 60), 1)):
        run.skip("PyTorch", "python3 has no torch with CUDA")
    else:
        one_rank(run, found, ours)
        ddp_steps(run, found, ours)
    nccl_tests(run, ours)


def has_torch(limit_s):
    command = ["python3", "-c", "import torch; assert torch.cuda.is_available()"]
    try:
        return subprocess.run(command, capture_output=True, timeout=limit_s).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def preloaded(library):
    return {"LD_PRELOAD": library} if library else {}


def keep(run, found, name, command, **how):
    """Runs a part and adds its results to `found`. Returns true if there are results. The last argument of the command is the
    path of the results."""
    path = run.fresh("client.json")
    if not run.do(name, [*command, path], **how):
        return False
    results = run.results(name, path, how.get("may_fail", False))
    if results is not None:
        found[name] = results
    return results is not None


def one_rank(run, found, ours):
    """Measures one rank, the only case that NCCL supports on one GPU by default."""
    command = ["python3", os.path.join(HERE, "torch_one_rank.py")]
    for name, library in (("NCCL of PyTorch, 1 rank", None), ("ours in PyTorch, 1 rank", ours)):
        keep(run, found, name, command, environment=preloaded(library))


def ddp_steps(run, found, ours):
    """Measures the same training steps with 1, 2 and 4 ranks that share the GPU. Stops at a failure, since hangs take long."""
    alone = "steps of 1 rank"
    with mps.running(run) as environment:
        if environment is None:
            return run.skip("DDP and FSDP steps", f"{mps.CONTROL} is not installed or does not start")
        for kind, counts, options in (("DDP", (1, 2, 4), []), ("FSDP", (2, 4), ["--fsdp"])):
            for ranks in counts:
                name = alone if ranks == 1 else f"{kind} steps of {ranks} ranks"
                command = ["python3", os.path.join(HERE, "ddp_step.py"), "--ranks", str(ranks), *options, "--out"]
                if not keep(run, found, name, command, environment={**preloaded(ours), **environment}):
                    break
                if alone in found:
                    compare_losses(run, name, found[alone]["losses"], found[name]["losses"])


def compare_losses(run, name, wanted, losses):
    furthest = furthest_apart(wanted, losses)
    if furthest > 1e-4:
        run.fail(name, f"failed: losses differ by up to {furthest:.2g} from the losses of one rank")


def side_by_side(run, found, ours):
    """Measures Tutti and NCCL in DEPS/nccl with the same program. A variable allows NCCL's ranks to share a GPU."""
    by_nccl_bench(run, found, "ours", ours)  # Runs first, since NCCL may hang until the timeout.
    theirs = os.path.join(run.options.deps, "nccl", "lib", "libnccl.so.2")
    if not os.path.exists(theirs):
        return run.skip("NCCL by nccl_bench", f"{theirs} does not exist")
    by_nccl_bench(run, found, "NCCL", theirs)


def by_nccl_bench(run, found, who, library):
    program = os.path.join(run.options.build, "perf", "gpu", "nccl_bench")
    for ranks in (2, 4, 8):
        # NCCL supports two ranks per GPU; more fit only with fewer thread blocks than its default.
        environment = {**LOADED, "NCCL_MULTI_RANK_GPU_ENABLE": "1", **({"NCCL_MAX_CTAS": "8"} if ranks > 2 else {})}
        if not keep(run, found, f"{who} by nccl_bench, {ranks} ranks", [program, library, str(ranks)], environment=environment,
                    may_fail=who == "NCCL"):
            break  # More ranks would fail again, and hangs take long.


def furthest_apart(wanted, found):
    """Returns the maximum relative difference. It is not 0, since gradients are summed in another order."""
    if len(wanted) != len(found):
        return float("inf")
    return max(abs(a - b) / max(abs(a), 1e-9) for a, b in zip(wanted, found))


def nccl_tests(run, ours):
    """Runs nccl-tests from DEPS/nccl-tests: one process with one GPU, and two MPI processes that share the GPU."""
    program = os.path.join(run.options.deps, "nccl-tests", "build", "all_reduce_perf")
    if not os.path.exists(program):
        return run.skip("nccl-tests", f"{program} does not exist")
    sizes = ["-b", "8", "-e", "64M", "-f", "64", "-n", "10"]
    environment = {**preloaded(ours), "NCCL_TESTS_DEVICE": "0"}
    run.do("nccl-tests, 1 rank", [program, "-g", "1", *sizes], environment=environment)
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        return run.skip("nccl-tests, 2 processes", "mpirun is not installed")
    run.do("nccl-tests, 2 processes", [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2", program, "-g", "1", *sizes],
           environment={**environment, **LOADED})


if __name__ == "__main__":
    sys.exit("clients.py is part of run.py")
