"""Communication hooks of DistributedDataParallel."""

from typing import Any, Callable, Dict, NamedTuple, Tuple

import torch
import torch.distributed as dist

from . import _residuals
from ._options import Options


_COMPRESSED = (torch.float32, torch.float16, torch.bfloat16)


class _Attached(NamedTuple):
    """A bucket with its residual. It keeps the parameters, so that their identities stay unique."""

    buffer: torch.Tensor
    residual: torch.Tensor
    parameters: Dict[int, torch.Tensor]


class _Feedback:
    """Residuals of the buckets of models: what compression has lost, which the next step adds."""

    def __init__(self, group: Any) -> None:
        self._backend = _residuals.backend_of(group)
        self._attached: Dict[Tuple[int, int], _Attached] = {}  # By address and number of elements of the buffer.

    def attach(self, bucket: dist.GradBucket) -> None:
        buffer = bucket.buffer()
        key = (buffer.data_ptr(), buffer.numel())
        if key in self._attached or buffer.dtype not in _COMPRESSED:
            return
        # DDP rebuilds its buckets after the first step, with other parameters in them, so residuals begin anew.
        parameters = {id(parameter): parameter for parameter in bucket.parameters()}
        for old, attached in list(self._attached.items()):
            if not parameters.keys().isdisjoint(attached.parameters):
                _residuals.detach(self._backend, attached.buffer)
                del self._attached[old]
        residual = torch.zeros(buffer.numel(), dtype=torch.float32, device=buffer.device)
        _residuals.attach(self._backend, buffer, residual)
        self._attached[key] = _Attached(buffer, residual, parameters)


def compress_hook(format: str, error_feedback: bool = True, group: Any = None) -> Callable[[Any, Any], torch.futures.Future]:
    """Returns a hook that averages gradients in a compressed format.

    It creates a process group of the ranks of `group`. All ranks of the job call it, each with the group of its model. Several
    models may share the hook. Gradients of float64 and other types without compression are averaged uncompressed.

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
            feedback.attach(bucket)
        work = dist.all_reduce(buffer, op=dist.ReduceOp.AVG, group=averaging, async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    return hook
