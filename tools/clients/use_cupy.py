"""Checks CuPy with this libnccl.so.2 preloaded, on host memory.  use_cupy.py LIBRARY VERSION"""

import sys

from claims import as_two_ranks, claim, client_version, loaded

import cupy
import numpy
from cupy.cuda import nccl

COUNT = 100_000
library = sys.argv[1]
major, minor, patch = map(int, sys.argv[2].split("."))
client_version(cupy.__version__)
claim("is imported, with this libnccl.so.2 in the process and no other", loaded() == {library})
said = nccl.get_version()
claim(f"cupy.cuda.nccl.get_version() is {said}, the version of this libnccl.so.2",
      said == major * 10000 + minor * 100 + patch)
unique_id = nccl.get_unique_id()
claim("cupy.cuda.nccl.get_unique_id() returns 128 bytes", len(unique_id) == 128)


def reduce(rank):
    communicator = nccl.NcclCommunicator(2, unique_id, rank)
    mine, sum_of_both = numpy.arange(COUNT, dtype=numpy.float32) + rank, numpy.zeros(COUNT, numpy.float32)
    communicator.allReduce(mine.ctypes.data, sum_of_both.ctypes.data, COUNT, nccl.NCCL_FLOAT, nccl.NCCL_SUM, 0)
    communicator.destroy()
    return bool((sum_of_both == 2 * numpy.arange(COUNT, dtype=numpy.float32) + 1).all())


claim(f"two ranks all-reduce {COUNT} floats in host memory, and the sums are correct", as_two_ranks(reduce) == [True, True])
