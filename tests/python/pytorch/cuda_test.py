"""CUDA tensors in the backend tutti, on GPUs or on the stand-in for the CUDA runtime (preset ptx).

The stand-in runs no kernels of PyTorch, so tensors are made on the CPU and copied.
"""

import datetime
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
import tutti
from harness import TIMEOUT_S, case, error_of, main, raises, same, total
from torch.distributed import distributed_c10d

import tutti.torch


def device(rank):
    return torch.device("cuda", rank % torch.cuda.device_count())


def backend_of(group):
    return group._get_backend(torch.device("cuda"))


def on_gpu(rank, tensor):
    """Returns a copy on the GPU of a rank, which is made in the current stream."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=device(rank)).copy_(tensor)


def filled(rank, count, value):
    return on_gpu(rank, torch.full((count,), float(value)))


def is_full(tensor, value, what=""):
    same(tensor.cpu(), torch.full(tensor.shape, float(value)), what)


def sum_works(rank, size, group=None):
    tensor = filled(rank, 5, rank + 1)
    dist.all_reduce(tensor, group=group)
    is_full(tensor, total(size))


@case
def all_reduce_has_types_and_reductions(rank, size):
    ranks = [torch.arange(37) % 5 + r for r in range(size)]
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8):
        for op, expected in ((dist.ReduceOp.SUM, sum(ranks)), (dist.ReduceOp.MAX, torch.stack(ranks).amax(0))):
            tensor = on_gpu(rank, ranks[rank].to(dtype))
            dist.all_reduce(tensor, op=op)
            same(tensor.cpu(), expected.to(dtype), f"{dtype} {op}")


@case
def collectives_of_tensors(rank, size):
    parts = [torch.arange(6.0) + 100 * r for r in range(size)]
    gathered = filled(rank, 6 * size, 0)
    dist.all_gather_into_tensor(gathered, on_gpu(rank, parts[rank]))
    same(gathered.cpu(), torch.cat(parts), "all_gather_into_tensor")
    scattered = filled(rank, 6, 0)
    dist.reduce_scatter_tensor(scattered, on_gpu(rank, torch.cat(parts) * (rank + 1)))
    same(scattered.cpu(), parts[rank] * total(size), "reduce_scatter_tensor")
    root = size - 1
    tensor = on_gpu(rank, parts[rank])
    dist.broadcast(tensor, root)
    same(tensor.cpu(), parts[root], "broadcast")
    tensor = on_gpu(rank, parts[rank])
    dist.reduce(tensor, root)
    if rank == root:
        same(tensor.cpu(), sum(parts), "reduce")


@case
def collectives_of_lists(rank, size):
    parts = [torch.arange(r + 1.0) + 100 * r for r in range(size)]
    for shapes in ([1] * size, range(1, size + 1)):
        received = [filled(rank, count, 0) for count in shapes]
        dist.all_gather(received, on_gpu(rank, parts[rank][:shapes[rank]]))
        for other, tensor in enumerate(received):
            same(tensor.cpu(), parts[other][:shapes[other]], "all_gather")
    received = [filled(rank, 3, 0) for _ in range(size)] if rank == 0 else None
    dist.gather(filled(rank, 3, rank), received)
    for other, tensor in enumerate(received or []):
        is_full(tensor, other, "gather")
    received = [filled(rank, rank + 1, 0) for _ in range(size)]
    dist.all_to_all(received, [filled(rank, other + 1, 10 * rank + other) for other in range(size)])
    for other, tensor in enumerate(received):
        is_full(tensor, 10 * other + rank, "all_to_all")


@case
def all_to_all_with_rows(rank, size):
    rows = [other + 1 for other in range(size)]
    sent = torch.cat([torch.full((count, 2), 10.0 * rank + other) for other, count in enumerate(rows)])
    received = on_gpu(rank, torch.zeros((rank + 1) * size, 2))
    dist.all_to_all_single(received, on_gpu(rank, sent), [rank + 1] * size, rows)
    same(received.cpu(), torch.cat([torch.full((rank + 1, 2), 10.0 * other + rank) for other in range(size)]))


@case
def asynchronous_calls_are_ordered_with_the_current_stream(rank, size):
    """On the stand-in, a missing order is a data race, which is an error."""
    for _ in range(3):
        tensor, source = filled(rank, 5000, -1), filled(rank, 5000, rank + 1)
        tensor.copy_(source)  # Does not wait on the host.
        work = dist.all_reduce(tensor, async_op=True)
        work.wait()
        is_full(tensor, total(size))
        assert work.is_completed()
    stream = torch.cuda.Stream(device(rank))
    with torch.cuda.stream(stream):
        sum_works(rank, size)
        work = dist.all_reduce(filled(rank, 3, 1), async_op=True)
    work.wait()  # In another stream.
    is_full(work.result()[0], size)


@case
def tensors_may_be_freed_before_the_end(rank, size):
    for count in (5, 100000):
        for _ in range(3):
            dist.all_gather_into_tensor(filled(rank, count * size, 0), filled(rank, count, rank), async_op=True)
            others = filled(rank, count * size, 7), filled(rank, count, 8)  # Would reuse the memory.
            torch.cuda.synchronize(device(rank))
            is_full(others[0], 7)
            is_full(others[1], 8)


@case
def wait_with_a_timeout_waits_on_the_host(rank, size):
    tensor = filled(rank, 5, rank + 1)
    work = dist.all_reduce(tensor, async_op=True)
    assert work.wait(datetime.timedelta(seconds=TIMEOUT_S)) and work.is_completed()
    is_full(tensor, total(size))


@case
def futures_have_the_result(rank, size):
    work = dist.all_reduce(filled(rank, 5, rank + 1), async_op=True)
    chained = work.get_future().then(lambda future: future.value())
    is_full(chained.wait()[0], total(size))
    is_full(work.get_future().wait()[0], total(size))


@case
def barrier_waits_for_the_gpu(rank, size):
    tensor = filled(rank, 100000, rank + 1)
    work = dist.all_reduce(tensor, async_op=True)
    dist.barrier()
    assert work.is_completed()
    is_full(tensor, total(size))
    large, copied = filled(rank, 20_000_000, 1), filled(rank, 20_000_000, 0)
    copied.copy_(large)
    dist.barrier()
    assert torch.cuda.current_stream(device(rank)).query()


@case
def batch_of_messages_in_a_ring(rank, size):
    for count in (3, 300000):
        sent, received = filled(rank, count, rank), filled(rank, count, -1)
        right, left = (rank + 1) % size, (rank - 1) % size
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, right), dist.P2POp(dist.irecv, received, left)]):
            work.wait()
        is_full(received, left)


@case
def messages_between_two_ranks(rank, size):
    if rank == 0 and size > 1:
        dist.send(filled(rank, 4, 7), 1)
    if rank == 1:
        received = filled(rank, 4, 0)
        dist.recv(received, 0)
        is_full(received, 7)
    sum_works(rank, size)


@case
def section_runs_messages_before_later_collectives(rank, size):
    tensor, summed = filled(rank, 9, rank), filled(rank, 9, rank + 1)
    if rank == 0 and size > 1:
        dist.group.WORLD._start_coalescing(device(rank))
        dist.isend(tensor, 1)
        dist.all_reduce(summed, async_op=True)
        dist.group.WORLD._end_coalescing(device(rank)).wait()
    else:
        if rank == 1:
            dist.recv(tensor, 0)
            is_full(tensor, 0)
        dist.all_reduce(summed)
    is_full(summed, total(size))


@case
def coalesced_collectives(rank, size):
    tensors = [filled(rank, count, rank + count) for count in (1, 700, 3)]
    with distributed_c10d._coalescing_manager(device=device(rank)):
        for tensor in tensors:
            dist.all_reduce(tensor)
    for tensor, count in zip(tensors, (1, 700, 3)):
        is_full(tensor, total(size) + size * (count - 1))


@case
def groups_have_communicators_of_their_own(rank, size):
    group = dist.new_group(list(range(size - 1, -1, -1)))
    sum_works(rank, size, group)
    own = [dist.new_group([member]) for member in range(size)][rank]
    tensor = filled(rank, 3, rank)
    dist.all_reduce(tensor, group=own)
    is_full(tensor, rank)
    dist.destroy_process_group(group)
    sum_works(rank, size)


@case
def joining_early_allows_messages_of_some_ranks(rank, size):
    group = dist.new_group()
    backend_of(group).eager_connect_single_device(device(rank))
    if size > 1 and rank < 2:
        tensor = filled(rank, 4, rank)
        dist.send(tensor, 1, group=group) if rank == 0 else dist.recv(tensor, 0, group=group)
        is_full(tensor, 0)


@case
def compressed_sums_have_residuals(rank, size):
    group = dist.new_group(pg_options=tutti.torch.Options(compression="int8"))
    values = torch.linspace(-1, 1, 1024) * (rank + 1)
    buffer, residual = on_gpu(rank, values), filled(rank, 1024, 0)
    tutti.torch.attach_residual(buffer, residual, group)
    dist.all_reduce(buffer, group=group)
    exact = torch.linspace(-1, 1, 1024) * total(size)
    assert torch.allclose(buffer.cpu(), exact, atol=0.02 * size * size), (buffer.cpu() - exact).abs().max()
    if size > 1:
        assert residual.cpu().abs().max() > 0, "the call has not used the residual"
    tutti.torch.detach_residual(buffer, group)


@case
def wrong_tensors_are_refused(rank, size):
    backend = backend_of(dist.group.WORLD)
    raises(lambda: backend.allgather([[torch.empty(3)] * size], [filled(rank, 3, 0)]), "cuda:", "cpu", "one device")
    raises(lambda: dist.recv(filled(rank, 3, 0)), "rank of the sender")
    if torch.cuda.device_count() > 1:
        other = device(rank + 1)
        raises(lambda: dist.all_reduce(torch.empty(3, device=other)), str(other), "uses cuda:")
    sum_works(rank, size)


@case
def shrinking_keeps_gpus(rank, size):
    if size < 2:
        return
    group = dist.new_group()
    sum_works(rank, size, group)
    if rank == size - 1:
        return
    smaller = backend_of(group).shrink([size - 1])
    tensor = filled(rank, 5, rank + 1)
    smaller.allreduce([tensor]).wait()
    is_full(tensor, total(size - 1))
    smaller.shutdown()
    raises(lambda: dist.all_reduce(tensor, group=group), "shut down")


@case
def zz_abort_ends_calls(rank, size):
    if size == 1:
        return
    group = dist.new_group()
    sum_works(rank, size, group)
    work = dist.all_reduce(filled(rank, 3, 1), group=group, async_op=True) if rank > 0 else None
    dist.barrier()  # Rank 0 aborts when the others have made their calls.
    backend_of(group).abort()
    if work is not None:
        assert isinstance(error_of(lambda: work.wait(datetime.timedelta(seconds=TIMEOUT_S))), tutti.Aborted)
    raises(lambda: dist.all_reduce(filled(rank, 3, 1), group=group), "abort")


@case
def zz_ranks_that_disagree_are_named(rank, size):
    if size == 1:
        return
    group = dist.new_group()
    sum_works(rank, size, group)
    error = error_of(lambda: dist.all_reduce(filled(rank, 3 + rank, 1), group=group, async_op=True).wait(
        datetime.timedelta(seconds=TIMEOUT_S)))  # In the call, if another rank has found the mismatch.
    assert isinstance(error, (tutti.InvalidUsage, tutti.RemoteError)) and error.rank == rank, repr(error)
    assert "float32, sum)" in str(error), str(error)
    error_of(lambda: dist.all_reduce(filled(rank, 3, 1), group=group))


@case
def zz_death_of_a_rank_ends_calls(rank, size):
    """The host waits for the stream, so another thread has to find the death."""
    if size > 1:
        return
    with tempfile.NamedTemporaryFile() as store:
        victim = subprocess.Popen([sys.executable, "-B", __file__, "--victim", store.name], stdin=subprocess.PIPE)
        group = tutti.torch.process_group(dist.FileStore(store.name, 2), 0, 2, datetime.timedelta(seconds=TIMEOUT_S))
        tensor = filled(rank, 5, 1)
        group.allreduce([tensor]).wait()
        is_full(tensor, 2)
        work = group.allreduce([tensor])
        victim.stdin.close()
        torch.cuda.synchronize(device(rank))
        error = error_of(work.wait)
        assert isinstance(error, tutti.RemoteError) and error.peer == 1, repr(error)
        assert work.is_completed()
        victim.wait()


def die(path):
    """Rank 1 of zz_death_of_a_rank_ends_calls."""
    group = tutti.torch.process_group(dist.FileStore(path, 2), 1, 2, datetime.timedelta(seconds=TIMEOUT_S))
    group.allreduce([filled(1, 5, 1)]).wait()
    torch.cuda.synchronize()
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)


def has_gpus():
    """Asks in another process, because CUDA does not work after fork()."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(torch.cuda.is_available)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--victim"]:
        die(sys.argv[2])
    if not has_gpus():
        print("skipped: no GPU: run it on one, or in the preset ptx")
        sys.exit(77)
    sys.exit(main())
