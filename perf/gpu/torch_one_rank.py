#!/usr/bin/env python3
"""Measures all-reduces of one rank with the NCCL library that PyTorch loads: torch_one_rank.py OUT.json"""

import json
import os
import sys

import torch
import torch.distributed as dist

ITERATIONS = 20


def main():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("MASTER_PORT", "29431"))
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=0, world_size=1)
    rows = []
    for size_bytes in (8, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20):
        values = torch.ones(size_bytes // 4, device="cuda")
        for _ in range(3):
            dist.all_reduce(values)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(ITERATIONS):
            dist.all_reduce(values)
        end.record()
        end.synchronize()
        if not bool((values == 1).all()):
            sys.exit(f"torch_one_rank.py: an all-reduce of one rank changed the values at {size_bytes} bytes")
        rows.append({"bytes": size_bytes, "us": begin.elapsed_time(end) * 1e3 / ITERATIONS})
    with open(sys.argv[1], "w") as file:
        json.dump({"nccl": ".".join(map(str, torch.cuda.nccl.version())), "torch": torch.__version__, "rows": rows}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
