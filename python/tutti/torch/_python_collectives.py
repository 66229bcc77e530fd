"""Collectives of the Python path."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, List, Sequence

import torch
import torch.distributed as dist

from tutti._api import c
from tutti._errors import InvalidArgument, check

from ._errors import argument_error
from ._python_tensors import (ScopedReduction, blocks, check_count, check_equally_many, check_tensors, copy_from, elements_of,
                              empty_flat, finish, flat_copy, is_misplaced, only, overlap, readable, reducible_type, writable)

Tensors = Sequence[torch.Tensor]
MAX_SPARSE_DIMENSIONS = 64


def _all_reduce(dense: torch.Tensor, op: Any, comm: Any) -> None:
    with ScopedReduction(op, dense, comm) as reduction:
        address = dense.data_ptr()
        check(c.all_reduce(address, address, dense.numel(), reducible_type(dense), reduction, comm, None))


def _reduce_scatter(sent: torch.Tensor, received: torch.Tensor, op: Any, comm: Any) -> None:
    with ScopedReduction(op, sent, comm) as reduction:
        check(c.reduce_scatter(sent.data_ptr(), received.data_ptr(), received.numel(), reducible_type(sent), reduction, comm,
                               None))


def _all_gather(sent: torch.Tensor, received: torch.Tensor, comm: Any) -> None:
    element = elements_of(sent)
    check(c.all_gather(sent.data_ptr(), received.data_ptr(), sent.numel() * element.per_element, element.type, comm, None))


def _exchange(sent: torch.Tensor, sent_blocks: Any, received: torch.Tensor, counts: Sequence[int], comm: Any) -> None:
    element = elements_of(sent)
    sent_counts, sent_offsets = sent_blocks
    received_counts, received_offsets = blocks([count * element.per_element for count in counts])
    check(c.all_to_all_v(sent.data_ptr(), sent_counts, sent_offsets, received.data_ptr(), received_counts, received_offsets,
                         element.type, comm, None))


def _same_block(sent: torch.Tensor, ranks: int) -> Any:
    """Returns counts and displacements that send the whole tensor to each rank."""
    array = ctypes.c_size_t * ranks
    return array(*[sent.numel() * elements_of(sent).per_element] * ranks), array(*[0] * ranks)


def _text_of_sparse(shape: List[int]) -> str:
    return (f"shape {shape[5:5 + shape[4]]} with {shape[3]} sparse dimensions and {shape[2]} bytes per element (tutti_type "
            f"{shape[1]})")


def _gather_counts(tensor: torch.Tensor, count: int, ranks: int, comm: Any) -> List[int]:
    """Returns how many elements each rank has. Raises on all ranks if their tensors do not fit.

    Ranks exchange what SparseShape in native/sparse.cc describes.
    """
    own = [count, elements_of(tensor).type, tensor.element_size(), tensor.sparse_dim(), tensor.dim(), *tensor.shape]
    sent = torch.tensor(own + [0] * (5 + MAX_SPARSE_DIMENSIONS - len(own)), device="cpu")
    received = torch.empty(ranks, sent.numel(), dtype=torch.int64, device="cpu")
    _all_gather(sent, received, comm)
    shapes: List[List[int]] = received.tolist()
    for rank, shape in enumerate(shapes):
        if shape[1:] != shapes[0][1:]:
            raise InvalidArgument(f"the tensor of rank 0 has {_text_of_sparse(shapes[0])}, that of rank {rank} "
                                  f"{_text_of_sparse(shape)}; pass equal shapes and types on all ranks")
    return [shape[0] for shape in shapes]


def _sum_sparse(tensor: torch.Tensor, ranks: int, comm: Any) -> None:
    tensor_in = tensor.coalesce()
    indices, values = tensor_in.indices().t().contiguous(), tensor_in.values().contiguous()
    rows = _gather_counts(tensor, values.shape[0], ranks, comm)
    parts = []
    for piece in (indices, values):
        row = piece[0:1].numel() if piece.shape[0] else max(1, int(torch.Size(piece.shape[1:]).numel()))
        everything = torch.empty((sum(rows), *piece.shape[1:]), dtype=piece.dtype, device="cpu")
        _exchange(piece, _same_block(piece, ranks), everything, [count * row for count in rows], comm)
        parts.append(everything.split(rows))
    result = functools.reduce(torch.add, (torch.sparse_coo_tensor(i.t(), v, tensor.shape, device="cpu") for i, v in zip(*parts)))
    tensor.copy_(result.coalesce())


class Collectives:
    """Methods of a backend. Tensors of all types and layouts; see the C API for the meaning."""

    _rank: int
    _size: int
    _start: Any

    def broadcast(self, tensors: Tensors, opts: Any = None) -> Any:
        tensor = only("broadcast", tensors)
        root = self._root("broadcast", opts)

        def call(comm: Any) -> None:
            dense = readable(tensor) if self._rank == root else writable(tensor)
            element = elements_of(dense)
            check(c.broadcast(dense.data_ptr(), dense.data_ptr(), dense.numel() * element.per_element, element.type, root, comm,
                              None))
            if self._rank != root:
                finish(dense, tensor)

        return self._start("broadcast", opts, list(tensors), call, writes=self._rank != root)

    def allreduce(self, tensors: Tensors, opts: Any = None) -> Any:
        if len(tensors) == 1 and tensors[0].is_sparse:
            return self.allreduce_sparse(tensors, opts)
        tensor = only("all_reduce", tensors)
        reducible_type(tensor)
        op = dist.ReduceOp.SUM if opts is None else opts.reduceOp

        def call(comm: Any) -> None:
            dense = readable(tensor)
            _all_reduce(dense, op, comm)
            finish(dense, tensor)

        return self._start("all_reduce", opts, list(tensors), call)

    def allreduce_sparse(self, tensors: Tensors, opts: Any = None) -> Any:
        tensor = tensors[0]
        if tensor.layout != torch.sparse_coo or tensor.device.type != "cpu":
            raise argument_error(f"all_reduce: the tensor is {tensor.layout} on {tensor.device}; only sparse COO tensors on the "
                                 "CPU are allowed")
        if opts is not None and opts.reduceOp != dist.ReduceOp.SUM:
            raise argument_error("all_reduce: sparse tensors can only be summed; use SUM")
        if tensor.dim() > MAX_SPARSE_DIMENSIONS:
            raise argument_error(f"all_reduce: the sparse tensor has {tensor.dim()} dimensions; at most {MAX_SPARSE_DIMENSIONS} "
                                 "are allowed")
        return self._start("sparse_all_reduce", opts, list(tensors), lambda comm: _sum_sparse(tensor, self._size, comm))

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Any:
        if not tensors:
            raise argument_error("all_reduce_coalesced: the list of tensors is empty; pass at least one")
        check_tensors("all_reduce_coalesced", tensors, tensors[0])
        op = dist.ReduceOp.SUM if opts is None else opts.reduceOp

        def call(comm: Any) -> None:
            flat = flat_copy(tensors)
            _all_reduce(flat, op, comm)
            copy_from(flat, tensors)

        return self._start("all_reduce", opts, list(tensors), call)

    def reduce(self, tensors: Tensors, opts: Any = None) -> Any:
        tensor = only("reduce", tensors)
        kind, op, root = reducible_type(tensor), opts.reduceOp, self._root("reduce", opts)

        def call(comm: Any) -> None:
            dense = readable(tensor)
            with ScopedReduction(op, dense, comm) as reduction:
                check(c.reduce(dense.data_ptr(), dense.data_ptr(), dense.numel(), kind, reduction, root, comm, None))
            if self._rank == root:
                finish(dense, tensor)

        return self._start("reduce", opts, list(tensors), call, writes=self._rank == root)

    def all_gather_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        return self.all_gather_single_coalesced([output], [given], opts)

    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Any:
        check_equally_many("all_gather", outputs, inputs)
        for output, given in zip(outputs, inputs):
            check_tensors("all_gather", [output, given], given)
            check_count("all_gather", output, given.numel() * self._size)

        def call(comm: Any) -> None:
            for output, given in zip(outputs, inputs):
                sent, dense = readable(given), writable(output)
                _all_gather(sent.clone() if is_misplaced(sent, dense, self._rank) else sent, dense, comm)
                finish(dense, output)

        return self._start("all_gather", opts, list(outputs), call)

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Any:
        given = only("all_gather", inputs)
        if len(outputs) != 1:
            raise argument_error(f"all_gather: got {len(outputs)} lists of outputs; pass one")
        tensors = self._list("all_gather", outputs[0], given)
        check_count("all_gather", tensors[self._rank], given.numel())
        counts = [tensor.numel() for tensor in tensors]

        def call(comm: Any) -> None:
            sent, flat = readable(given), empty_flat(tensors)
            if len(set(counts)) == 1:
                _all_gather(sent, flat, comm)
            else:
                _exchange(sent, _same_block(sent, self._size), flat, counts, comm)
            copy_from(flat, tensors)

        return self._start("all_gather", opts, list(tensors), call)

    def allgather_coalesced(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Any:
        if len(outputs) != self._size:
            raise argument_error(f"all_gather_coalesced: got {len(outputs)} lists of outputs; pass {self._size} (world_size)")
        for tensors in outputs:
            check_equally_many("all_gather_coalesced", tensors, inputs)
            for output, given in zip(tensors, inputs):
                check_tensors("all_gather_coalesced", [output, given], given)
                check_count("all_gather_coalesced", output, given.numel())

        def call(comm: Any) -> None:
            for i, given in enumerate(inputs):
                tensors = [of_rank[i] for of_rank in outputs]
                flat = empty_flat(tensors)
                _all_gather(readable(given), flat, comm)
                copy_from(flat, tensors)

        return self._start("all_gather", opts, [list(tensors) for tensors in outputs], call)

    def reduce_scatter_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        return self.reduce_scatter_single_coalesced([output], [given], opts)

    def reduce_scatter_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Any:
        check_equally_many("reduce_scatter", outputs, inputs)
        for output, given in zip(outputs, inputs):
            check_tensors("reduce_scatter", [output, given], given)
            check_count("reduce_scatter", given, output.numel() * self._size)
            reducible_type(output)

        def call(comm: Any) -> None:
            for output, given in zip(outputs, inputs):
                sent, dense = readable(given), writable(output)
                _reduce_scatter(sent.clone() if is_misplaced(dense, sent, self._rank) else sent, dense, opts.reduceOp, comm)
                finish(dense, output)

        return self._start("reduce_scatter", opts, list(outputs), call)

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None) -> Any:
        output = only("reduce_scatter", outputs)
        if len(inputs) != 1:
            raise argument_error(f"reduce_scatter: the list of inputs must have {self._size} tensors (world_size)")
        tensors = self._list("reduce_scatter", inputs[0], output)
        check_count("reduce_scatter", tensors[self._rank], output.numel())
        reducible_type(output)
        equal = len({tensor.numel() for tensor in tensors}) == 1

        def call(comm: Any) -> None:
            dense = writable(output)
            if equal:
                _reduce_scatter(flat_copy(tensors), dense, opts.reduceOp, comm)
            else:
                self._reduce_each(tensors, dense, opts.reduceOp, comm)
            finish(dense, output)

        return self._start("reduce_scatter", opts, list(outputs), call)

    def _reduce_each(self, tensors: Tensors, dense: torch.Tensor, op: Any, comm: Any) -> None:
        """Rank i receives the sum of tensor i. The tensors have different sizes."""
        for root, tensor in enumerate(tensors):
            sent = readable(tensor)
            with ScopedReduction(op, sent, comm) as reduction:
                check(c.reduce(sent.data_ptr(), dense.data_ptr(), sent.numel(), reducible_type(sent), reduction, root, comm,
                               None))

    def _root(self, operation: str, opts: Any) -> int:
        if not 0 <= opts.rootRank < self._size:
            raise argument_error(f"{operation}: root {opts.rootRank} is out of range; ranks are 0..{self._size - 1}")
        return opts.rootRank  # type: ignore[no-any-return]

    def _list(self, operation: str, tensors: Tensors, other: torch.Tensor) -> Tensors:
        if len(tensors) != self._size:
            raise argument_error(f"{operation}: the list has {len(tensors)} tensors; it must have {self._size} (world_size)")
        check_tensors(operation, tensors, other)
        return tensors

    def _root_list(self, operation: str, lists: Any, other: torch.Tensor, root: int) -> Tensors:
        given = lists[0] if lists else []
        if self._rank != root:
            if given:
                raise argument_error(f"{operation}: a list of tensors is given on a rank that is not the root; pass it on the "
                                     "root only")
            return []
        for tensor in self._list(operation, given, other):
            check_count(operation, tensor, other.numel())
        return given  # type: ignore[no-any-return]

    def gather(self, outputs: Any, inputs: Tensors, opts: Any = None) -> Any:
        given, root = only("gather", inputs), self._root("gather", opts)
        tensors = self._root_list("gather", outputs, given, root)

        def call(comm: Any) -> None:
            sent, element = readable(given), elements_of(given)
            flat = empty_flat(tensors) if tensors else None
            check(c.gather(sent.data_ptr(), None if flat is None else flat.data_ptr(), sent.numel() * element.per_element,
                           element.type, root, comm, None))
            if flat is not None:
                copy_from(flat, tensors)

        return self._start("gather", opts, list(tensors), call)

    def scatter(self, outputs: Tensors, inputs: Any, opts: Any = None) -> Any:
        output, root = only("scatter", outputs), self._root("scatter", opts)
        tensors = self._root_list("scatter", inputs, output, root)

        def call(comm: Any) -> None:
            dense, element = writable(output), elements_of(output)
            flat = flat_copy(tensors) if tensors else None
            check(c.scatter(None if flat is None else flat.data_ptr(), dense.data_ptr(), dense.numel() * element.per_element,
                            element.type, root, comm, None))
            finish(dense, output)

        return self._start("scatter", opts, list(outputs), call)

    def all_to_all_single(self, output: torch.Tensor, given: torch.Tensor, output_rows: Sequence[int],
                          input_rows: Sequence[int], opts: Any = None) -> Any:
        check_tensors("all_to_all", [output, given], given)
        if not output.dim() or not given.dim():
            raise argument_error("all_to_all: a tensor has no dimensions; pass tensors with rows")
        received_counts, sent_counts = self._counts(output, output_rows), self._counts(given, input_rows)

        def call(comm: Any) -> None:
            element, sent, dense = elements_of(given), readable(given), writable(output)
            if overlap(sent, dense):
                sent = sent.clone()
            # Some ranks may pass rows and others none, so all make the same call.
            _exchange(sent, blocks([count * element.per_element for count in sent_counts]), dense, received_counts, comm)
            finish(dense, output)

        return self._start("all_to_all", opts, [output], call)

    def _counts(self, tensor: torch.Tensor, rows: Sequence[int]) -> List[int]:
        """Returns the elements of the block of each rank."""
        if not rows:
            if tensor.numel() % self._size or tensor.shape[0] % self._size:
                raise argument_error("Tensor's dim 0 does not divide equally across group size")
            return [tensor.numel() // self._size] * self._size
        if len(rows) != self._size:
            raise argument_error(f"Number of tensor splits not equal to group size: {len(rows)} instead of {self._size}")
        if sum(rows) != tensor.shape[0] or min(rows) < 0:
            raise argument_error(f"Split sizes {list(rows)} doesn't match total dim 0 size {tensor.shape[0]}")
        row = tensor.numel() // tensor.shape[0] if tensor.shape[0] else 1
        return [count * row for count in rows]

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Any:
        if not inputs:
            raise argument_error(f"all_to_all: the list of inputs is empty; it must have {self._size} tensors (world_size)")
        self._list("all_to_all", inputs, inputs[0])
        self._list("all_to_all", outputs, inputs[0])

        def call(comm: Any) -> None:
            per_element = elements_of(inputs[0]).per_element
            received = empty_flat(outputs)
            _exchange(flat_copy(inputs), blocks([tensor.numel() * per_element for tensor in inputs]), received,
                      [tensor.numel() for tensor in outputs], comm)
            copy_from(received, outputs)

        return self._start("all_to_all", opts, list(outputs), call)

    # Names of these methods before PyTorch 2.15, and in ProcessGroup.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single
