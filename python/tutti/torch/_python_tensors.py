"""Tensors of the Python path: their types in the C API, and copies of those that are not contiguous."""

from __future__ import annotations

import ctypes
from typing import Any, List, NamedTuple, Optional, Sequence

import torch
import torch.distributed as dist

from tutti._api import Reduction, Type, c
from tutti._errors import check

from ._errors import argument_error

_ALIASES = {"float8_e4m3fn": "float8_e4m3"}
_REDUCTIONS = {dist.ReduceOp.SUM: "sum", dist.ReduceOp.PRODUCT: "prod", dist.ReduceOp.MIN: "min", dist.ReduceOp.MAX: "max",
               dist.ReduceOp.AVG: "avg", dist.ReduceOp.BAND: "band", dist.ReduceOp.BOR: "bor", dist.ReduceOp.BXOR: "bxor"}


class Elements(NamedTuple):
    """A type of the C API, and its elements per element of the tensor."""

    type: int
    per_element: int


def _type_or_none(dtype: torch.dtype) -> Optional[int]:
    name = str(dtype).split(".")[-1]
    member = Type.__members__.get(_ALIASES.get(name, name))
    return None if member is None else int(member)


_types = {dtype: _type_or_none(dtype) for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)}


def elements_of(tensor: torch.Tensor) -> Elements:
    """Returns how a tensor is moved. Types that the library does not know are moved as bytes."""
    known = _types.get(tensor.dtype)
    return Elements(int(Type.uint8), tensor.element_size()) if known is None else Elements(known, 1)


def reducible_type(tensor: torch.Tensor) -> int:
    known = _types.get(tensor.dtype)
    if known is None:
        raise argument_error(f"Tutti has no reductions of {tensor.dtype}; convert the tensor to a floating-point or integer type")
    return known


class ScopedReduction:
    """A reduction of one call, for `with`."""

    def __init__(self, op: Any, tensor: torch.Tensor, comm: Any) -> None:
        self._comm = comm
        self._created = False
        state = op.__getstate__() if hasattr(op, "__getstate__") else None
        if isinstance(state, tuple) and len(state) == 2 and state[1] is not None:
            scalar = torch.as_tensor(state[1], dtype=tensor.dtype, device="cpu").reshape(1).contiguous()
            made = ctypes.c_int32()
            check(c.reduction_create_pre_mul_sum(scalar.data_ptr(), reducible_type(tensor), comm, made))
            self.number = made.value
            self._created = True
            return
        name = next((name for known, name in _REDUCTIONS.items() if op == known), "")
        if name not in Reduction.__members__:
            raise argument_error(f"Tutti has no reduction {name or op}; reductions are {', '.join(Reduction.__members__)}")
        self.number = int(Reduction[name])

    def __enter__(self) -> int:
        return self.number

    def __exit__(self, *error: Any) -> None:
        if self._created:
            c.reduction_destroy(self.number, self._comm)


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor, or a contiguous copy."""
    return tensor if _is_plain(tensor) else tensor.resolve_conj().resolve_neg().contiguous()


def writable(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor, or a contiguous one of its shape, which finish() copies to it."""
    return tensor if _is_plain(tensor) else torch.empty_like(tensor, memory_format=torch.contiguous_format)


def no_autograd() -> Any:
    """Returns a context for copies that are no operations of the user's program. Also allows writes to inference tensors."""
    return torch._C._AutoDispatchBelowADInplaceOrView()  # type: ignore[attr-defined]


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Returns whether two contiguous tensors share memory."""
    return a.data_ptr() < b.data_ptr() + b.nbytes and b.data_ptr() < a.data_ptr() + a.nbytes


def is_misplaced(block: torch.Tensor, whole: torch.Tensor, rank: int) -> bool:
    """Returns whether a tensor shares memory with another one, of which it is not the block of this rank."""
    return overlap(block, whole) and block.data_ptr() != whole.data_ptr() + rank * block.nbytes


def finish(dense: torch.Tensor, tensor: torch.Tensor) -> None:
    if dense is not tensor:
        tensor.copy_(dense)


def flat_copy(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([readable(tensor).reshape(-1) for tensor in tensors])


def copy_from(flat: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    offset = 0
    for tensor in tensors:
        tensor.copy_(flat[offset:offset + tensor.numel()].view(tensor.shape))
        offset += tensor.numel()


def empty_flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.empty(sum(tensor.numel() for tensor in tensors), dtype=tensors[0].dtype, device="cpu")


def blocks(counts: Sequence[int]) -> Any:
    """Returns counts and displacements of blocks that lie one after the other, as C arrays."""
    array = ctypes.c_size_t * len(counts)
    offsets: List[int] = []
    total = 0
    for count in counts:
        offsets.append(total)
        total += count
    return array(*counts), array(*offsets)


def only(operation: str, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Returns the tensor of a list of one, after checking it."""
    if len(tensors) != 1:
        raise argument_error(f"{operation}: got {len(tensors)} tensors; pass one per rank")
    check_tensors(operation, tensors, tensors[0])
    return tensors[0]


def check_tensors(operation: str, tensors: Sequence[torch.Tensor], other: torch.Tensor) -> None:
    for tensor in tensors:
        if tensor.device.type != "cpu":
            hint = ". For CUDA tensors, run `python -m tutti.torch.build`, on all ranks" if tensor.is_cuda else ""
            raise argument_error(f"{operation}: a tensor is on {tensor.device}; the Python path of the backend tutti serves CPU "
                                 f"tensors{hint}")
        if tensor.layout != torch.strided:
            raise argument_error(f"{operation}: a tensor has layout {tensor.layout}; only dense tensors are allowed")
        if tensor.dtype != other.dtype:
            raise argument_error(f"{operation}: tensors have types {tensor.dtype} and {other.dtype}; use one type")


def check_writable(tensor: torch.Tensor) -> None:
    """Raises if elements of a tensor that receives a result share memory, as after expand()."""
    if tensor.layout == torch.strided and torch._debug_has_internal_overlap(tensor) == 1:
        raise argument_error(f"a tensor of shape {list(tensor.shape)} and strides {list(tensor.stride())} has elements that "
                             "share memory, so it cannot receive a result; pass a copy, as of tensor.contiguous()")


def check_outputs(outputs: Sequence[Any]) -> None:
    """check_writable() for tensors, or lists of them."""
    for output in outputs:
        if isinstance(output, torch.Tensor):
            check_writable(output)
        else:
            check_outputs(output)


def check_equally_many(operation: str, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> None:
    if len(outputs) != len(inputs):
        raise argument_error(f"{operation}: got {len(inputs)} inputs and {len(outputs)} outputs; pass equally many")


def check_count(operation: str, tensor: torch.Tensor, count: int) -> None:
    if tensor.numel() != count:
        raise argument_error(f"{operation}: a tensor has {tensor.numel()} elements; it must have {count}")
