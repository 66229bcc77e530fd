#!/usr/bin/env python3
"""Trains a tiny transformer for some steps with ranks that share one GPU:  ddp_step.py --ranks N --out FILE [--fsdp]

Batches are the same for every N, so losses differ only by rounding. LD_PRELOAD selects the NCCL library.
"""

import argparse
import json
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

BATCH, LENGTH, WORDS, WIDTH = 16, 64, 256, 128


class Tiny(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=4 * WIDTH, dropout=0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, words):
        return self.head(self.encoder(self.embedding(words)))


def batches(steps, rank, ranks):
    """Yields this rank's share of each batch. All ranks draw the same batches."""
    generator = torch.Generator().manual_seed(7)
    share = BATCH // ranks
    for _ in range(steps):
        words = torch.randint(WORDS, (BATCH, LENGTH + 1), generator=generator)
        yield words[rank * share:(rank + 1) * share].cuda()


def distributed(model, options):
    if not options.fsdp:
        return DistributedDataParallel(model, device_ids=[0])
    for layer in model.encoder.layers:
        fully_shard(layer)
    return fully_shard(model)


def train(rank, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
    torch.cuda.set_device(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    dist.init_process_group("nccl", rank=rank, world_size=options.ranks)
    torch.manual_seed(1)
    model = distributed(Tiny().cuda(), options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    begin = time.monotonic()
    for words in batches(options.steps, rank, options.ranks):
        optimizer.zero_grad()
        logits = model(words[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, WORDS), words[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        mean = loss.detach() / options.ranks
        dist.all_reduce(mean)
        losses.append(mean.item())
    seconds = time.monotonic() - begin
    dist.destroy_process_group()
    if rank == 0:
        with open(options.out, "w") as file:
            json.dump({"ranks": options.ranks, "losses": losses, "seconds_per_step": seconds / options.steps}, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, required=True, help=f"a divisor of {BATCH}")
    parser.add_argument("--fsdp", action="store_true", help="parameters shared out, instead of a copy on each rank")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--port", type=int, default=29432)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    mp.spawn(train, args=(options,), nprocs=options.ranks)


if __name__ == "__main__":
    main()
