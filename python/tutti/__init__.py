"""Tutti: collective communication between processes and threads, for NumPy arrays and other arrays in host memory.

    import numpy
    import tutti

    with tutti.Communicator() as comm:           # The rank is that of torchrun, mpirun or srun.
        total = comm.all_reduce(numpy.ones(4))   # The sum over all ranks.
"""

from ._api import Reduction, Status, Type, has, so_path, version
from ._arrays import Buffer
from ._collectives import PreMulSum
from ._communicator import Choice, Communicator, Compression, CompressionStatistics, UniqueId, algorithms
from ._errors import (Aborted, Error, InternalError, InvalidArgument, InvalidUsage, RemoteError, SystemError_, Timeout,
                      Unsupported)
from ._groups import group
from ._memory import zeros
from ._messages import Message, Request
from ._streams import Event, Stream

__version__ = version()

__all__ = [
    "Aborted", "Buffer", "Choice", "Communicator", "Compression", "CompressionStatistics", "Error", "Event",
    "InternalError", "InvalidArgument", "InvalidUsage", "Message", "PreMulSum", "Reduction", "RemoteError", "Request",
    "Status", "Stream", "SystemError_", "Timeout", "Type", "UniqueId", "Unsupported", "algorithms", "group", "has",
    "so_path", "version", "zeros",
]
