"""Checks PyTorch with this libnccl.so.2 preloaded.  use_pytorch.py LIBRARY VERSION"""

import sys

from claims import claim, client_version, loaded

import torch
import torch.distributed

library, ours = sys.argv[1], tuple(map(int, sys.argv[2].split(".")))
client_version(torch.__version__)
claim("is imported, with this libnccl.so.2 in the process", library in loaded())
claim("torch.distributed.is_nccl_available()", torch.distributed.is_nccl_available())

groups = torch.distributed.ProcessGroupNCCL
shown = torch.cuda.nccl.version()
if hasattr(groups, "get_runtime_nccl_version"):
    runtime, built = groups.get_runtime_nccl_version(), groups.get_build_nccl_version()
    claim(f"the NCCL version that it finds at run time is {runtime}, the version of this libnccl.so.2", tuple(runtime) == ours)
    claim(f"torch.cuda.nccl.version() is {shown}, the version of the header that it was built with", tuple(shown) == tuple(built))
else:
    claim(f"torch.cuda.nccl.version() is {shown}; the version of this libnccl.so.2 is {ours}")
claim("torch.cuda.nccl.unique_id() returns 128 bytes", len(torch.cuda.nccl.unique_id()) == 128)
