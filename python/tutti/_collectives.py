"""Collectives, send and recv on arrays. Communicator inherits them."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any, Callable, Sequence, Tuple

from . import _types
from ._api import NotCopyable, Reduction, Type, c
from ._arrays import Described, describe, kind_of
from ._errors import Error, InvalidArgument, InvalidUsage, Unsupported, last_error
from ._groups import thread
from ._streams import Stream

_OPERATIONS = _types.OPERATIONS
Output = Tuple[Any, int, Any]  # Array, its address, and the owner of its memory.


class PreMulSum(NotCopyable):
    """A reduction that multiplies this rank's input by a factor and then sums. Communicator.pre_mul_sum() creates it."""

    def __init__(self, number: int, handle: int | None) -> None:
        self.number = number
        self._comm = handle

    def destroy(self) -> None:
        """Frees the reduction. Calls that use it continue. Closing the communicator frees it, too."""
        c.reduction_destroy(self.number, self._comm)


class Collectives(NotCopyable):
    """Operations of a communicator.

    Arrays: NumPy arrays, or objects with the buffer protocol or DLPack (such as tensors of PyTorch), in host memory,
    contiguous in C order, of a type in tutti.Type. Others raise InvalidArgument. For memory of GPUs pass tutti.Buffer.
    out: receives the result. Only its number of elements matters, not its shape. It overlaps the input only in place, as
    each method states. None: a new array, of NumPy or PyTorch.
    op: "sum", "prod", "min", "max", "avg", "band", "bor", "bxor", a tutti.Reduction, or the result of pre_mul_sum(). Bitwise
    ones are for integers and bool. Complex types have "sum", "prod", "avg" and pre_mul_sum(). bool has neither "avg" nor
    pre_mul_sum(); its "sum" and "max" are logical or, its "prod" and "min" logical and.
    stream: the call returns at once and runs in the stream, which keeps the arrays alive. None: the call blocks until
    this rank's part is done. For communicators on a GPU: a cudaStream_t as an int; None is the legacy default stream.
    Shapes: n is the number of ranks, `shape` that of this rank's array.
    """

    _handle: int | None
    _owner: Any
    _describe: Callable[[Any, bool], Described] = staticmethod(describe)
    rank: int
    ranks: int
    device: int

    def all_reduce(self, array: Any, op: Any = "sum", out: Any = None, stream: Any = None) -> Any:
        """Returns the elementwise reduction of the arrays of all ranks. Result: `shape`. In place: out=array."""
        given = send, count, code, owner = self._input("all_reduce", array, out is array)
        recv, out_owner = send, owner
        if out is not array:
            out, recv, out_owner = self._output("all_reduce", array, out, None, given, count)
        status = c.all_reduce(send, recv, count, code, self._operation("all_reduce", op), self._handle, _handle(stream))
        if status or stream is not None or thread.depth:
            self._end("all_reduce", status, stream, (owner, out_owner))
        return out

    def all_gather(self, array: Any, out: Any = None, stream: Any = None) -> Any:
        """Returns the arrays of all ranks, ordered by rank. Result: (n, *shape).

        In place: `array` is out[rank].
        """
        given = send, count, code, owner = self._input("all_gather", array)
        total, offset = self.ranks * count, -self.rank * count
        out, recv, out_owner = self._output("all_gather", array, out, self._stacked, given, total, offset)
        status = c.all_gather(send, recv, count, code, self._handle, _handle(stream))
        self._end("all_gather", status, stream, (owner, out_owner))
        return out

    def reduce_scatter(self, array: Any, op: Any = "sum", out: Any = None, stream: Any = None) -> Any:
        """Returns block `rank` of the elementwise reduction of the arrays. Array: (n, *block). Result: `block`.

        With out=, an array of any shape that has n times as many elements. In place: `out` is array[rank].
        """
        given = send, total, code, owner = self._input("reduce_scatter", array)
        count = self._part("reduce_scatter", total)
        out, recv, out_owner = self._output("reduce_scatter", array, out, self._block, given, count, self.rank * count)
        number = self._operation("reduce_scatter", op)
        status = c.reduce_scatter(send, recv, count, code, number, self._handle, _handle(stream))
        self._end("reduce_scatter", status, stream, (owner, out_owner))
        return out

    def broadcast(self, array: Any, root: int = 0, stream: Any = None) -> Any:
        """Copies the root's array into the arrays of all other ranks, and returns `array`. All have `shape`."""
        root = self._int("broadcast", "root", root)
        address, count, code, owner = self._input("broadcast", array, writable=self.rank != root)
        status = c.broadcast(address, address, count, code, root, self._handle, _handle(stream))
        self._end("broadcast", status, stream, owner)
        return array

    def reduce(self, array: Any, root: int = 0, op: Any = "sum", out: Any = None, stream: Any = None) -> Any:
        """Returns the elementwise reduction of the arrays on the root, None elsewhere. Result: `shape`. In place: out=array."""
        root = self._int("reduce", "root", root)
        given = send, count, code, owner = self._input("reduce", array)
        recv: int | None
        out_owner: Any
        out, recv, out_owner = (self._output("reduce", array, out, None, given, count) if self.rank == root
                                else (None, None, None))
        status = c.reduce(send, recv, count, code, self._operation("reduce", op), root, self._handle, _handle(stream))
        self._end("reduce", status, stream, (owner, out_owner))
        return out

    def gather(self, array: Any, root: int = 0, out: Any = None, stream: Any = None) -> Any:
        """Returns the arrays of all ranks on the root, ordered by rank; None elsewhere. Result: (n, *shape).

        In place on the root: `array` is out[root].
        """
        root = self._int("gather", "root", root)
        given = send, count, code, owner = self._input("gather", array)
        total, offset = self.ranks * count, -root * count
        recv: int | None
        out_owner: Any
        out, recv, out_owner = (self._output("gather", array, out, self._stacked, given, total, offset) if self.rank == root
                                else (None, None, None))
        status = c.gather(send, recv, count, code, root, self._handle, _handle(stream))
        self._end("gather", status, stream, (owner, out_owner))
        return out

    def scatter(self, array: Any = None, root: int = 0, out: Any = None, stream: Any = None) -> Any:
        """Returns block `rank` of the root's array. Array of the root: (n, *block). Result: `block`.

        Other ranks pass `out`, and no array. In place on the root: `out` is array[root].
        """
        root = self._int("scatter", "root", root)
        if self.rank == root:
            send: int | None
            given = send, total, code, owner = self._input("scatter", array)
            count = self._part("scatter", total)
            out, recv, out_owner = self._output("scatter", array, out, self._block, given, count, root * count)
        else:
            if out is None:
                raise self._refusal("scatter", "out is None; ranks other than the root must pass out=")
            send, owner = None, None
            recv, count, code, out_owner = self._input("scatter", out, writable=True)
        status = c.scatter(send, recv, count, code, root, self._handle, _handle(stream))
        self._end("scatter", status, stream, (owner, out_owner))
        return out

    def all_to_all(self, array: Any, out: Any = None, stream: Any = None) -> Any:
        """Sends block i of `array` to rank i. Returns the blocks from all ranks, ordered by rank.

        Array and result: (n, *block). With out=, arrays of any shapes with as many elements. In place: out=array.
        """
        given = send, total, code, owner = self._input("all_to_all", array)
        count = self._part("all_to_all", total)
        out, recv, out_owner = self._output("all_to_all", array, out, self._of_blocks, given, total)
        status = c.all_to_all(send, recv, count, code, self._handle, _handle(stream))
        self._end("all_to_all", status, stream, (owner, out_owner))
        return out

    def all_to_all_v(self, array: Any, send_counts: Sequence[int], recv_counts: Sequence[int], out: Any = None, *,
                     send_displacements: Sequence[int] | None = None, recv_displacements: Sequence[int] | None = None,
                     stream: Any = None) -> Any:
        """Like all_to_all with blocks of different sizes: block i of `array` has send_counts[i] elements.

        Counts and displacements: n elements each. The count that i sends to j must equal the count that j receives.
        displacements: positions of the blocks, in elements. None: each block follows the one before.
        Result: (sum(recv_counts),) if `out` is None.
        """
        name = "all_to_all_v"
        send, total, code, owner = self._input(name, array)
        self._check_not_negative("send_counts", send_counts)
        self._check_not_negative("recv_counts", recv_counts)
        send_blocks = self._blocks("send", send_counts, send_displacements, total)
        if out is None:
            out = kind_of(array).new(array, (sum(recv_counts),))
        recv, out_total, out_code, out_owner = self._input(name, out, writable=True)
        if out_code != code:
            raise self._refusal(name, _mismatch("type " + _name(out_code), _name(code)))
        if _overlap(send, total, recv, out_total, code):
            raise self._refusal(name, "out overlaps the array; all_to_all_v cannot work in place: pass another array")
        recv_blocks = self._blocks("recv", recv_counts, recv_displacements, out_total)
        status = c.all_to_all_v(send, *send_blocks, recv, *recv_blocks, code, self._handle, _handle(stream))
        self._end(name, status, stream, (owner, out_owner))
        return out

    def send(self, array: Any, peer: int, stream: Any = None) -> None:
        """Sends an array to `peer`, whose recv must have as many elements of the same type.

        Blocks, possibly until the peer's recv; use tutti.group() for exchanges. The n-th send matches the n-th recv.
        """
        peer = self._int("send", "peer", peer)
        address, count, code, owner = self._input("send", array)
        self._end("send", c.send(address, count, code, peer, self._handle, _handle(stream)), stream, owner)

    def recv(self, out: Any, peer: int, stream: Any = None) -> Any:
        """Receives an array from `peer` into `out`, and returns `out`."""
        peer = self._int("recv", "peer", peer)
        address, count, code, owner = self._input("recv", out, writable=True)
        self._end("recv", c.recv(address, count, code, peer, self._handle, _handle(stream)), stream, owner)
        return out

    def barrier(self, stream: Any = None) -> None:
        """Waits until all ranks have called it: an all_reduce of one byte."""
        if self.device >= 0:
            raise Unsupported("the communicator is on a GPU, where barrier() has no memory; use all_reduce with a Buffer",
                              operation="barrier", rank=self.rank)
        byte = ctypes.c_uint8()
        address = ctypes.addressof(byte)
        status = c.all_reduce(address, address, 1, Type.uint8, Reduction.max, self._handle, _handle(stream))
        self._end("barrier", status, stream, byte)

    def pre_mul_sum(self, factor: complex, type: Any) -> PreMulSum:
        """Returns a reduction for `op`, which multiplies this rank's input by `factor` and then sums.

        factor: a number of this type.
        type: that of the calls, as a tutti.Type, a name such as "float32", or a NumPy dtype. Not bool and float8.
        """
        try:
            code = _types.type_of(type)
            scalar = _types.scalar(factor, code)
        except InvalidArgument as error:
            raise self._refusal("pre_mul_sum", error.message) from None
        number = ctypes.c_int32()
        status = c.reduction_create_pre_mul_sum(scalar, code, self._handle, number)
        if status:
            raise self._error(status, "pre_mul_sum")
        return PreMulSum(number.value, self._handle)

    def _input(self, operation: str, array: Any, writable: bool = False) -> Described:
        try:
            return self._describe(array, writable)
        except InvalidArgument as error:
            raise self._refusal(operation, error.message) from None

    def _output(self, operation: str, array: Any, out: Any, shape: Any, given: Described, count: int,
                offset: int = 0) -> Output:
        """Returns `out`, or a new array like `array` (with the shape that `shape` returns, if any).

        given: the description of `array`. count: of `out`. offset: that of `out` from the array in place, in elements.
        """
        send, total, code, _ = given
        try:
            if out is None:
                kind = kind_of(array)
                out = kind.new(array, kind.shape(array) if shape is None else shape(kind.shape(array)))
            recv, out_count, out_code, owner = self._describe(out, True)
        except InvalidArgument as error:
            raise self._refusal(operation, error.message) from None
        if out_count != count:
            raise self._refusal(operation, _mismatch(f"{out_count} elements", str(count)))
        if out_code != code:
            raise self._refusal(operation, _mismatch("type " + _name(out_code), _name(code)))
        if _overlap(send, total, recv, count, code) and recv != send + offset * _types.SIZES[code]:
            raise self._refusal(operation, "out overlaps the array; pass memory of its own, or work in place as described by "
                                f"help(tutti.Communicator.{operation})")
        return out, recv, owner

    def _operation(self, operation: str, op: Any) -> int:
        if isinstance(op, str) and op in _OPERATIONS:
            return _OPERATIONS[op]
        if isinstance(op, Reduction):
            return int(op)
        if isinstance(op, PreMulSum):
            return op.number
        raise self._refusal(operation, f"op {op!r} is unknown; valid: {', '.join(_OPERATIONS)}, or the result of pre_mul_sum()")

    def _stacked(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (self.ranks, *shape)

    def _block(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if not shape or shape[0] != self.ranks:
            raise InvalidArgument(f"the array has shape {shape}; without out= its first dimension must be {self.ranks}, "
                                  f"the number of ranks: use reshape({self.ranks}, -1), or pass out=")
        return shape[1:]

    def _of_blocks(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (self.ranks, *self._block(shape))

    def _part(self, operation: str, total: int) -> int:
        count, rest = divmod(total, self.ranks)
        if rest:
            raise self._refusal(operation, f"the array has {total} elements; the number must be a multiple of {self.ranks}, "
                                "the number of ranks")
        return count

    def _blocks(self, side: str, counts: Sequence[int], displacements: Sequence[int] | None, total: int) -> Any:
        """Returns counts and displacements for C, after a check that all blocks lie in the array."""
        if displacements is None:
            displacements = [0, *itertools.accumulate(counts[:-1])]
        if len(counts) != self.ranks or len(displacements) != self.ranks:
            raise self._refusal("all_to_all_v", f"{side}_counts and {side}_displacements have {len(counts)} and "
                                f"{len(displacements)} elements; they must have {self.ranks}, one for each rank")
        self._check_not_negative(side + "_displacements", displacements)
        for count, displacement in zip(counts, displacements):
            if displacement + count > total:
                raise self._refusal("all_to_all_v", f"a {side} block of {count} elements at {displacement} exceeds the array "
                                    f"of {total} elements")
        array = ctypes.c_size_t * self.ranks
        return array(*counts), array(*displacements)

    def _check_not_negative(self, name: str, numbers: Sequence[int]) -> None:
        for i, number in enumerate(numbers):
            if number < 0:
                raise self._refusal("all_to_all_v", f"{name}[{i}] is {number}; it must be 0 or more")

    def _int(self, operation: str, name: str, value: Any) -> int:
        try:
            return _types.int_of(name, value)
        except InvalidArgument as error:
            raise self._refusal(operation, error.message) from None

    def _refusal(self, operation: str, message: str) -> Error:
        return InvalidArgument(message, operation=operation, rank=self.rank)

    def _error(self, status: int, operation: str) -> Error:
        if self._handle is None:
            return InvalidUsage("the communicator is closed; create another one", operation=operation, rank=self.rank)
        return last_error(status, self.rank)

    def _end(self, operation: str, status: int, stream: Any, owners: Any) -> None:
        """Raises the error of a call, or keeps its arrays until it is done."""
        if status:
            raise self._error(status, operation)
        comm = ((self._owner or self)._handle or 0, self.rank)  # A view may be gone when an error is found.
        if thread.depth:
            thread.keep(stream if isinstance(stream, Stream) else None, owners, comm)
        elif isinstance(stream, Stream):
            stream.keep(owners, comm)


def _handle(stream: Any) -> Any:
    if not isinstance(stream, Stream):
        return stream
    if stream.handle is None:
        raise InvalidUsage("the stream is closed; create another one")
    return stream.handle


def _overlap(send: int, sent: int, recv: int, received: int, code: int) -> bool:
    size = _types.SIZES[code]
    return send < recv + received * size and recv < send + sent * size


def _name(code: int) -> str:
    return Type(code).name


def _mismatch(given: str, needed: str) -> str:
    return f"out has {given}; it must have {needed}"
