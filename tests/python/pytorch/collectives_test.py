"""Collectives of each type, reduction and layout, compared with a result that each rank computes itself."""

import sys

import torch
import torch.distributed as dist
from harness import case, main, raises, same, values
from tutti.torch import attach_residual

INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
FLOATS8 = [torch.float8_e4m3fn, torch.float8_e5m2]
OTHERS = [torch.bool, torch.complex64, torch.complex128]
SHAPES = [(), (0,), (1,), (3, 5), (1031,), (70000,)]


def widened(tensors):
    """Returns tensors of a type that PyTorch's own operations have."""
    dtype = tensors[0].dtype
    wide = torch.float32 if dtype in FLOATS8 else torch.int64 if dtype in UNSIGNED else dtype
    return torch.stack([t.to(wide) for t in tensors])


def reduced(op, tensors):
    """Returns the expected result of a reduction."""
    dtype, stack = tensors[0].dtype, widened(tensors)
    if op == dist.ReduceOp.SUM:
        result = stack.sum(0)
    elif op == dist.ReduceOp.PRODUCT:
        result = stack.prod(0)
    elif op == dist.ReduceOp.MIN:
        result = stack.amin(0)
    elif op == dist.ReduceOp.MAX:
        result = stack.amax(0)
    elif op == dist.ReduceOp.AVG:
        result = stack.sum(0) / len(tensors)
    else:
        raise AssertionError(op)
    return result.to(dtype)


def inputs(size, shape, dtype):
    return [values(rank, shape, dtype) for rank in range(size)]


def layouts(tensor):
    """Yields the tensor in memory layouts: contiguous, with gaps, transposed, and expanded from its own rows."""
    yield tensor.clone()
    if tensor.dim() >= 1:
        wide = torch.empty(*tensor.shape[:-1], tensor.shape[-1] * 2, dtype=tensor.dtype)
        gaps = wide[..., ::2]
        gaps.copy_(tensor)
        yield gaps
    if tensor.dim() == 2:
        yield tensor.t().contiguous().t()


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


@case
def all_reduce_complex(rank, size):
    for dtype in (torch.complex64, torch.complex128):
        check_all_reduce(rank, size, dtype, [dist.ReduceOp.SUM])
    raises(lambda: dist.all_reduce(torch.ones(3, dtype=torch.complex64), op=dist.ReduceOp.MAX))


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
    raises(lambda: dist.all_reduce(torch.ones(3), op=dist.ReduceOp.BAND))


@case
def all_reduce_with_factor(rank, size):
    for factor in (2.0, torch.tensor([3.0])):
        tensor = torch.full((10,), float(rank + 1))
        dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(factor))
        same(tensor, torch.full((10,), float(factor) * size * (size + 1) / 2))


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
def reduce_scatter_lists(rank, size):
    for dtype in (torch.float32, torch.int16, torch.float64):
        for layout in range(2):
            blocks = [list(layouts(values(rank * 10 + to, (4, 3), dtype)))[layout] for to in range(size)]
            output = list(layouts(torch.zeros(4, 3, dtype=dtype)))[layout]
            dist.reduce_scatter(output, blocks)
            same(output, reduced(dist.ReduceOp.SUM, [values(r * 10 + rank, (4, 3), dtype) for r in range(size)]))


@case
def reduce_scatter_unequal_sizes(rank, size):
    blocks = [values(rank * 10 + to, (to + 1,), torch.float32) for to in range(size)]
    output = torch.zeros(rank + 1)
    dist.reduce_scatter(output, blocks)
    same(output, reduced(dist.ReduceOp.SUM, [values(r * 10 + rank, (rank + 1,), torch.float32) for r in range(size)]))


@case
def reduce_scatter_tensors(rank, size):
    parts = inputs(size, (size * 3, 2), torch.float32)
    expected = reduced(dist.ReduceOp.MAX, parts)[rank * 3:rank * 3 + 3]
    for tensor in layouts(parts[rank]):
        output = torch.zeros(3, 2)
        dist.reduce_scatter_tensor(output, tensor, op=dist.ReduceOp.MAX)
        same(output, expected)
    outputs = [torch.zeros(3, 2), torch.zeros(3, 2)]
    with dist._coalescing_manager():
        for output in outputs:
            dist.reduce_scatter_tensor(output, parts[rank], op=dist.ReduceOp.MAX)
    for output in outputs:
        same(output, expected)


