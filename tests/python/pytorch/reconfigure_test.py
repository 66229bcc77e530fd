"""A rank dies; the others reconfigure their group without it, and again with a new process. torch.distributed._reconfigure()"""

import contextlib
import datetime
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist
from harness import error_of, raises

import tutti.torch

RANKS, VICTIM = 3, 0  # The rank that has the store of the first reconfigure() survives.
LIMIT = datetime.timedelta(seconds=30)  # Turns a hang into a failure.


def join(store, rank, ranks, **named):
    dist.init_process_group("tutti", store=store, rank=rank, world_size=ranks, timeout=LIMIT, **named)


def board_of(folder):
    """Returns the store in which the members exchange their handles, as a scheduler would."""
    board = dist.FileStore(f"{folder}/board")
    board.set_timeout(LIMIT)
    return board


def exchange(board, title, place, size):
    """Returns the handles of all members by their places."""
    board.set(f"{title}/{place}", dist._get_reconfigure_handle())
    return [board.get(f"{title}/{other}").decode() for other in range(size)]


def check_group(rank, size):
    assert (dist.get_rank(), dist.get_world_size()) == (rank, size)
    tensor = torch.full((3,), float(rank + 1))
    dist.all_reduce(tensor)
    assert tensor.tolist() == [size * (size + 1) / 2] * 3, tensor
    received = torch.zeros(1)
    sent = dist.isend(torch.full((1,), float(rank)), (rank + 1) % size)
    dist.recv(received, (rank - 1) % size)
    sent.wait()
    assert received.item() == (rank - 1) % size
    dist.monitored_barrier()


def check_complete_calls_are_not_aborted(board, handles, own):
    """Reconfigures while a callback of a complete call keeps the thread of calls in use, and then in a row."""
    rank, held = dist.get_rank(), threading.Event()

    def hold(future):
        held.set()
        end = time.monotonic() + 0.5
        while not pending.is_completed() and time.monotonic() < end:  # An abort would complete it.
            time.sleep(0.01)

    if rank == 0:
        pending = dist.irecv(torch.zeros(1), rank, tag=7)
        work = dist.all_reduce(torch.ones(1), async_op=True)
        work.get_future().then(hold)
        board.set("attached", "")
        held.wait()
    else:
        board.get("attached")
        work = dist.all_reduce(torch.ones(1), async_op=True)
    work.wait()
    dist._reconfigure(3, handles).wait()
    if rank == 0:
        raises(pending.wait, "the communicator ended")
    for uuid in range(4, 9):
        dist._reconfigure(uuid, handles).wait()
    check_group(handles.index(own), len(handles))


def check_bad_handles(own):
    for bad in ("host", "host:", ":80", "host:0", "host:65536", "host:+1", "host:1x", "host: 1"):
        error = error_of(lambda: dist._reconfigure(0, [bad, own]))
        assert isinstance(error, tutti.InvalidArgument), error
        assert f"the handle '{bad}' is not HOST:PORT, with a port of 1..65535" in error.message, error
    check_group(dist.get_rank(), dist.get_world_size())  # The group is as before.


def run_survivor(folder, rank):
    board = board_of(folder)
    join(dist.FileStore(f"{folder}/first"), rank, RANKS)
    first = exchange(board, "first", rank, RANKS)
    if rank == VICTIM:
        os.kill(os.getpid(), signal.SIGKILL)
    pending = dist.irecv(torch.zeros(1), rank, tag=7)
    raises(lambda: dist.all_reduce(torch.ones(3)), f"rank {VICTIM}")
    raises(lambda: dist._reconfigure(1, [first[VICTIM]]), first[rank], "occurs 0 times in 1 handles")
    dist._reconfigure(1, [first[1], first[2]]).wait()
    raises(pending.wait)  # With the death or the end of the communicator, whichever it finds first.
    check_group(rank - 1, RANKS - 1)
    handles = exchange(board, "second", rank - 1, RANKS)
    assert handles[rank - 1] == first[rank], "the handle has changed"
    dist._reconfigure(2, set(handles)).wait()
    check_group(sorted(handles).index(first[rank]), RANKS)
    check_bad_handles(first[rank])
    check_complete_calls_are_not_aborted(board, sorted(handles), first[rank])
    exchange(board, "end", rank - 1, RANKS)  # The store of the last barrier is in the process of rank 0.
    dist.destroy_process_group()


def run_newcomer(folder):
    board = board_of(folder)
    join(dist.HashStore(), 0, 1, enable_reconfigure=True)
    for call in (lambda: dist.all_reduce(torch.ones(3)), dist.monitored_barrier, lambda: dist.recv(torch.ones(3))):
        raises(call, "the process group has no members; call torch.distributed._reconfigure()")
    dead, own = board.get(f"first/{VICTIM}").decode(), dist._get_reconfigure_handle()
    limit = datetime.timedelta(milliseconds=200)
    raises(lambda: dist._reconfigure(3, [dead, own], timeout=limit), f"rank 0, {dead}, has not called reconfigure within")
    handles = exchange(board, "second", RANKS - 1, RANKS)
    dist._reconfigure(2, set(handles)).wait()
    check_group(sorted(handles).index(own), RANKS)
    check_bad_handles(own)
    check_complete_calls_are_not_aborted(board, sorted(handles), own)
    exchange(board, "end", RANKS - 1, RANKS)
    dist.destroy_process_group()


def run(path, function, arguments):
    torch.set_num_threads(1)
    os.environ["TUTTI_PYTORCH_PATH"] = path
    os.environ["TORCH_INCLUDE_STACK_TRACE"] = "0"  # The flight recorder would need seconds for its trace after a failure.
    function(*arguments)


def check(path):
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ended:
        members = [(run_survivor, (folder, rank)) for rank in range(RANKS)] + [(run_newcomer, (folder,))]
        processes = [context.Process(target=run, args=(path, function, arguments)) for function, arguments in members]
        for process in processes:
            process.start()
            ended.callback(process.kill)
        for process in processes:
            process.join(2 * LIMIT.total_seconds())
    statuses = [process.exitcode for process in processes]
    assert statuses == [-signal.SIGKILL if place == VICTIM else 0 for place in range(RANKS + 1)], statuses


def main():
    if not hasattr(dist, "_reconfigure"):
        print("skipped: this PyTorch has no reconfigure()")
        return 77
    for path in ("cpp", "python") if tutti.torch.path() == "C++" else ("python",):
        check(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
