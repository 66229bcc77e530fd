"""A rank dies in the backward pass of a training: the others raise an error that names it, and go on without it.

Also: a program that leaves a group open ends after its callbacks.
"""

import contextlib
import datetime
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile

import torch
import torch._dynamo  # noqa: F401  Models import it when they are made, which takes seconds in each rank.
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import tutti.torch

RANKS, VICTIM, FATAL_STEP = 3, 2, 3
LIMIT_S = 30  # Turns a hang into a failure.
HAS_SHRINK = hasattr(dist, "shrink_group") and hasattr(dist.Backend, "_ensure_backend_registered")  # PyTorch 2.14.


def join(folder, name, rank, ranks):
    dist.init_process_group("tutti", init_method=f"file://{folder}/{name}", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=LIMIT_S))


def go_on_by_joining(folder, rank):
    dist.destroy_process_group()
    join(folder, "second", rank, RANKS - 1)  # The victim is the last rank, so that the others keep their numbers.


def go_on_by_shrinking(folder, rank):
    dist.shrink_group([VICTIM])
    assert (dist.get_rank(), dist.get_world_size()) == (rank, RANKS - 1)


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))


def die_in_backward(model):
    next(model.parameters()).register_hook(lambda gradient: os.kill(os.getpid(), signal.SIGKILL))


def train(model, optimizer, rank, step):
    optimizer.zero_grad()
    generator = torch.Generator().manual_seed(step * 10 + rank)
    model(torch.randn(16, 10, generator=generator)).square().mean().backward()
    optimizer.step()


def text_of_failure(call):
    try:
        call()
    except RuntimeError as error:  # Errors that pass through autograd keep their text, but not their class.
        return str(error)
    return ""


def run_rank(rank, folder, path, go_on, results):
    torch.set_num_threads(1)
    os.environ["TUTTI_PYTORCH_PATH"] = path
    join(folder, "first", rank, RANKS)
    parallel = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    for step in range(FATAL_STEP):
        train(parallel, optimizer, rank, step)
    last = {name: tensor.clone() for name, tensor in parallel.module.state_dict().items()}
    dist.barrier()
    if rank == VICTIM:
        die_in_backward(parallel)
    errors = [text_of_failure(lambda: train(parallel, optimizer, rank, FATAL_STEP))]
    try:
        dist.all_reduce(torch.ones(3))
    except tutti.RemoteError as error:
        errors.append(str(error))
        assert (error.operation, error.rank, error.peer) == ("all_reduce", rank, VICTIM), vars(error)
    go_on(folder, rank)
    model = network()
    model.load_state_dict(last)
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    for step in range(FATAL_STEP, FATAL_STEP + 3):
        train(parallel, optimizer, rank, step)
    flat = torch.cat([p.detach().flatten() for p in parallel.parameters()])
    everything = [torch.zeros_like(flat) for _ in range(RANKS - 1)]
    dist.all_gather(everything, flat)
    equal = all(torch.equal(flat, other) for other in everything)
    dist.destroy_process_group()
    results.put((rank, errors, equal))


def check(path, go_on):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ended:
        ranks = [context.Process(target=run_rank, args=(rank, folder, path, go_on, results)) for rank in range(RANKS)]
        for process in ranks:
            process.start()
            ended.callback(process.kill)
        reports = [results.get(timeout=2 * LIMIT_S) for _ in range(RANKS - 1)]
        for process in ranks:
            process.join()
    assert ranks[VICTIM].exitcode == -signal.SIGKILL, ranks[VICTIM].exitcode
    for rank, errors, equal in reports:
        print(f"{path}, {go_on.__name__}, rank {rank}: {errors[0].splitlines()[0] if errors[0] else 'no error'}")
        assert len(errors) == 2, errors
        for error in errors:
            assert f"rank {VICTIM}" in error and "timeout" not in error, error
        assert equal, "the survivors have different parameters"


ENDING = """
import sys, torch, torch.distributed as dist, tutti.torch
dist.init_process_group("tutti", init_method="file://" + sys.argv[1], rank=0, world_size=1)
received = dist.irecv(torch.zeros(3), 0).get_future()
received.add_done_callback(lambda future: print("the receive has ended", flush=True))
dist.all_reduce(torch.ones(3), async_op=True).get_future().add_done_callback(lambda future: print("reduced", flush=True))
"""


def check_end(path):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([sys.executable, "-B", "-c", ENDING, os.path.join(folder, "store")], capture_output=True, text=True,
                             env={**os.environ, "TUTTI_PYTORCH_PATH": path}, timeout=2 * LIMIT_S)
    assert (run.returncode, sorted(run.stdout.splitlines())) == (0, ["reduced", "the receive has ended"]), run


def main():
    for path in ("cpp", "python") if tutti.torch.path() == "C++" else ("python",):
        check_end(path)
        for go_on in (go_on_by_joining, go_on_by_shrinking) if HAS_SHRINK else (go_on_by_joining,):
            check(path, go_on)
    return 0


if __name__ == "__main__":
    sys.exit(main())
