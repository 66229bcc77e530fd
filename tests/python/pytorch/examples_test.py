"""Runs the programs of examples/pytorch, and checks that they train, resume, and save traffic."""

import contextlib
import importlib.util
import io
import multiprocessing
import os
import re
import sys
import tempfile

import torch
import torch.distributed
import torch._dynamo  # noqa: F401  Models import it when they are made, which takes seconds in each rank.

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "examples", "pytorch")
RANKS = 2
LIMIT_S = 120  # Turns a hang into a failure.


def load(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(EXAMPLES, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_rank(module, rank, ports, arguments, results):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(ports.get()),
                      TORCHELASTIC_USE_AGENT_STORE="True")  # The parent has the store.
    torch.set_num_threads(1)
    sys.argv = [module.__name__, *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        module.main()
    if rank == 0:
        results.put(output.getvalue())


def run(module, *arguments):
    """Runs a program in RANKS forked ranks, as torchrun does, and returns the output of rank 0."""
    context = multiprocessing.get_context("fork")
    results, ports = context.Queue(), context.Queue()
    ranks = [context.Process(target=run_rank, args=(module, rank, ports, arguments, results)) for rank in range(RANKS)]
    for process in ranks:
        process.start()
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    for _ in ranks:
        ports.put(store.port)
    try:
        output = results.get(timeout=LIMIT_S)
        for process in ranks:
            process.join(LIMIT_S)
            assert process.exitcode == 0, f"{module.__name__} {arguments} ended with status {process.exitcode}:\n{output}"
    finally:
        for process in ranks:
            process.kill()
    return output


def losses(output):
    """Returns the average losses of the epochs by their numbers."""
    return {int(epoch): float(loss) for epoch, loss in re.findall(r"^epoch (\d+): loss ([\d.]+)", output, re.M)}


def check_training(module):
    for options in ([], ["--precision", "bfloat16", "--accumulate", "3"], ["--compress", "int8"]):
        found = losses(run(module, *options))
        assert list(found) == [0, 1, 2] and found[0] > found[1] > found[2] and found[2] < 0.9 * found[0], (options, found)
    gloo = losses(run(module, "--backend", "gloo"))
    assert gloo == losses(run(module)), gloo


def check_resume(module, folder):
    paths = [os.path.join(folder, name) for name in ("whole.pt", "parts.pt")]
    run(module, "--checkpoint", paths[0])
    run(module, "--checkpoint", paths[1], "--epochs", "1")
    assert list(losses(run(module, "--checkpoint", paths[1]))) == [1, 2]
    whole, parts = [torch.load(path, weights_only=True) for path in paths]
    assert whole["epoch"] == parts["epoch"] == 2
    torch.testing.assert_close(parts, whole, rtol=0, atol=0)


def check_local_updates(module):
    blocking = ["--local-steps", "8", "--compress", "raw", "--delay", "0"]
    for options, share in ((["--local-steps", "16"], 100 / 16 / 4), (blocking, 100 / 8)):
        output = run(module, "--steps", "256", "--tolerance", "0.1", *options)
        assert float(re.search(r"traffic ([\d.]+) %", output)[1]) == round(share, 2), output


def main():
    train_ddp, local_updates = load("train_ddp"), load("local_updates")
    check_training(train_ddp)
    with tempfile.TemporaryDirectory() as folder:
        check_resume(train_ddp, folder)
    check_local_updates(local_updates)
    return 0


if __name__ == "__main__":
    sys.exit(main())
