"""Collectives of each type, reduction and layout, compared with a result that each rank computes itself."""

import sys

import torch
import torch.distributed as dist
from harness import case, main, raises, refuses, same, values
from inputs import FLOATS, FLOATS8, INTEGERS, OTHERS, SHAPES, UNSIGNED, inputs, layouts, reduced

from tutti.torch import Options, attach_residual, compress_hook, path


def check_all_reduce(rank, size, dtype, ops):
    for shape in SHAPES:
        parts = inputs(size, shape, dtype)
        for op in ops:
            for tensor in layouts(parts[rank]):
                dist.all_reduce(tensor, op=op)
                same(tensor, reduced(op, parts), f"{dtype} {op} {shape}")


OPS = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]


@case
def all_reduce_integers(rank, size):
    for dtype in INTEGERS:
        check_all_reduce(rank, size, dtype, OPS)


@case
def all_reduce_unsigned(rank, size):
    for dtype in UNSIGNED:
        check_all_reduce(rank, size, dtype, OPS)


@case
def all_reduce_floats(rank, size):
    for dtype in FLOATS:
        check_all_reduce(rank, size, dtype, OPS)


@case
def all_reduce_float8(rank, size):
    for dtype in FLOATS8:
        check_all_reduce(rank, size, dtype, [dist.ReduceOp.SUM, dist.ReduceOp.MIN, dist.ReduceOp.MAX])


@case
def all_reduce_average(rank, size):
    for dtype in (torch.float32, torch.float64):
        parts = inputs(size, (1031,), dtype)
        tensor = parts[rank].clone()
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
        assert torch.allclose(tensor, reduced(dist.ReduceOp.AVG, parts)), dtype


def all_reduce_of_group(tensor, op):
    """dist.all_reduce() passes complex sums as reals, and refuses other reductions."""
    options = dist.AllreduceOptions()
    options.reduceOp = op
    dist.group.WORLD.allreduce([tensor], options).wait()


@case
def all_reduce_complex(rank, size):
    for dtype in (torch.complex64, torch.complex128):
        check_all_reduce(rank, size, dtype, [dist.ReduceOp.SUM])
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.AVG):
            parts = inputs(size, (70,), dtype)
            tensor = parts[rank].clone()
            all_reduce_of_group(tensor, op)
            assert torch.allclose(tensor, reduced(op, parts)), f"{dtype} {op}"
    raises(lambda: all_reduce_of_group(torch.ones(3, dtype=torch.complex64), dist.ReduceOp.MAX), "max of complex64")


@case
def all_reduce_bool(rank, size):
    parts = inputs(size, (100,), torch.bool)
    stack = torch.stack(parts)
    for op, expected in ((dist.ReduceOp.MAX, stack.any(0)), (dist.ReduceOp.MIN, stack.all(0)),
                         (dist.ReduceOp.SUM, stack.any(0)), (dist.ReduceOp.PRODUCT, stack.all(0))):
        tensor = parts[rank].clone()
        dist.all_reduce(tensor, op=op)
        same(tensor, expected, str(op))


@case
def all_reduce_bits(rank, size):
    for dtype in [*INTEGERS, torch.bool]:
        parts = inputs(size, (100,), dtype)
        for op, function in ((dist.ReduceOp.BAND, torch.bitwise_and), (dist.ReduceOp.BOR, torch.bitwise_or),
                             (dist.ReduceOp.BXOR, torch.bitwise_xor)):
            expected = parts[0]
            for part in parts[1:]:
                expected = function(expected, part)
            tensor = parts[rank].clone()
            dist.all_reduce(tensor, op=op)
            same(tensor, expected, f"{dtype} {op}")
    raises(lambda: dist.all_reduce(torch.ones(3), op=dist.ReduceOp.BAND), "band of float32")


@case
def all_reduce_with_factor(rank, size):
    for factor in (2.0, torch.tensor([3.0])):
        tensor = torch.full((10,), float(rank + 1))
        dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(factor))
        same(tensor, torch.full((10,), float(factor) * size * (size + 1) / 2))
    tensor = torch.full((10,), float(rank + 1), dtype=torch.float64)
    dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(0.1))  # Not rounded to float32.
    assert abs(tensor[0].item() - 0.1 * size * (size + 1) / 2) < 1e-14, tensor


@case
def all_reduce_coalesced(rank, size):
    shapes = [(3,), (), (4, 5), (0,)]
    tensors = [values(rank, shape, torch.float32) for shape in shapes]
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    for tensor, shape in zip(tensors, shapes):
        same(tensor, reduced(dist.ReduceOp.SUM, inputs(size, shape, torch.float32)))


