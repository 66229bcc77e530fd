"""Reduce-scatter, all-to-all, gather, scatter and objects."""

import sys

import torch
import torch.distributed as dist
from harness import case, main, refuses, same, values
from inputs import inputs, layouts, reduced


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
def all_to_all_single_with_rows_on_some_ranks(rank, size):
    # Rank 0 keeps more rows than it sends, so that it must pass rows; all other ranks pass none.
    parts = [values(r, (size + (3 if r == 0 else 0), 2), torch.float32) for r in range(size)]
    rows = [4] + [1] * (size - 1)
    for given in (rows if rank == 0 else None, rows if rank == 0 else [1] * size):
        output = torch.zeros_like(parts[rank])
        dist.all_to_all_single(output, parts[rank], given, given)
        blocks = [parts[r].split(rows if r == 0 else [1] * size)[rank] for r in range(size)]
        same(output, torch.cat(blocks))
    tensor = torch.arange(size) + 10 * rank
    dist.all_to_all_single(tensor, tensor)
    same(tensor, torch.arange(size) * 10 + rank, "in place")


@case
def input_in_the_output_of_all_gather(rank, size):
    """The input is the rank's own block, another one, or parts of two."""
    for start in {rank * 1000, (rank + 1) % size * 1000, 500 if size > 1 else 0}:
        expected = torch.empty(size, 1000)
        dist.all_gather_into_tensor(expected, torch.arange(1000.0) + start + rank)
        for equal in (True, False):
            last = 0 if equal else 1  # Sizes differ by ranks unless `equal`.
            sizes = [1000 + (last if r == size - 1 else 0) for r in range(size)]
            output = torch.zeros(sum(sizes))
            given = output[start:start + sizes[rank]] if start + sizes[rank] <= len(output) else output[-sizes[rank]:]
            given[:1000] = expected[rank]
            dist.all_gather(list(output.split(sizes)), given)
            for r, block in enumerate(output.split(sizes)):
                same(block[:1000], expected[r], f"list, input at {start}, block {r}")
        output = torch.zeros(size * 1000)
        output[start:start + 1000] = expected[rank]
        dist.all_gather_into_tensor(output, output[start:start + 1000])
        same(output.view(size, 1000), expected, f"tensor, input at {start}")


@case
def output_in_the_input_of_reduce_scatter(rank, size):
    for start in {rank * 1000, (rank + 1) % size * 1000, 500 if size > 1 else 0}:
        given = values(rank, (size * 1000,), torch.float32)
        expected = sum(values(r, (size * 1000,), torch.float32)[rank * 1000:rank * 1000 + 1000] for r in range(size))
        dist.reduce_scatter_tensor(given[start:start + 1000], given)
        same(given[start:start + 1000], expected, f"output at {start}")


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
def all_to_all_lists_in_place(rank, size):
    for count in (3, 300000):
        flat = torch.cat([values(rank * 10 + to, (count,), torch.float32) for to in range(size)])
        expected = [values(r * 10 + rank, (count,), torch.float32) for r in range(size)]
        same_list, views, reversed_views = list(flat.clone().chunk(size)), flat.clone().chunk(size), flat.clone().chunk(size)
        dist.all_to_all(same_list, same_list)
        dist.all_to_all([view[:] for view in views], list(views))
        dist.all_to_all(list(reversed_views)[::-1], list(reversed_views))
        for r in range(size):
            same(same_list[r], expected[r], f"one list of {count}")
            same(views[r], expected[r], f"views of {count}")
            same(reversed_views[size - 1 - r], expected[r], f"reversed views of {count}")


@case
def all_to_all_single_with_overlap(rank, size):
    buffer = torch.arange(size + 1) + 10 * rank
    dist.all_to_all_single(buffer[:size], buffer[1:])
    same(buffer[:size], torch.arange(size) * 10 + rank + 1)


@case
def expanded_inputs(rank, size):
    row = torch.full((1, 3), float(rank))
    block = row.expand(2, 3)
    everything = torch.cat([torch.full((2, 3), float(r)) for r in range(size)])
    output = torch.zeros(2 * size, 3)
    dist.all_gather_into_tensor(output, block)
    same(output, everything, "all_gather")
    output = torch.zeros(2 * size, 3)
    dist.all_to_all_single(output, row.expand(2 * size, 3))
    same(output, everything, "all_to_all_single")
    output = torch.zeros(2, 3)
    dist.reduce_scatter_tensor(output, row.expand(2 * size, 3))
    same(output, torch.full((2, 3), float(sum(range(size)))), "reduce_scatter")
    for root in range(size):
        tensor = block if rank == root else torch.zeros(2, 3)
        dist.broadcast(tensor, root)
        same(tensor, torch.full((2, 3), float(root)), "broadcast")
        tensor = block.clone() if rank == root else block
        dist.reduce(tensor, root)
        same(tensor, torch.full((2, 3), float(sum(range(size)) if rank == root else rank)), "reduce")


@case
def outputs_with_shared_elements_are_refused(rank, size):
    if size == 1:
        return
    shared, one = torch.zeros(1).expand(size), torch.zeros(1)
    for call in (lambda: dist.all_reduce(shared), lambda: dist.reduce(shared, rank),
                 lambda: dist.broadcast(shared, (rank + 1) % size), lambda: dist.all_gather_into_tensor(shared, one),
                 lambda: dist.all_gather([shared] * size, torch.zeros(size)),
                 lambda: dist.reduce_scatter_tensor(shared, torch.zeros(size * size)),
                 lambda: dist.all_to_all_single(shared, torch.zeros(size)), lambda: dist.all_to_all([shared] * size, [one] * size)):
        refuses(call, "share memory", f"[{size}]")


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


if __name__ == "__main__":
    sys.exit(main())
