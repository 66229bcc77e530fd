"""Communication hooks of DistributedDataParallel."""

from typing import Any, Callable, Dict, Tuple

import torch
import torch.distributed as dist

from . import _residuals
from ._options import Options


class _Feedback:
    """Residuals of the buckets of a model: what compression has lost, which the next step adds."""

    def __init__(self, group: Any) -> None:
        self._backend = _residuals.backend_of(group)
        self._attached: Dict[int, Tuple[torch.Tensor, torch.Tensor]] = {}  # Bucket: its buffer and its residual.

    def attach(self, index: int, buffer: torch.Tensor) -> None:
        known = self._attached.get(index)
        if known is not None:
            if known[0].data_ptr() == buffer.data_ptr() and known[0].numel() == buffer.numel():
                return
            _residuals.detach(self._backend, known[0])
        # DDP rebuilds its buckets after the first step, with other parameters in them, so residuals begin anew.
        residual = torch.zeros(buffer.numel(), dtype=torch.float32, device="cpu")
        _residuals.attach(self._backend, buffer, residual)
        self._attached[index] = (buffer, residual)


def compress_hook(format: str, error_feedback: bool = True, group: Any = None) -> Callable[[Any, Any], torch.futures.Future]:
    """Returns a hook that averages gradients in a compressed format.

    It creates a process group of the ranks of `group`. All ranks of the job call it, each with the group of its model.

        model.register_comm_hook(None, tutti.torch.compress_hook("int8"))

    format:         as in tutti.torch.Options.compression
    error_feedback: adds what the compression of a step loses to the gradients of the next step
    group:          process_group of the model; None: the default group
    """
    ranks = None if group is None else dist.get_process_group_ranks(group)
    averaging = dist.new_group(ranks, backend="tutti", pg_options=Options(compression=format),
                               use_local_synchronization=ranks is not None)
    feedback = _Feedback(averaging) if error_feedback else None

    def hook(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        buffer = bucket.buffer()
        if feedback is not None:
            feedback.attach(bucket.index(), buffer)
        work = dist.all_reduce(buffer, op=dist.ReduceOp.AVG, group=averaging, async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    return hook