@case
def all_reduce_sparse(rank, size):
    for dense_dims in ((), (3,)):
        # Ranks have different numbers of elements, and share some of them.
        indices = torch.tensor([[i, (i * 2) % 5] for i in range(rank + 1)]).t()
        data = torch.ones(rank + 1, *dense_dims) * (rank + 1)
        tensor = torch.sparse_coo_tensor(indices, data, (8, 5, *dense_dims))
        expected = torch.zeros(8, 5, *dense_dims)
        for other in range(size):
            for i in range(other + 1):
                expected[i, (i * 2) % 5] += other + 1
        dist.all_reduce(tensor)
        same(tensor.to_dense(), expected, "sparse")


@case
def all_reduce_sparse_compares_shapes(rank, size):
    def sparse(*shape, dtype=torch.float32, dense=0):
        return torch.zeros(shape, dtype=dtype).to_sparse(len(shape) - dense)

    if size == 1:
        return
    last = rank == size - 1
    refuses(lambda: dist.all_reduce(sparse(4) if last else sparse(10)), "sparse_all_reduce (sequence number ",
            "): the tensor of rank 0 has shape [10]", f"rank {size - 1} shape [4]")
    refuses(lambda: dist.all_reduce(sparse(4, 3, dense=int(last))), "with 2 sparse dimensions", "with 1 sparse dimensions")
    refuses(lambda: dist.all_reduce(sparse(4, dtype=torch.float64 if last else torch.float32)), "8 bytes per element")
    tensor = torch.ones(3).to_sparse()
    dist.all_reduce(tensor)
    same(tensor.to_dense(), torch.full((3,), float(size)))


@case
def all_reduce_sparse_results_take_part_in_autograd(rank, size):
    tensor = torch.ones(3).to_sparse()
    dist.all_reduce(tensor)
    parameter = torch.ones(3, requires_grad=True)
    (tensor._values() * parameter).sum().backward()
    same(parameter.grad, torch.full((3,), float(size)))


@case
def reduce_to_each_root(rank, size):
    for root in range(size):
        parts = inputs(size, (3, 5), torch.int32)
        for tensor in layouts(parts[rank]):
            dist.reduce(tensor, root)
            if rank == root:
                same(tensor, reduced(dist.ReduceOp.SUM, parts), f"root {root}")


@case
def broadcast_from_each_root(rank, size):
    for dtype in [*INTEGERS, *UNSIGNED, *FLOATS, *FLOATS8, *OTHERS]:
        for root in range(size):
            for shape in SHAPES[:4]:
                expected = values(root, shape, dtype)
                for tensor in layouts(expected if rank == root else torch.zeros_like(expected)):
                    dist.broadcast(tensor, root)
                    same(tensor, expected, f"{dtype} {shape} root {root}")


@case
def all_gather_lists(rank, size):
    for dtype in [*INTEGERS, *FLOATS, *OTHERS, torch.uint16, torch.float8_e5m2]:
        for shape in SHAPES[:4]:
            parts = inputs(size, shape, dtype)
            for tensor in layouts(parts[rank]):
                outputs = [torch.zeros_like(part) for part in parts]
                dist.all_gather(outputs, tensor)
                for got, part in zip(outputs, parts):
                    same(got, part, f"{dtype} {shape}")


@case
def all_gather_adjacent_outputs(rank, size):
    parts = inputs(size, (7,), torch.float32)
    flat = torch.zeros(7 * size)
    dist.all_gather(list(flat.chunk(size)), parts[rank])
    same(flat, torch.cat(parts))


@case
def all_gather_unequal_sizes(rank, size):
    parts = [values(r, (r + 1, 2), torch.float32) for r in range(size)]
    outputs = [torch.zeros_like(part) for part in parts]
    dist.all_gather(outputs, parts[rank])
    for got, part in zip(outputs, parts):
        same(got, part)


@case
def all_gather_into_tensor(rank, size):
    for dtype in (torch.float32, torch.int64, torch.bool):
        parts = inputs(size, (2, 3), dtype)
        for tensor in layouts(parts[rank]):
            output = torch.zeros(2 * size, 3, dtype=dtype)
            dist.all_gather_into_tensor(output, tensor)
            same(output, torch.cat(parts))
        stacked = torch.zeros(size, 2, 3, dtype=dtype)
        dist.all_gather_into_tensor(stacked, parts[rank])
        same(stacked, torch.stack(parts))


@case
def all_gather_coalesced(rank, size):
    shapes = [(2,), (3, 2)]
    mine = [values(rank, shape, torch.float32) for shape in shapes]
    outputs = [torch.zeros(shape[0] * size, *shape[1:]) for shape in shapes]
    with dist._coalescing_manager():
        for output, tensor in zip(outputs, mine):
            dist.all_gather_into_tensor(output, tensor)
    for output, shape in zip(outputs, shapes):
        same(output, torch.cat(inputs(size, shape, torch.float32)))
    lists = [[torch.zeros(shape) for shape in shapes] for _ in range(size)]
    dist.all_gather_coalesced(lists, mine)
    for other, tensors in enumerate(lists):
        for got, shape in zip(tensors, shapes):
            same(got, values(other, shape, torch.float32))


