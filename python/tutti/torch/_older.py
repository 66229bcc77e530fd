"""The replacement of Gloo in PyTorch before 2.14, where Gloo is no plugin."""

from __future__ import annotations

import types
from typing import Any

import torch.distributed as dist
from torch._C import _distributed_c10d as c10d
from torch.distributed import distributed_c10d


def replace_gloo(stand_in: Any) -> None:
    """Makes PyTorch call `stand_in` instead of the class ProcessGroupGloo, and treat the result as a custom backend."""
    if distributed_c10d.ProcessGroupGloo is stand_in:
        return
    kinds = dist.ProcessGroup.BackendType
    register = dist.ProcessGroup._register_backend

    def register_as_custom(self: Any, device: Any, kind: Any, backend: Any = None) -> None:
        is_ours = kind == kinds.GLOO and backend is not None and backend.name() == "tutti"
        register(self, device, kinds.CUSTOM if is_ours else kind, backend)

    dist.ProcessGroup._register_backend = register_as_custom
    if not hasattr(c10d.Backend, "options"):  # PyTorch sets the name and the ranks of a group in options of Gloo.
        c10d.Backend.options = property(lambda backend: types.SimpleNamespace())
    distributed_c10d.ProcessGroupGloo = stand_in
