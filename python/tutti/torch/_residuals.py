"""Error feedback of a process group on either path."""

from __future__ import annotations

from typing import Any

import torch

from . import _native


def _unwrapped(backend: Any) -> Any:
    return getattr(backend, "wrapped_pg", backend)  # TORCH_DISTRIBUTED_DEBUG=DETAIL wraps backends.


def attach(backend: Any, buffer: torch.Tensor, residual: torch.Tensor) -> None:
    """Adds what compressed sums of `buffer` lose to the next sum. `residual` keeps it, in float32."""
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