@case
def default_device_is_not_the_cpu(rank, size):
    ones, lists = torch.ones(3), [torch.zeros(3) for _ in range(size)]
    sparse = torch.ones(3).to_sparse()
    with torch.device("meta"):
        dist.barrier()
        dist.all_gather(lists, ones)
        dist.all_reduce(sparse)
        dist.all_reduce(ones)
    same(ones, torch.full((3,), float(size)))
    same(lists[-1], torch.ones(3))
    same(sparse.to_dense(), torch.full((3,), float(size)))


@case
def tensors_with_gradients(rank, size):
    parameter = torch.nn.Parameter(values(rank, (4, 3), torch.float32))
    with torch.no_grad():
        dist.all_reduce(parameter.t())
    expected = reduced(dist.ReduceOp.SUM, inputs(size, (4, 3), torch.float32))
    same(parameter.detach(), expected)
    assert parameter.requires_grad and parameter.is_leaf
    with torch.inference_mode():
        tensor = values(rank, (4, 3), torch.float32).t()
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    same(tensor.t(), expected)


@case
def wrong_arguments(rank, size):
    refuses(lambda: dist.all_gather_into_tensor(torch.zeros(size * 2 + 1), torch.zeros(2)), "all_gather: ", f"{size * 2 + 1}")
    refuses(lambda: dist.reduce_scatter_tensor(torch.zeros(2), torch.zeros(size * 2 + 1)), "reduce_scatter: ", f"{size * 2 + 1}")
    refuses(lambda: dist.all_gather([torch.zeros(2)] * size, torch.zeros(3)), "all_gather: ", "2", "3")
    refuses(lambda: dist.all_gather_coalesced([[torch.zeros(2)]] * (size + 1), [torch.zeros(2)]), "lists of outputs")
    refuses(lambda: dist.all_gather_coalesced([[]] * size, [torch.zeros(2)]), "all_gather_coalesced")
    refuses(lambda: attach_residual(torch.zeros(8), torch.zeros(4)), "4 elements")
    refuses(lambda: attach_residual(torch.zeros(8), torch.zeros(8, dtype=torch.float64)), "float64")
    refuses(lambda: attach_residual(torch.zeros(8, 8).t(), torch.zeros(8, 8)), "buffer", "contiguous")
    given = torch.zeros(size, 2)
    for rows in ([size + 1] * size, [-1, size + 1, *[0] * (size - 2)], [0] * size):
        refuses(lambda: dist.all_to_all_single(torch.zeros(size, 2), given, rows[:size], [1] * size),
                f"Split sizes {rows[:size]} doesn't match total dim 0 size {size}")
    refuses(lambda: dist.all_to_all_single(torch.zeros(size, 2), given, [], [1] * (size + 1)), "Number of tensor splits",
            f"{size + 1} instead of {size}")
    if size > 1:
        refuses(lambda: dist.all_to_all_single(torch.zeros(size + 1, 2), given), "does not divide equally across group size")
    for rows in ([], [1] * size):
        refuses(lambda: dist.all_to_all_single(torch.tensor(1.0), torch.tensor(1.0), rows, rows), "a tensor has no dimensions")
    if path() == "C++":
        return  # PyTorch's dispatcher refuses calls without tensors.
    group, one = dist.group.WORLD, [torch.zeros(1)]
    refuses(lambda: group.allreduce_coalesced([]), "the list of tensors is empty")
    refuses(lambda: group.allgather([], one), "got 0 lists of outputs")
    refuses(lambda: group.reduce_scatter(one, []), f"the list of inputs must have {size} tensors")
    refuses(lambda: group.alltoall(one * size, []), "the list of inputs is empty")
    refuses(lambda: dist.all_reduce(torch.zeros(3, device="meta")), "on meta")


@case
def wrong_roots_are_refused(rank, size):
    group = dist.group.WORLD
    broadcast, scatter = dist.BroadcastOptions(), dist.ScatterOptions()
    for root in (-1, size):
        broadcast.rootRank = scatter.rootRank = root
        problem = f"root {root} is out of range"
        refuses(lambda: group.broadcast([torch.zeros(3)], broadcast), "broadcast: " + problem)
        refuses(lambda: group.scatter([torch.zeros(3)], [[torch.zeros(3)] * size], scatter), "scatter: " + problem)


@case
def options_are_checked(rank, size):
    for wrong in (
        {"compression": "int9"},
        {"compression": None},
        {"compression_rounding": "up"},
        {"max_relative_error": 1.0},
        {"max_relative_error": float("nan")},
        {"max_relative_error": "1%"},
        {"compression": "int8", "max_relative_error": 0.1},
        {"compression_seed": 0.5},
    ):
        raises(lambda: Options(**wrong), *wrong)
    raises(lambda: compress_hook("int9"), "int9", "int8_b32")


if __name__ == "__main__":
    sys.exit(main())
