"""Point-to-point messages: tags, any source, layouts, and messages beside collectives."""

import datetime
import sys

import torch
import torch.distributed as dist
from harness import case, main, raises, refuses, same, values

import tutti.torch


@case
def ring(rank, size):
    for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn):
        for shape in ((), (0,), (5,), (3, 4), (300000,)):
            received = torch.zeros_like(values(0, shape, dtype))
            request = dist.irecv(received, (rank - 1) % size)
            sent = dist.isend(values(rank, shape, dtype), (rank + 1) % size)
            request.wait()
            sent.wait()
            same(received, values((rank - 1) % size, shape, dtype), f"{dtype} {shape}")


@case
def blocking_pairs(rank, size):
    if rank + 1 < size and rank % 2 == 0:
        dist.send(torch.full((1000,), 7.0), rank + 1)
    if rank % 2 == 1:
        received = torch.zeros(1000)
        assert dist.recv(received, rank - 1) == rank - 1
        same(received, torch.full((1000,), 7.0))


@case
def tags_match_out_of_order(rank, size):
    if size < 2 or rank > 1:
        return
    if rank == 0:
        works = [dist.isend(torch.full((10,), float(tag)), 1, tag=tag) for tag in range(5)]
        for work in works:
            work.wait()
    else:
        for tag in reversed(range(5)):
            received = torch.zeros(10)
            dist.recv(received, 0, tag=tag)
            same(received, torch.full((10,), float(tag)))


@case
def any_source_is_named(rank, size):
    if rank == 0:
        seen = []
        for _ in range(size - 1):
            received = torch.zeros(3)
            source = dist.recv(received)
            same(received, torch.full((3,), float(source)))
            seen.append(source)
        assert sorted(seen) == list(range(1, size)), seen
    else:
        dist.send(torch.full((3,), float(rank)), 0)


@case
def layouts(rank, size):
    matrix = values(rank, (4, 6), torch.float32)
    received = torch.zeros(6, 4).t()
    request = dist.irecv(received, (rank - 1) % size)
    dist.isend(matrix.t().contiguous().t(), (rank + 1) % size).wait()
    request.wait()
    same(received, values((rank - 1) % size, (4, 6), torch.float32))


@case
def batches_do_not_deadlock(rank, size):
    received = [torch.zeros(50000) for _ in range(size)]
    operations = [dist.P2POp(dist.irecv, received[peer], peer) for peer in range(size) if peer != rank]
    operations += [dist.P2POp(dist.isend, torch.full((50000,), float(rank)), peer) for peer in range(size) if peer != rank]
    if not operations:
        return
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    for peer in range(size):
        if peer != rank:
            same(received[peer], torch.full((50000,), float(peer)))


@case
def dropped_sends_arrive(rank, size):
    for i in range(20):
        dist.isend(torch.full((40000,), float(i)), (rank + 1) % size)  # The work is dropped at once.
    for i in range(20):
        received = torch.zeros(40000)
        dist.irecv(received, (rank - 1) % size).wait()
        same(received, torch.full((40000,), float(i)))


@case
def receives_wait_beside_collectives(rank, size):
    received = torch.zeros(10)
    request = dist.irecv(received, (rank - 1) % size, tag=9)
    tensor = torch.ones(1000)
    dist.all_reduce(tensor)
    same(tensor, torch.full((1000,), float(size)))
    assert not request.is_completed()
    dist.barrier()  # No rank has sent before this point.
    dist.isend(torch.full((10,), float(rank)), (rank + 1) % size, tag=9).wait()
    request.wait()
    assert request.is_completed()
    same(received, torch.full((10,), float((rank - 1) % size)))


@case
def futures_of_receives(rank, size):
    received = torch.zeros(10)
    future = dist.irecv(received, (rank - 1) % size).get_future().then(lambda f: f.value()[0] + 1)
    dist.isend(torch.full((10,), float(rank)), (rank + 1) % size).wait()
    same(future.wait(), torch.full((10,), float((rank - 1) % size + 1)))


@case
def callbacks_of_receives_call_collectives(rank, size):
    """The library's thread, in which collectives are refused, must not run them."""
    def add(future):
        tensor = future.value()[0]
        dist.all_reduce(tensor)
        return tensor

    future = dist.irecv(torch.zeros(10), (rank - 1) % size, tag=14).get_future().then(add)
    dist.barrier()  # No rank has sent before this point, so that no callback runs in this thread.
    dist.isend(torch.full((10,), float(rank)), (rank + 1) % size, tag=14)
    same(future.wait(), torch.full((10,), float(sum(range(size)))))


@case
def receive_with_timeout_raises(rank, size):
    received = torch.zeros(10)
    request = dist.irecv(received, (rank - 1) % size, tag=11)
    raises(lambda: request.wait(datetime.timedelta(milliseconds=30)), "recv")
    dist.barrier()
    dist.isend(torch.full((10,), 2.0), (rank + 1) % size, tag=11).wait()
    request.wait()
    same(received, torch.full((10,), 2.0))


@case
def receives_into_shared_elements_are_refused(rank, size):
    shared = torch.zeros(1).expand(4)
    for receive in (lambda: dist.irecv(shared, rank, tag=40), lambda: dist.irecv(shared, tag=40)):
        refuses(receive, "share memory", "[4]")
    received = torch.zeros(4)
    work = dist.irecv(received, rank, tag=40)
    dist.isend(torch.ones(1).expand(4), rank, tag=40).wait()
    work.wait()
    same(received, torch.ones(4))


@case
def receive_whose_copy_fails_raises(rank, size):
    for has_future in (False, True):
        received = torch.zeros(2, 4)[:, ::2]
        work = dist.irecv(received, rank, tag=41)
        future = work.get_future() if has_future else None
        received.resize_(3)
        dist.isend(torch.ones(2, 2), rank, tag=41)
        for wait in (work.wait, future.wait) if has_future else (work.wait,):
            raises(wait, "size of tensor")


@case
def wrong_peers_and_tags_are_refused(rank, size):
    group = dist.group.WORLD
    for peer in (-1, size):
        refuses(lambda: group.recv([torch.zeros(1)], peer, 0), "out of range")
        refuses(lambda: group.send([torch.zeros(1)], peer, 0), "out of range")
    refuses(lambda: group.recv([torch.zeros(1)], 0, -1), "negative")


@case
def short_timeouts_pass(rank, size):
    if tutti.torch.path() == "C++":
        return  # It gets whole milliseconds, and 0 is no timeout.
    request = dist.irecv(torch.zeros(10), (rank - 1) % size, tag=13)
    raises(lambda: request.wait(datetime.timedelta(microseconds=1)), "recv")


@case
def different_sizes_are_refused(rank, size):
    if size < 2 or rank > 1:
        return
    if rank == 0:
        work = dist.isend(torch.zeros(100000), 1, tag=12)
        raises(work.wait, "100000")
    else:
        raises(lambda: dist.recv(torch.zeros(5), 0, tag=12), "100000", "5")


if __name__ == "__main__":
    sys.exit(main())
