"""A rank dies in the backward pass of a training: the others raise an error that names it, and go on without it."""

import datetime
import multiprocessing
import os
import signal
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import tutti.torch  # noqa: F401  Registers the backend.

RANKS, VICTIM, FATAL_STEP = 3, 2, 3
LIMIT_S = 30  # Turns a hang into a failure.


def join(folder, name, rank, ranks):
    dist.init_process_group("tutti", init_method=f"file://{folder}/{name}", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=LIMIT_S))


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))


def die_in_backward(model, path):
    def die(gradient):
        with open(path, "w") as file:
            file.write(str(time.monotonic()))
        os.kill(os.getpid(), signal.SIGKILL)

    next(model.parameters()).register_hook(die)


def train(model, optimizer, rank, step):
    optimizer.zero_grad()
    generator = torch.Generator().manual_seed(step * 10 + rank)
    model(torch.randn(16, 10, generator=generator)).square().mean().backward()
    optimizer.step()


def run_rank(rank, folder, results):
    torch.set_num_threads(1)
    join(folder, "first", rank, RANKS)
    parallel = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    for step in range(FATAL_STEP):
        train(parallel, optimizer, rank, step)
    last = {name: tensor.clone() for name, tensor in parallel.module.state_dict().items()}
    dist.barrier()
    if rank == VICTIM:
        die_in_backward(parallel, os.path.join(folder, "death"))
    try:
        train(parallel, optimizer, rank, FATAL_STEP)
        error = ""
    except RuntimeError as caught:
        error = str(caught)
    noticed = time.monotonic()
    dist.destroy_process_group()
    join(folder, "second", rank, RANKS - 1)  # The victim is the last rank, so that the others keep their numbers.
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
    results.put((rank, error, noticed, equal))


def main():
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        results = context.Queue()
        ranks = [context.Process(target=run_rank, args=(rank, folder, results)) for rank in range(RANKS)]
        for process in ranks:
            process.start()
        reports = [results.get(timeout=4 * LIMIT_S) for _ in range(RANKS - 1)]
        for process in ranks:
            process.join()
        with open(os.path.join(folder, "death")) as file:
            death = float(file.read())
    assert ranks[VICTIM].exitcode == -signal.SIGKILL, ranks[VICTIM].exitcode
    for rank, error, noticed, equal in reports:
        print(f"rank {rank} noticed after {noticed - death:.3f} s: {error.splitlines()[0] if error else 'no error'}")
        assert f"rank {VICTIM}" in error, error
        assert noticed - death < LIMIT_S / 3, noticed - death
        assert equal, "the survivors have different parameters"
    return 0


if __name__ == "__main__":
    sys.exit(main())
