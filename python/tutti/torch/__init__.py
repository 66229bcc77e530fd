"""Tutti as a backend of torch.distributed for CPU tensors and, on the C++ path, for CUDA tensors.

    import torch.distributed as dist
    import tutti.torch                       # Needed only before PyTorch 2.14 with TORCH_DEVICE_BACKEND_AUTOLOAD=0.

    dist.init_process_group("tutti")

TUTTI_PYTORCH_REPLACE_GLOO=1 makes the backend "gloo" use Tutti, without a change of the script.
docs/guide/pytorch.md is the guide.
"""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError("tutti.torch needs PyTorch 2.9 or newer, which is not installed: run `pip install 'torch>=2.9'`; "
                      "without PyTorch, `import tutti` works for NumPy arrays and other arrays in host memory") from None

from ._options import Options
from ._registration import path, process_group, register, replace_gloo
from ._residuals import attach_residual, detach_residual
from .hooks import compress_hook

__all__ = ["Options", "attach_residual", "compress_hook", "detach_residual", "path", "process_group", "register",
           "replace_gloo"]

register()