@case
def all_to_all_single(rank, size):
    for dtype in (torch.float32, torch.int64, torch.complex64, torch.bool):
        parts = inputs(size, (size * 2, 3), dtype)
        expected = torch.cat([part[rank * 2:rank * 2 + 2] for part in parts])
        for tensor in layouts(parts[rank]):
            output = torch.zeros_like(expected)
            dist.all_to_all_single(output, tensor)
            same(output, expected)


@case
def all_to_all_single_unequal(rank, size):
    # Rank i sends i + j rows to rank j.
    parts = [values(r, (sum(r + j for j in range(size)), 2), torch.float32) for r in range(size)]
    rows = [[r + j for j in range(size)] for r in range(size)]
    received = [parts[r].split(rows[r])[rank] for r in range(size)]
    output = torch.zeros(sum(len(block) for block in received), 2)
    dist.all_to_all_single(output, parts[rank], [len(block) for block in received], rows[rank])
    same(output, torch.cat(received))


@case
def all_to_all_lists(rank, size):
    for layout in range(2):
        blocks = [list(layouts(values(rank * 10 + to, (rank + to + 1, 2), torch.float32)))[layout] for to in range(size)]
        outputs = [list(layouts(torch.zeros(rank + r + 1, 2)))[layout] for r in range(size)]
        dist.all_to_all(outputs, blocks)
        for r, got in enumerate(outputs):
            same(got, values(r * 10 + rank, (rank + r + 1, 2), torch.float32))


@case
def all_to_all_lists_with_empty_blocks(rank, size):
    blocks = [torch.full((3 if to == 0 else 0,), float(rank)) for to in range(size)]
    outputs = [torch.zeros(3 if rank == 0 else 0) for _ in range(size)]
    dist.all_to_all(outputs, blocks)
    for r, got in enumerate(outputs):
        same(got, torch.full((3 if rank == 0 else 0,), float(r)))


@case
def gather_and_scatter(rank, size):
    for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn):
        for root in range(size):
            for layout in range(2):
                parts = [list(layouts(values(r, (4, 3), dtype)))[layout] for r in range(size)]
                outputs = [torch.zeros_like(part) for part in parts] if rank == root else None
                dist.gather(parts[rank], outputs, dst=root)
                for got, part in zip(outputs or [], parts):
                    same(got, part, f"gather {dtype}")
                output = torch.zeros_like(parts[rank])
                dist.scatter(output, parts if rank == root else None, src=root)
                same(output, parts[rank], f"scatter {dtype}")


@case
def objects(rank, size):
    everything = [None] * size
    dist.all_gather_object(everything, {"rank": rank, "text": "x" * rank * 100})
    assert [item["rank"] for item in everything] == list(range(size))
    shared = [{"from": rank}, "text"]
    dist.broadcast_object_list(shared, src=size - 1)
    assert shared[0] == {"from": size - 1}
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(rank * 2, gathered, dst=0)
    assert gathered is None or gathered == [r * 2 for r in range(size)]
    mine = [None]
    dist.scatter_object_list(mine, [r * 3 for r in range(size)] if rank == 0 else None, src=0)
    assert mine == [rank * 3]


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
    raises(lambda: dist.all_gather_into_tensor(torch.zeros(size * 2 + 1), torch.zeros(2)))
    raises(lambda: dist.reduce_scatter_tensor(torch.zeros(2), torch.zeros(size * 2 + 1)))
    raises(lambda: dist.all_gather([torch.zeros(2)] * size, torch.zeros(3)))
    raises(lambda: dist.all_gather_coalesced([[torch.zeros(2)]] * (size + 1), [torch.zeros(2)]), "lists of outputs")
    raises(lambda: dist.all_gather_coalesced([[]] * size, [torch.zeros(2)]), "all_gather_coalesced")
    raises(lambda: attach_residual(torch.zeros(8), torch.zeros(4)), "4 elements")
    raises(lambda: attach_residual(torch.zeros(8), torch.zeros(8, dtype=torch.float64)), "float64")
    raises(lambda: attach_residual(torch.zeros(8, 8).t(), torch.zeros(8, 8)), "buffer", "contiguous")
    raises(lambda: dist.all_to_all_single(torch.zeros(size, 2), torch.zeros(size, 2), [size + 1] * size, [1] * size))


if __name__ == "__main__":
    sys.exit(main())
