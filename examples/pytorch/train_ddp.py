#!/usr/bin/env python3
"""Trains a small network with data parallelism on CPUs. A template: replace make_data() and make_model().

    torchrun --nproc-per-node 2 examples/pytorch/train_ddp.py
    torchrun --nproc-per-node 2 examples/pytorch/train_ddp.py --checkpoint model.pt     # Again: resumes from the file.

It shows seeds, sharded data, mixed precision, gradient accumulation, overlap of communication with computation, a checkpoint
that rank 0 writes, and metrics of each rank and their average. Runs of the same program on the same machine with equal options and
equally many ranks have equal results, also if one of them was interrupted and resumed, except with --compress.
"""

import argparse
import contextlib
import os
import random
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="tutti", help="tutti (default) or gloo")
    parser.add_argument("--epochs", type=int, default=3, help="number of epochs, counted from the first run (3)")
    parser.add_argument("--batch", type=int, default=32, help="samples per rank and step (32)")
    parser.add_argument("--accumulate", type=int, default=2, help="steps whose gradients are averaged before an update (2)")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help="type of the forward pass")
    parser.add_argument("--compress", default="", help="compression of gradients, such as bf16 or int8; needs tutti")
    parser.add_argument("--bucket", type=float, default=25, help="size of a bucket of gradients, in MiB (25)")
    parser.add_argument("--seed", type=int, default=1, help="seed of data, weights and order (1)")
    parser.add_argument("--checkpoint", default="", help="file that rank 0 writes after each epoch; exists: resume from it")
    return parser.parse_args()


def seed_everything(seed):
    """Seeds the generators of Python and PyTorch."""
    random.seed(seed)
    torch.manual_seed(seed)


def make_data(seed):
    """Returns a data set that all ranks compute: points, and as label the distance of each from the origin in steps of 1/2."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(4096, 16, generator=generator)
    return TensorDataset(points, (points.norm(dim=1) * 2).long().clamp(0, 9))


def make_model():
    return nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


def average(value):
    """Returns the average of a number over all ranks."""
    tensor = torch.tensor(float(value), dtype=torch.float64)
    dist.all_reduce(tensor)
    return tensor.item() / dist.get_world_size()


def save(path, model, optimizer, epoch):
    """Writes a checkpoint on rank 0. The file appears complete or not at all."""
    if dist.get_rank() == 0:
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(state, path + ".new")
        os.replace(path + ".new", path)
    dist.barrier()


def resume(path, model, optimizer):
    """Loads the checkpoint, if there is one, and returns the number of the next epoch."""
    exists = [os.path.exists(path) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(exists, src=0)  # Rank 0 decides, so that all ranks resume or none does.
    if not exists[0]:
        return 0
    states = [torch.load(path, weights_only=True) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(states, src=0)  # Other hosts need not see the file.
    model.module.load_state_dict(states[0]["model"])
    optimizer.load_state_dict(states[0]["optimizer"])
    return states[0]["epoch"] + 1


def train_epoch(model, optimizer, loader, arguments):
    """Returns the average loss of this rank."""
    total, steps = 0.0, 0
    optimizer.zero_grad(set_to_none=True)
    for step, (points, labels) in enumerate(loader):
        first = step - step % arguments.accumulate
        accumulated = min(arguments.accumulate, len(loader) - first)  # Fewer at the end of an epoch.
        last = step + 1 == first + accumulated
        # Gradients are exchanged in the last of the accumulated steps only, bucket by bucket during its backward pass.
        with contextlib.nullcontext() if last else model.no_sync():
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=arguments.precision == "bfloat16"):
                loss = nn.functional.cross_entropy(model(points), labels)
            (loss / accumulated).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        total, steps = total + loss.item(), steps + 1
    return total / steps


def train(arguments):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    seed_everything(arguments.seed)  # All ranks start with the same weights.
    data = make_data(arguments.seed)
    sampler = DistributedSampler(data, seed=arguments.seed)
    loader = DataLoader(data, batch_size=arguments.batch, sampler=sampler)
    model = DistributedDataParallel(make_model(), bucket_cap_mb=arguments.bucket, gradient_as_bucket_view=True)
    if arguments.compress:
        import tutti.torch

        model.register_comm_hook(None, tutti.torch.compress_hook(arguments.compress))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start = resume(arguments.checkpoint, model, optimizer) if arguments.checkpoint else 0
    for epoch in range(start, arguments.epochs):
        sampler.set_epoch(epoch)  # Another order in each epoch.
        seed_everything(arguments.seed * 1000003 + epoch * ranks + rank)  # Dropout differs between ranks; a resume repeats it.
        began = time.perf_counter()
        loss = train_epoch(model, optimizer, loader, arguments)
        speed = len(sampler) / (time.perf_counter() - began)
        print(f"epoch {epoch} rank {rank}: loss {loss:.6f}, {speed:.0f} samples/s", flush=True)
        mean_loss, mean_speed = average(loss), average(speed)
        if rank == 0:
            print(f"epoch {epoch}: loss {mean_loss:.6f}, {mean_speed * ranks:.0f} samples/s over {ranks} ranks", flush=True)
        if arguments.checkpoint:
            save(arguments.checkpoint, model, optimizer, epoch)


def main():
    arguments = parse_arguments()
    if arguments.backend == "tutti":
        import tutti.torch  # noqa: F401  Needed only before PyTorch 2.14 with TORCH_DEVICE_BACKEND_AUTOLOAD=0.
    dist.init_process_group(arguments.backend)
    if dist.get_rank() == 0:
        print(f"backend {dist.get_backend()}, {dist.get_world_size()} ranks", flush=True)
    try:
        train(arguments)
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
