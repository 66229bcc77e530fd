"""Checks NVIDIA's nccl4py with this libnccl.so.2 preloaded.  use_nccl4py.py LIBRARY VERSION"""

import importlib.metadata
import sys

from claims import as_two_ranks, claim, client_version, loaded

import nccl.core
from nccl.bindings import nccl as functions

library = sys.argv[1]
major, minor, patch = map(int, sys.argv[2].split("."))
client_version(importlib.metadata.version("nccl4py"))
said = functions.get_version()
claim("is imported, with this libnccl.so.2 in the process and no other", loaded() == {library})
claim(f"ncclGetVersion through it is {said}, the version of this libnccl.so.2", said == major * 10000 + minor * 100 + patch)
unique_id = nccl.core.get_unique_id()
claim("nccl.core.get_unique_id() returns 128 bytes", len(unique_id.as_bytes) == 128)


def join(rank):
    communicator = nccl.core.Communicator.init(nranks=2, rank=rank, unique_id=unique_id)
    rank_and_size = (communicator.rank, communicator.nranks)
    communicator.destroy()
    return rank_and_size


claim("two ranks create a communicator on host memory with the right ranks", as_two_ranks(join) == [(0, 2), (1, 2)])
