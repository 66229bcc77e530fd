"""dist.shrink_group() with backends for CPU tensors.

PyTorch 2.15 registers the backend of a smaller group as Gloo, and casts it to ProcessGroupGloo when a model is wrapped in
DistributedDataParallel, which crashes.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from ._options import DEVICES


def install() -> None:
    """Makes PyTorch register backends of Tutti as custom ones. Idempotent."""
    original = getattr(distributed_c10d, "_create_shrunk_process_group", None)
    if original is None or original.__module__ == __name__:
        return

    def create(new_backend: Any, *arguments: Any, **named: Any) -> Any:
        group = original(new_backend, *arguments, **named)
        if new_backend.name() == "tutti":
            custom = dist.ProcessGroup.BackendType.CUSTOM
            for device in DEVICES:
                group._register_backend(torch.device(device), custom, new_backend)
            group._set_default_backend(custom)
        return group

    distributed_c10d._create_shrunk_process_group = create
