"""Measures the backend against Gloo, in interleaved runs of the same processes, and prints minima.

    bench.py [--ranks N] [--rounds N]
"""

import argparse
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SIZES = (8, 1 << 10, 1 << 16, 1 << 20, 1 << 24)
BACKENDS = ("gloo", "tutti")


def time_of(call, repetitions):
    dist.barrier()
    start = time.perf_counter()
    for _ in range(repetitions):
        call()
    return (time.perf_counter() - start) / repetitions


def all_reduce_calls(tensor, group):
    return {"blocking": lambda: dist.all_reduce(tensor, group=group),
            "async + wait": lambda: dist.all_reduce(tensor, group=group, async_op=True).wait()}


def measure_all_reduce(groups, rounds, report):
    for size in SIZES:
        tensor = torch.zeros(size // 4)
        repetitions = max(3, min(200, (1 << 22) // size))
        best = {}
        for _ in range(rounds):
            for backend, group in groups.items():
                for way, call in all_reduce_calls(tensor, group).items():
                    seconds = time_of(call, repetitions)
                    best[backend, way] = min(seconds, best.get((backend, way), seconds))
        cells = [best[backend, way] * 1e6 for way in ("blocking", "async + wait") for backend in BACKENDS]
        report("| {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |".format(size, *cells))


def training_step(group, batch):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(),
                          nn.Linear(2048, 512))
    if group is not None:
        model = DistributedDataParallel(model, process_group=group)
    inputs = torch.randn(batch, 512)

    def step():
        model.zero_grad()
        model(inputs).square().mean().backward()

    return step


def measure_training(groups, rounds, report):
    for batch in (4, 64):
        steps = {"none": training_step(None, batch), **{name: training_step(group, batch) for name, group in groups.items()}}
        best = {}
        for _ in range(rounds):
            for name, step in steps.items():
                step()
                seconds = time_of(step, 3)
                best[name] = min(seconds, best.get(name, seconds))
        report("| {} | {:.1f} | {:.1f} | {:.1f} |".format(batch, *(best[name] * 1e3 for name in ("none", *BACKENDS))))


def run_rank(rank, arguments, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=arguments.ranks)
    groups = {backend: dist.new_group(backend=backend) for backend in BACKENDS}

    def report(line):
        if rank == 0:
            print(line, flush=True)

    import tutti.torch

    report(f"PyTorch {torch.__version__}, {tutti.torch.path()} path, {arguments.ranks} ranks, minimum of {arguments.rounds} rounds\n")
    report("| all_reduce, bytes | Gloo, us | Tutti, us | Gloo, async + wait, us | Tutti, async + wait, us |\n|---|---|---|---|---|")
    measure_all_reduce(groups, arguments.rounds, report)
    report("\n| DDP step (11.5 M parameters), batch | no communication, ms | Gloo, ms | Tutti, ms |\n|---|---|---|---|")
    measure_training(groups, arguments.rounds, report)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        context = mp.get_context("fork")
        ranks = [context.Process(target=run_rank, args=(rank, arguments, folder)) for rank in range(arguments.ranks)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
    return max(process.exitcode or 0 for process in ranks)


if __name__ == "__main__":
    sys.exit(main())
