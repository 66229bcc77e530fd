"""One rank of the comparison of backends of torch.distributed. perf/pytorch/run.py starts the ranks.

All backends run in the same processes: Gloo is the default group, and each other backend is a further group. Rounds
alternate between the backends, so that other load on the machine affects all. The backend "fake" of PyTorch does
nothing: its times are those of PyTorch itself, such as the dispatch of a call, and the copies of DDP to its buckets.
"""

import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed import fake_pg  # noqa: F401  Registers the backend "fake".

SIZES = (8, 1 << 10, 8 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20)
ROUND_S = 0.05  # Duration of one round of one backend, about.


def summary(samples_s):
    """Returns minimum and median of times in seconds, in microseconds."""
    return {"min_us": 1e6 * min(samples_s), "median_us": 1e6 * statistics.median(samples_s)}


def call_blocking(tensor, group):
    dist.all_reduce(tensor, group=group)


def call_async(tensor, group):
    dist.all_reduce(tensor, group=group, async_op=True).wait()


class Bench:
    def __init__(self, options):
        self.options = options
        dist.init_process_group("gloo")
        self.groups = {"gloo": dist.group.WORLD, options.backend: dist.new_group(backend=options.backend)}
        if options.compress:
            from tutti.torch import Options
            self.groups[options.compress] = dist.new_group(backend="tutti", pg_options=Options(options.compress))
        self.fake = dist.new_group(backend="fake")
        self.ranks = dist.get_world_size()

    def interleaved(self, programs, rounds):
        """Runs each of `programs` (name -> function that returns seconds of one sample) in turn, `rounds` times."""
        samples = {name: [] for name in programs}
        for _ in range(rounds):
            for name, program in programs.items():
                dist.barrier()
                samples[name].append(program())
        return {name: summary(times) for name, times in samples.items()}

    def iterations(self, program):
        """Returns how often `program` runs in a round: the same number on all ranks."""
        program()
        began = time.perf_counter()
        program()
        count = torch.tensor([max(1, int(ROUND_S / (time.perf_counter() - began)))])
        dist.broadcast(count, 0)
        return min(int(count), 2000)

    def timed(self, program):
        count = self.iterations(program)

        def sample():
            began = time.perf_counter()
            for _ in range(count):
                program()
            return (time.perf_counter() - began) / count

        return sample

    def all_reduce(self):
        rows = []
        for size in self.options.sizes:
            tensor = torch.ones(max(1, size // 4)) / self.ranks
            programs = {}
            for backend, group in self.groups.items():
                for style, call in (("blocking", call_blocking), ("async", call_async)):
                    programs[f"{backend} {style}"] = self.timed(lambda c=call, g=group: c(tensor, g))
            programs["fake blocking"] = self.timed(lambda: call_blocking(tensor, self.fake))
            rounds = self.options.rounds if size < 64 << 20 else max(3, self.options.rounds // 3)
            rows.append({"bytes": tensor.numel() * 4, "times": self.interleaved(programs, rounds)})
        return rows

    def ddp(self, parameters, batch):
        """Steps of DDP. "fake" does not communicate; "blocking" averages after the backward pass."""
        width = max(8, int((parameters / 8) ** 0.5))
        data = torch.randn(batch, width)
        programs = {}
        for backend, group in self.groups.items():
            programs[backend] = self.step(DistributedDataParallel(network(width), process_group=group), data)
        silent = DistributedDataParallel(network(width))
        silent.register_comm_hook(None, no_communication)
        programs["fake"] = self.step(silent, data)
        plain, group = network(width), self.groups[self.options.backend]
        programs[f"{self.options.backend} blocking"] = self.step(plain, data, after=lambda: average(plain, group))
        rounds = self.options.rounds
        return {"parameters": sum(p.numel() for p in network(width).parameters()), "batch": batch,
                "times": self.interleaved(programs, rounds)}

    @staticmethod
    def step(model, data, after=lambda: None):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

        def run():
            began = time.perf_counter()
            optimizer.zero_grad(set_to_none=False)
            model(data).square().mean().backward()
            after()
            optimizer.step()
            return time.perf_counter() - began

        run()
        return run

    def tensor_parallel(self, width, layers=8, batch=4):
        """Inference with one all_reduce of batch * width elements per layer. Reports the time of a token."""
        weights = [torch.randn(width, width // self.ranks) / width for _ in range(layers)]
        back = [torch.randn(width // self.ranks, width) / width for _ in range(layers)]

        def token(group):
            state = torch.ones(batch, width)
            for column, row in zip(weights, back):
                part = torch.relu(state @ column) @ row
                dist.all_reduce(part, group=group)
                state = state + part

        with torch.no_grad():
            programs = {name: self.timed(lambda g=group: token(g)) for name, group in self.groups.items()}
            return {"bytes": 4 * batch * width, "layers": layers,
                    "times": self.interleaved(programs, self.options.rounds)}


def network(width):
    torch.manual_seed(1)
    layers = []
    for _ in range(8):
        layers += [torch.nn.Linear(width, width, bias=False), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers)


def no_communication(_, bucket):
    """Hook of DDP."""
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def average(model, group):
    gradients = [parameter.grad for parameter in model.parameters()]
    flat = torch._utils._flatten_dense_tensors(gradients)
    dist.all_reduce(flat, group=group)
    flat /= dist.get_world_size()
    for gradient, mean in zip(gradients, torch._utils._unflatten_dense_tensors(flat, gradients)):
        gradient.copy_(mean)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="tutti")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=SIZES)
    parser.add_argument("--parts", default="all_reduce,ddp,tensor_parallel")
    parser.add_argument("--compress", help="also measure groups of tutti with this compression format")
    parser.add_argument("--output", help="file for rank 0's results, as JSON")
    return parser.parse_args()


def main():
    options = parse()
    if options.backend == "tutti":
        import tutti.torch  # noqa: F401  Registers the backend.
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    bench = Bench(options)
    parts = options.parts.split(",")
    results = {"ranks": bench.ranks, "backend": options.backend, "torch": torch.__version__}
    if "all_reduce" in parts:
        results["all_reduce"] = bench.all_reduce()
    if "ddp" in parts:
        results["ddp"] = [bench.ddp(size, batch) for size in (10_000_000, 100_000_000) for batch in (4, 64)]
    if "ddp_small" in parts:
        results["ddp"] = [bench.ddp(10_000_000, batch) for batch in (4, 64)]
    if "tensor_parallel" in parts:
        results["tensor_parallel"] = [bench.tensor_parallel(width) for width in (512, 1024, 4096)]
    if dist.get_rank() == 0 and options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(results, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
