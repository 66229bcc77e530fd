"""Training with several local steps between synchronizations, in the manner of DiLoCo (Douillard et al., 2023).

    torchrun --nproc-per-node 2 examples/pytorch/local_updates.py --local-steps 16 --compress int8

Each worker takes --local-steps steps with its own optimizer. The workers then average the change of their parameters,
and an outer optimizer with Nesterov momentum applies the average. The exchange runs in the background of the next local
steps (--delay 1), so that its result is --local-steps steps old when it is applied, or blocks (--delay 0). Exchanged changes
are compressed (--compress), and the error of the compression is added to the next exchange.

The program first trains synchronously, with an all-reduce of the gradients in each step, and then with local updates,
on the same batches with the same number of steps. It prints the losses on held-out data, and the bytes that a rank passes to
all-reduces with local updates, after compression, as a share of those of synchronous training.
"""

import argparse

import torch
import torch.distributed as dist
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="tutti", choices=("tutti", "gloo"), help="gloo exchanges float32 only")
    parser.add_argument("--steps", type=int, default=512, help="steps of each worker (default: 512)")
    parser.add_argument("--local-steps", type=int, default=16, help="steps between exchanges (default: 16)")
    parser.add_argument("--delay", type=int, default=1, choices=(0, 1), help="1: exchange in the background (default)")
    parser.add_argument("--compress", default="int8", help="format of exchanged changes, raw or one of tutti.torch.Options")
    parser.add_argument("--batch", type=int, default=32, help="samples per worker and step (default: 32)")
    parser.add_argument("--outer-rate", type=float, default=0.7, help="learning rate of the outer optimizer (default: 0.7)")
    parser.add_argument("--outer-momentum", type=float, default=0.3, help="its Nesterov momentum (default: 0.3)")
    parser.add_argument("--seed", type=int, default=1, help="seed of data and parameters (default: 1)")
    parser.add_argument("--tolerance", type=float, help="fail if the loss exceeds the synchronous one by more than this share")
    return parser.parse_args()


def data(seed, features=32, classes=10, samples=32768):
    """Random points, and the classes that a random network assigns to them. The first eighth is held out."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(samples, features, generator=generator)
    first, second = torch.randn(features, 64, generator=generator), torch.randn(64, classes, generator=generator)
    labels = (torch.tanh(points @ first / features**0.5) @ second).argmax(dim=1)
    held_out = samples // 8
    return (points[held_out:], labels[held_out:]), (points[:held_out], labels[:held_out])


def network(seed, features=32, classes=10):
    torch.manual_seed(seed)
    layer = torch.nn.Linear
    return torch.nn.Sequential(layer(features, 128), torch.nn.ReLU(), layer(128, 128), torch.nn.ReLU(), layer(128, classes))


class Batches:
    """Random batches of this rank's share of the data, the same in both runs."""

    def __init__(self, options, train):
        rank, ranks = dist.get_rank(), dist.get_world_size()
        self.points, self.labels = train[0][rank::ranks], train[1][rank::ranks]
        self.generator = torch.Generator().manual_seed(options.seed * 1000 + rank)
        self.batch = options.batch

    def next(self):
        chosen = torch.randint(len(self.points), (self.batch,), generator=self.generator)
        return self.points[chosen], self.labels[chosen]


def gradient_step(model, optimizer, batch, group=None):
    """One step. With a group, averages the gradients first. Returns the bytes that were exchanged, as float32."""
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
    exchanged = 0
    if group is not None:
        gradients = [parameter.grad for parameter in model.parameters()]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat, group=group)
        flat /= dist.get_world_size()
        exchanged = flat.numel() * flat.element_size()
        for gradient, mean in zip(gradients, flat.split([gradient.numel() for gradient in gradients])):
            gradient.copy_(mean.view_as(gradient))
    optimizer.step()
    return exchanged


def make_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)


def train_synchronously(options, train):
    model = network(options.seed)
    optimizer, batches = make_optimizer(model), Batches(options, train)
    exchanged = sum(gradient_step(model, optimizer, batches.next(), dist.group.WORLD) for _ in range(options.steps))
    return model, exchanged


