"""Every collective, type and reduction, against NumPy, on 1 to 4 ranks."""

import threading
import unittest

import numpy
import ranks
import tutti
from tutti import _arrays

COUNT = 37


def dtypes():
    """Returns NumPy's type of each type of the C API."""
    return {kind: _arrays.numpy_dtype(kind) for kind in tutti.Type}


def data(rank, dtype, shape=(COUNT,)):
    """Returns small numbers, whose sums and products over 4 ranks are exact in each type."""
    dtype, generator = numpy.dtype(dtype), numpy.random.default_rng(rank)
    numbers = generator.integers(0, 3, shape)
    return (numbers + 1j * generator.integers(0, 3, shape) if dtype.kind == "c" else numbers).astype(dtype)


def same(result, expected, *what):
    assert result.dtype == expected.dtype and result.shape == expected.shape, (what, result, expected)
    assert result.tobytes() == expected.tobytes(), (what, result, expected)


def is_defined(op, dtype):
    """Returns whether the C API has the reduction for the type."""
    if op in ("band", "bor", "bxor"):
        return dtype.kind in "iub"
    return op not in {"b": ("avg",), "c": ("min", "max")}.get(dtype.kind, ())


def reduced(op, inputs):
    """Returns the reduction that the C API documents. Sums and products are exact, so their order does not matter."""
    dtype = inputs[0].dtype
    if dtype.kind == "b":
        op = {"sum": "bor", "max": "bor", "prod": "band", "min": "band"}.get(op, op)
    if op in ("band", "bor", "bxor"):
        return {"band": numpy.bitwise_and, "bor": numpy.bitwise_or, "bxor": numpy.bitwise_xor}[op].reduce(inputs)
    wide = [part.astype(numpy.complex128 if dtype.kind == "c" else numpy.float64) for part in inputs]
    folded = {"sum": numpy.sum, "avg": numpy.mean, "prod": numpy.prod, "min": numpy.min, "max": numpy.max}[op](wide, axis=0)
    return folded.astype(dtype)


def check_reductions():
    with tutti.Communicator() as comm:
        for kind, dtype in dtypes().items():
            for op in tutti.Reduction:
                if not is_defined(op.name, dtype):
                    check_refusal(comm, op, dtype)
                elif op.name != "avg" or dtype.kind in "iu" or comm.ranks != 3:  # Thirds are rounded.
                    check_reduction(comm, op, dtype)


def check_refusal(comm, op, dtype):
    for call in (comm.all_reduce, lambda array, op: comm.reduce(array, 0, op), comm.reduce_scatter):
        try:
            call(numpy.zeros(comm.ranks, dtype), op)
            raise AssertionError((call, op, dtype))
        except tutti.InvalidArgument as error:
            assert f"{op.name} of " in error.message, error


def check_reduction(comm, op, dtype):
    n = comm.ranks
    inputs = [data(rank, dtype) for rank in range(n)]
    mine = inputs[comm.rank].copy()
    expected = reduced(op.name, inputs)
    same(comm.all_reduce(mine, op), expected, "all_reduce", op, dtype)
    same(mine, inputs[comm.rank], "input unchanged")
    same(comm.all_reduce(mine, op.name, out=mine), expected, "all_reduce in place", op, dtype)
    mine = inputs[comm.rank].copy()
    root = op % n  # Each rank is the root for some reduction.
    result = comm.reduce(mine, root, op)
    assert (result is None) == (comm.rank != root)
    if result is not None:
        same(result, expected, "reduce", op, dtype)
    blocks = [data(rank, dtype, (n, 5)) for rank in range(n)]
    same(comm.reduce_scatter(blocks[comm.rank], op), reduced(op.name, blocks)[comm.rank], "reduce_scatter", op, dtype)


def check_copies():
    with tutti.Communicator() as comm:
        for kind, dtype in dtypes().items():
            check_copy(comm, dtype, kind % comm.ranks)


def check_copy(comm, dtype, root):
    n, rank = comm.ranks, comm.rank
    inputs = [data(peer, dtype, (5, 2)) for peer in range(n)]
    same(comm.all_gather(inputs[rank]), numpy.stack(inputs), "all_gather", dtype)
    blocks = [data(peer, dtype, (n, 3)) for peer in range(n)]
    same(comm.all_to_all(blocks[rank]), numpy.stack([block[rank] for block in blocks]), "all_to_all", dtype)
    copied = inputs[rank].copy()
    assert comm.broadcast(copied, root) is copied
    same(copied, inputs[root], "broadcast", dtype)
    gathered = comm.gather(inputs[rank], root)
    assert (gathered is None) == (rank != root)
    if rank == root:
        same(gathered, numpy.stack(inputs), "gather", dtype)
        same(comm.scatter(blocks[root], root), blocks[root][rank], "scatter", dtype)
    else:
        same(comm.scatter(root=root, out=numpy.empty(3, dtype)), blocks[root][rank], "scatter", dtype)
    received = numpy.empty((5, 2), dtype)
    with tutti.group():
        comm.send(inputs[rank], (rank + 1) % n)
        comm.recv(received, (rank - 1) % n)
    same(received, inputs[rank - 1], "send and recv", dtype)


