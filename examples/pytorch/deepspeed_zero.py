"""DeepSpeed on CPUs over Tutti: ZeRO stage 2, which shards gradients and the state of the optimizer.

    torchrun --nproc-per-node 2 examples/pytorch/deepspeed_zero.py --backend tutti
"""

import argparse

import deepspeed
import torch
import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="tutti", help="tutti (default) or gloo")
    arguments = parser.parse_args()
    if arguments.backend == "tutti":
        import tutti.torch  # noqa: F401  Registers the backend.
    deepspeed.init_distributed(dist_backend=arguments.backend)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    engine, _, _, _ = deepspeed.initialize(
        model=network, optimizer=torch.optim.AdamW(network.parameters(), lr=1e-2),
        config={"train_micro_batch_size_per_gpu": 32, "zero_optimization": {"stage": 2},
                "zero_allow_untested_optimizer": True, "bf16": {"enabled": False}, "steps_per_print": 1000})
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(20):
        points = torch.randn(32, 16, generator=generator)
        loss = (engine(points) - points.sum(dim=1, keepdim=True)).square().mean()
        engine.backward(loss)
        engine.step()
        dist.all_reduce(loss.detach().div_(dist.get_world_size()))
        if dist.get_rank() == 0 and step % 5 == 4:
            print(f"step {step + 1}: loss {loss.item():.6f} with {dist.get_backend()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