class Exchange:
    """Averages changes of parameters in the background. Holds the shared parameters, which are equal on all workers."""

    def __init__(self, options, model):
        self.shared = parameters_to_vector(model.parameters()).detach().clone()
        self.momentum = torch.zeros_like(self.shared)
        self.change = torch.empty_like(self.shared)  # The buffer of all exchanges, so that the residual belongs to it.
        self.options = options
        self.work = None
        self.group = dist.group.WORLD
        if options.compress != "raw":
            import tutti.torch

            self.group = dist.new_group(backend="tutti", pg_options=tutti.torch.Options(compression=options.compress))
            self.residual = torch.zeros_like(self.shared)
            tutti.torch.attach_residual(self.change, self.residual, self.group)

    def start(self, local):
        """Starts to average the change from the shared parameters to `local`."""
        self.sent = local.clone()  # vector_to_parameters() makes the parameters views of `local`.
        torch.sub(self.shared, local, out=self.change)
        self.work = dist.all_reduce(self.change, group=self.group, async_op=True)

    def finish(self, local):
        """Waits for the exchange and applies it to the shared parameters. Returns the parameters to continue from."""
        self.work.wait()
        self.work = None
        mean = self.change / dist.get_world_size()
        self.momentum.mul_(self.options.outer_momentum).add_(mean)
        self.shared -= self.options.outer_rate * (mean + self.options.outer_momentum * self.momentum)
        return self.shared + (local - self.sent)  # Keeps the steps that were taken since start().


def train_with_local_updates(options, train):
    model = network(options.seed)
    optimizer, batches, exchange = make_optimizer(model), Batches(options, train), Exchange(options, model)
    exchanges = 0
    for step in range(1, options.steps + 1):
        gradient_step(model, optimizer, batches.next())
        if step % options.local_steps and step != options.steps:
            continue
        local = parameters_to_vector(model.parameters()).detach().clone()
        if exchange.work is not None:
            local = exchange.finish(local)
        exchange.start(local)
        exchanges += 1
        if options.delay == 0 or step == options.steps:
            local = exchange.finish(local)
        vector_to_parameters(local, model.parameters())
    vector_to_parameters(exchange.shared, model.parameters())
    return model, exchanges * exchange.shared.numel() * message_bytes(options.compress)


def message_bytes(compression):
    """Returns the bytes of an element in messages, without the scales of blocks, which most formats add."""
    return {"raw": 4, "bf16": 2, "fp16": 2, "int6": 0.75, "int4": 0.5}.get(compression, 1)


def loss_on(model, held_out):
    with torch.no_grad():
        return torch.nn.functional.cross_entropy(model(held_out[0]), held_out[1]).item()


def main():
    options = parse()
    if options.backend == "gloo":
        options.compress = "raw"
    if options.backend == "tutti":
        import tutti.torch  # noqa: F401  Registers the backend; PyTorch 2.14 and newer find it without this line.
    dist.init_process_group(options.backend)
    train, held_out = data(options.seed)
    results = {}
    for name, method in (("synchronous", train_synchronously), ("local updates", train_with_local_updates)):
        model, exchanged = method(options, train)
        results[name] = (loss_on(model, held_out), exchanged)
    loss, exchanged = results["local updates"]
    reference, all_bytes = results["synchronous"]
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks, {options.steps} steps, {options.local_steps} local steps, delay {options.delay}, "
              f"messages {options.compress}")
        for name, (result, _) in results.items():
            print(f"{name:14} loss {result:.4f} on held-out data")
        print(f"traffic {100 * exchanged / all_bytes:.2f} % of the synchronous run's")
    dist.destroy_process_group()
    if options.tolerance is not None and loss > reference * (1 + options.tolerance):
        raise SystemExit(f"loss {loss:.4f} exceeds {reference:.4f} by more than {options.tolerance:.0%}")


if __name__ == "__main__":
    main()
