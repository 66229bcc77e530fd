"""Error feedback of a process group on either path."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from . import _native
from ._errors import argument_error
from ._options import DEVICES


def attach_residual(buffer: torch.Tensor, residual: torch.Tensor, group: Any = None) -> None:
    """Enables error feedback of compressed sums and averages of `buffer` in a process group. Waits for earlier calls.

    buffer:   contiguous tensor of float32, float16 or bfloat16 that later calls of all_reduce, reduce_scatter or reduce get
    residual: contiguous float32 tensor of as many elements, zeroed by the caller; each call stores in it what compression
              has lost, and the next call adds it. Save it with the state of the training.
    group:    process group of the backend tutti with compression; None: the default group

    Both tensors must live until detach_residual() or the end of the group.
    """
    attach(backend_of(group), buffer, residual)


def detach_residual(buffer: torch.Tensor, group: Any = None) -> None:
    """Ends the error feedback of `buffer`. Waits for earlier calls."""
    detach(backend_of(group), buffer)


def backend_of(group: Any) -> Any:
    """Returns the backend of a group. On the Python path before PyTorch 2.14 the group is its own backend."""
    group = group or dist.group.WORLD
    return group if hasattr(group, "attach_residual") else group._get_backend(torch.device("cpu"))


def _unwrapped(backend: Any) -> Any:
    return getattr(backend, "wrapped_pg", backend)  # TORCH_DISTRIBUTED_DEBUG=DETAIL wraps backends.


def attach(backend: Any, buffer: torch.Tensor, residual: torch.Tensor) -> None:
    """Adds what compressed sums of `buffer` lose to the next sum. `residual` keeps it, in float32."""
    for name, tensor in (("buffer", buffer), ("residual", residual)):
        if tensor.device.type not in DEVICES or tensor.layout != torch.strided or not tensor.is_contiguous():
            raise argument_error(f"the {name} is a tensor of shape {tuple(tensor.shape)} on {tensor.device}; it must be a "
                                 "contiguous CPU or CUDA tensor")
    if buffer.device != residual.device:
        raise argument_error(f"the buffer is on {buffer.device}, the residual on {residual.device}; pass tensors of one device")
    if residual.dtype != torch.float32 or residual.numel() != buffer.numel():
        raise argument_error(f"the residual has {residual.numel()} elements of {residual.dtype}; it must have {buffer.numel()} "
                             "of torch.float32, as many as the buffer")
    backend = _unwrapped(backend)
    if hasattr(backend, "attach_residual"):
        backend.attach_residual(buffer, residual)
    else:
        _native.load().attach_residual(backend, buffer, residual)  # type: ignore[union-attr]


def detach(backend: Any, buffer: torch.Tensor) -> None:
    backend = _unwrapped(backend)
    if hasattr(backend, "detach_residual"):
        backend.detach_residual(buffer)
    else:
        _native.load().detach_residual(backend, buffer)  # type: ignore[union-attr]
