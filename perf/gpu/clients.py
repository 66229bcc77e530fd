"""Programs of others on the GPU of this machine: with the NCCL that they brought, and with our libnccl.so.2."""

import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# While ranks wait for each other on the GPU, no kernel of the program should have to be loaded: that waits for the GPU.
LOADED = {"CUDA_MODULE_LOADING": "EAGER"}


def measure(run, found):
    """Puts what each part found into `found`, by name; parts whose programs are missing are left out, with a sentence."""
    ours = os.path.join(run.options.build, "lib", "libnccl.so.2")
    side_by_side(run, found, ours)
    if not has_torch():
        run.skip("PyTorch", "there is no torch with CUDA in python3")
    else:
        one_rank(run, found, ours)
        ddp_steps(run, found, ours)
    nccl_tests(run, ours)


def has_torch(python="python3"):
    command = [python, "-c", "import torch; assert torch.cuda.is_available()"]
    try:
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def preloaded(library):
    return {"LD_PRELOAD": library} if library else {}


def one_rank(run, found, ours):
    """What NCCL itself can do on one GPU: one rank."""
    for name, library in (("NCCL of PyTorch, 1 rank", None), ("ours in PyTorch, 1 rank", ours)):
        path = os.path.join(run.folder, "one_rank.json")
        if run.do(name, ["python3", os.path.join(HERE, "torch_one_rank.py"), path], environment=preloaded(library)):
            found[name] = read_json(path)


def ddp_steps(run, found, ours):
    """The same steps by 1, 2 and 4 ranks that share the GPU."""
    alone = "steps of 1 rank"
    for name, *arguments in ((alone, "--ranks", "1"), ("DDP steps of 2 ranks", "--ranks", "2"),
                             ("DDP steps of 4 ranks", "--ranks", "4"), ("FSDP steps of 2 ranks", "--ranks", "2", "--fsdp"),
                             ("FSDP steps of 4 ranks", "--ranks", "4", "--fsdp")):
        path = os.path.join(run.folder, "steps.json")
        command = ["python3", os.path.join(HERE, "ddp_step.py"), *arguments, "--out", path]
        if not run.do(name, command, environment={**preloaded(ours), **LOADED}):
            continue
        found[name] = read_json(path)
        furthest = furthest_apart(found[alone]["losses"], found[name]["losses"]) if alone in found else 0
        if furthest > 1e-4:
            run.fail(name, f"failed: losses are up to {furthest:.2g} from those of one rank")


def side_by_side(run, found, ours):
    """NCCL 2.30 in DEPS/nccl, which lets ranks of one process share a GPU when it is told to, and ours, by one program."""
    theirs = os.path.join(run.options.deps, "nccl", "lib", "libnccl.so.2")
    if not os.path.exists(theirs):
        return run.skip("NCCL beside ours", f"there is no {theirs}")
    program = os.path.join(run.options.build, "perf", "gpu", "nccl_bench")
    for ranks in (2, 4, 8):
        for who, library in (("NCCL", theirs), ("ours", ours)):
            name = f"{who} by nccl_bench, {ranks} ranks"
            path = os.path.join(run.folder, "nccl_bench.json")
            # It promises room for two ranks; blocks fewer than it would take make room for more.
            environment = {**LOADED, "NCCL_MULTI_RANK_GPU_ENABLE": "1", **({"NCCL_MAX_CTAS": "8"} if ranks > 2 else {})}
            if run.do(name, [program, library, str(ranks), path], environment=environment, may_fail=who == "NCCL"):
                found[name] = read_json(path)


def furthest_apart(wanted, found):
    """Relative; sums of gradients are in another order, so not 0."""
    if len(wanted) != len(found):
        return float("inf")
    return max(abs(a - b) / max(abs(a), 1e-9) for a, b in zip(wanted, found))


def nccl_tests(run, ours):
    """A build of nccl-tests in DEPS/nccl-tests: one process of one GPU, and processes that share it under MPI."""
    program = os.path.join(run.options.deps, "nccl-tests", "build", "all_reduce_perf")
    if not os.path.exists(program):
        return run.skip("nccl-tests", f"there is no {program}")
    sizes = ["-b", "8", "-e", "64M", "-f", "64", "-n", "10"]
    environment = {**preloaded(ours), "NCCL_TESTS_DEVICE": "0"}
    run.do("nccl-tests, 1 rank", [program, "-g", "1", *sizes], environment=environment)
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        return run.skip("nccl-tests, 2 processes", "there is no mpirun")
    run.do("nccl-tests, 2 processes", [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2", program, "-g", "1", *sizes],
           environment={**environment, **LOADED})


def read_json(path):
    with open(path) as file:
        return json.load(file)


if __name__ == "__main__":
    sys.exit("clients.py is part of run.py")