def check_unequal():
    with tutti.Communicator() as comm:
        n, rank = comm.ranks, comm.rank
        counts = [peer + 1 for peer in range(n)]  # Each rank sends peer + 1 elements to each peer.
        mine = numpy.arange(sum(counts)) + 100 * rank
        starts = [sum(counts[:peer]) for peer in range(n)]
        expected = [numpy.arange(rank + 1) + starts[rank] + 100 * peer for peer in range(n)]
        result = comm.all_to_all_v(mine, counts, [rank + 1] * n)
        same(result, numpy.concatenate(expected), "all_to_all_v")
        out = numpy.full(n * (rank + 3), -1)
        places = [peer * (rank + 3) + 1 for peer in range(n)]
        comm.all_to_all_v(mine, counts, [rank + 1] * n, out, recv_displacements=places)
        for peer, place in enumerate(places):
            same(out[place:place + rank + 1], expected[peer], "all_to_all_v with displacements")
            assert out[place - 1] == -1
        good, bad = [0] * n, [0] * (n - 1) + [-1]
        for name, lists in (("send_counts", (bad, good, good)), ("recv_counts", (good, bad, good)),
                            ("send_displacements", (good, good, bad))):
            try:
                comm.all_to_all_v(mine, lists[0], lists[1], send_displacements=lists[2])
                raise AssertionError(name)
            except tutti.InvalidArgument as error:
                assert error.message == f"{name}[{n - 1}] is -1; it must be 0 or more", error


def check_in_place():
    with tutti.Communicator() as comm:
        n, rank = comm.ranks, comm.rank
        blocks = [data(peer, "int32", (n, 3)) for peer in range(n)]
        for call, expected in (
                (lambda own: comm.all_gather(own[rank], out=own), numpy.stack([blocks[peer][peer] for peer in range(n)])),
                (lambda own: comm.gather(own[rank], 0, out=own), numpy.stack([blocks[peer][peer] for peer in range(n)])),
                (lambda own: comm.all_to_all(own, out=own), numpy.stack([block[rank] for block in blocks]))):
            own = blocks[rank].copy()
            if call(own) is not None:
                same(own, expected, "in place")
        own = blocks[rank].copy()
        same(comm.reduce_scatter(own, out=own[rank]), sum(blocks)[rank], "reduce_scatter in place")
        own = blocks[rank].copy()
        same(comm.scatter(own, 0, out=own[rank]), blocks[0][rank], "scatter in place")
        own = blocks[rank].copy()
        comm.reduce(own, n - 1, out=own)
        same(own, sum(blocks) if rank == n - 1 else blocks[rank], "reduce in place")


def check_overlap():
    with tutti.Communicator() as comm:
        n, rank = comm.ranks, comm.rank
        own = numpy.zeros(3 * n + 1)
        block, rows, others, counts = own[1:4], own[:3 * n], own[1:], [3] * n
        for name, call in (("all_reduce", lambda: comm.all_reduce(block, out=own[:3])),
                           ("reduce", lambda: comm.reduce(block, rank, out=own[:3])),
                           ("all_gather", lambda: comm.all_gather(block, out=rows)),
                           ("gather", lambda: comm.gather(block, rank, out=rows)),
                           ("reduce_scatter", lambda: comm.reduce_scatter(rows, out=block)),
                           ("scatter", lambda: comm.scatter(rows, rank, out=block)),
                           ("all_to_all", lambda: comm.all_to_all(rows, out=others)),
                           ("all_to_all_v", lambda: comm.all_to_all_v(rows, counts, counts, others))):
            try:
                call()
                raise AssertionError(name)
            except tutti.InvalidArgument as error:
                assert error.operation == name and "out overlaps the array" in error.message, error
        pair = numpy.ones(6)
        comm.all_reduce(pair[:3], out=pair[3:])
        same(pair, numpy.array([1.0] * 3 + [n] * 3), "all_reduce into the next array")


def check_factors():
    with tutti.Communicator() as comm:
        for kind, dtype in dtypes().items():
            if "float8" in kind.name or kind.name == "bool":
                refuse_factor(comm, 1, kind.name, f"factors of type {kind.name} are not supported")
                continue
            unit = 1 + 2j if dtype.kind == "c" else 1
            op = comm.pre_mul_sum(unit * (comm.rank + 1), kind.name)
            wide = numpy.dtype("complex128" if dtype.kind == "c" else "float64")
            expected = sum(unit * (rank + 1) * data(rank, dtype).astype(wide) for rank in range(comm.ranks)).astype(dtype)
            same(comm.all_reduce(data(comm.rank, dtype), op), expected, "pre_mul_sum", kind)
            op.destroy()
        for factor, kind in ((1j, "float32"), (1j, "int8"), (300, "uint8"), (2.5, "int32"), ("x", "complex64"), (1e300, "bfloat16")):
            refuse_factor(comm, factor, kind, f"factor {factor!r} is not a number of type {kind}")


def refuse_factor(comm, factor, kind, words):
    try:
        comm.pre_mul_sum(factor, kind)
        raise AssertionError((factor, kind))
    except tutti.InvalidArgument as error:
        assert error.operation == "pre_mul_sum" and words in error.message, error


def check_all():
    """Runs all checks in one process, since starting it takes longer than most of them."""
    for check in (check_reductions, check_copies, check_unequal, check_in_place, check_overlap, check_factors):
        check()


class Collectives(unittest.TestCase):
    def test_results_equal_those_of_numpy(self):
        for size in (1, 2, 3, 4):
            with self.subTest(ranks=size):
                ranks.processes(check_all, size)

    def test_barrier_waits_for_the_last_rank(self):
        others, entered = threading.Semaphore(0), []

        def enter(comm):
            if comm.rank == 0:
                for _ in range(comm.ranks - 1):
                    others.acquire()
                entered.append(0)
            else:
                others.release()
            comm.barrier()
            return list(entered)

        self.assertEqual(ranks.threads(enter, 3), [[0]] * 3)

    def test_zero_elements_are_allowed(self):
        for result in ranks.threads(lambda comm: comm.all_gather(numpy.empty((0, 2), "float32")), 2):
            self.assertEqual((result.shape, result.dtype), ((2, 0, 2), numpy.dtype("float32")))


if __name__ == "__main__":
    unittest.main()
