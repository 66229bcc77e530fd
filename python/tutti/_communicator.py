"""Communicators: creation, queries, failure and end."""

from __future__ import annotations

import atexit
import ctypes
import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from . import _api, _callbacks, _options, _streams, _types
from ._api import c
from ._arrays import Buffer, Described, describe
from ._errors import Error, InvalidArgument, check, error_of
from ._messages import Messages
from ._options import Options

if TYPE_CHECKING:
    from typing_extensions import Unpack


class UniqueId:
    """Identifies a new communicator, and contains a secret. One rank creates it and sends bytes(id) to the others.

    The process that created it must live until all ranks have joined.
    """

    def __init__(self, data: bytes | None = None) -> None:
        self._struct = _api.UniqueIdStruct()
        size = ctypes.sizeof(self._struct)
        if data is None:
            check(c.get_unique_id(self._struct))
        elif isinstance(data, str):
            raise InvalidArgument("the id is text; pass bytes(id) of the creating rank")
        elif len(data) != size:
            raise InvalidArgument(f"the id has {len(data)} bytes; it must have {size}: pass bytes(id) of the creating rank")
        else:
            ctypes.memmove(ctypes.addressof(self._struct), bytes(data), size)

    def __bytes__(self) -> bytes:
        return bytes(memoryview(self._struct).cast("B"))

    def __reduce__(self) -> Any:
        return UniqueId, (bytes(self),)


class Choice(NamedTuple):
    """Algorithm and protocol of a collective; "" if it sent no messages."""

    algorithm: str
    protocol: str


class Compression(NamedTuple):
    """Compression format of a collective, and its expected relative error."""

    format: str
    error: float


class CompressionStatistics(NamedTuple):
    """Counters of a rank: collectives with and without compressed messages, and bytes without and with compression."""

    compressed_calls: int
    uncompressed_calls: int
    element_bytes: int
    message_bytes: int


class Communicator(Messages):
    """A communicator: one rank among `ranks` ranks that call collectives together.

    Communicator() joins as the rank that torchrun, Open MPI, MPICH, Slurm or TUTTI_RANK, TUTTI_RANKS and TUTTI_ROOT give;
    without any of them it has one rank. It blocks until all ranks have joined.

    Options, as keyword arguments; None is the default:
        name                  name in messages, such as "gradients"
        timeout               maximum wait of an operation, in seconds (10 minutes); math.inf: no limit
        init_timeout          maximum wait for ranks to join, in seconds (2 minutes); math.inf: no limit
        memory                memory of buffers: "host" (default), "cuda" or "cuda:1"
        compression           "raw" (none, default), "bf16", "fp16", "int8", ... (must match on all ranks)
        max_relative_error    bound on the expected relative error, instead of a format, above 0 and below 1
        compression_rounding  "nearest" (default) or "stochastic"
        compression_seed      seed of stochastic rounding
        algorithm, protocol, transport, channels  overrides of autotuning
        min_channels, max_channels  bounds of the tuner's number of channels on GPUs
        traffic_class         RDMA traffic class between hosts, 1 to 255
        wait                  waits for peers: "auto" (spin or yield briefly, then sleep; default), "spin" or "sleep"

    One thread at a time uses a communicator; any thread may call abort(), async_error(), isend(), irecv() and iprobe(). All
    ranks make the same calls in the same order. `with Communicator() as comm:` closes it at the end. After an exception it
    aborts the communicator, so that peers fail at once with tutti.Aborted, and leaves it; after sys.exit() or sys.exit(0) it
    only leaves.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        struct = _options.struct_of(options)
        handle = ctypes.c_void_p()
        check(c.comm_create_from_environment(struct, handle))
        self._adopt(handle.value)

    @classmethod
    def create(cls, id: UniqueId, rank: int, ranks: int, **options: Unpack[Options]) -> Communicator:
        """Creates the communicator `id` of `ranks` ranks and joins it as `rank`. Blocks until all have joined."""
        if not isinstance(id, UniqueId):
            raise InvalidArgument(f"the id is of class {type(id).__name__}; pass a tutti.UniqueId", operation="comm_create")
        rank, ranks = _types.int_of("rank", rank), _types.int_of("ranks", ranks)
        handle = ctypes.c_void_p()
        check(c.comm_create(id._struct, rank, ranks, _options.struct_of(options), handle), rank)
        return cls._of(handle.value)

    @classmethod
    def create_all(cls, ranks: int, **options: Unpack[Options]) -> list[Communicator]:
        """Creates a communicator whose ranks are all in this process. Element i is the handle of rank i.

        Use one thread for each rank, or one thread for several ranks in groups, which also closes them in a group.
        """
        ranks = _types.int_of("ranks", ranks)
        if ranks < 1:
            raise InvalidArgument(f"ranks is {ranks}; it must be at least 1", operation="comm_create_all")
        handles = (ctypes.c_void_p * ranks)()
        check(c.comm_create_all(ranks, _options.struct_of(options), handles))
        return [cls._of(handle) for handle in handles]

    def split(self, color: int | None, key: int = 0, **options: Unpack[Options]) -> Communicator | None:
        """Creates one communicator for each color (0 or more), with ranks ordered by key, then by rank.

        All ranks call it. A rank with color None gets None. Unset options are inherited.
        """
        handle = ctypes.c_void_p()
        number = _api.COLOR_NONE if color is None else self._int("comm_split", "color", color)
        if color is not None and number < 0:
            raise self._refusal("comm_split", f"color is {number}: pass 0 or more, or None")
        key = self._int("comm_split", "key", key)
        self._check("comm_split", c.comm_split(self._handle, number, key, _options.struct_of(options), handle))
        return None if handle.value is None else self._of(handle.value)

    def shrink(self, excluded: Sequence[int], **options: Unpack[Options]) -> Communicator:
        """Creates a communicator of all ranks except `excluded`, after ranks died or hang. This one may have failed.

        Only the remaining ranks call it, with the same list. Ranks keep their order. Unset options are inherited.
        """
        if not hasattr(excluded, "__iter__"):
            raise InvalidArgument(f"excluded is {excluded!r}; pass a list of ranks", operation="comm_shrink")
        handle = ctypes.c_void_p()
        ranks = (ctypes.c_int * len(excluded))(*(self._int("comm_shrink", "an excluded rank", rank) for rank in excluded))
        struct = _options.struct_of(options)
        self._check("comm_shrink", c.comm_shrink(self._handle, ranks, len(excluded), struct, handle))
        return self._of(handle.value)

    def with_options(self, **options: Unpack[Options]) -> Communicator:
        """Returns another handle to this communicator, whose calls use `options`. Unset options are inherited.

        Local and without communication. The handle is valid until this communicator is closed.
        """
        handle = ctypes.c_void_p()
        struct = _options.struct_of(options)
        self._check("comm_with_options", c.comm_with_options(self._handle, struct, handle))
        return self._of(handle.value, view_of=self)

    @classmethod
    def _of(cls, handle: int | None, view_of: Communicator | None = None) -> Communicator:
        made = cls.__new__(cls)
        made._adopt(handle, view_of)
        return made

    def _adopt(self, handle: int | None, view_of: Communicator | None = None) -> None:
        self._handle = handle
        self._owner = view_of  # A view must not outlive its communicator.
        # A forgotten communicator waits for no peer.
        self._forget = weakref.finalize(self, _callbacks.outside, c.comm_destroy if view_of else c.comm_leave, handle)
        self._forget.atexit = False
        _open.add(self)
        number = ctypes.c_int()
        for name in ("rank", "ranks", "device"):
            check(getattr(c, "comm_" + name)(handle, number))
            setattr(self, name, number.value)
        if self.device >= 0:
            self._describe = _described_on_gpu

    @property
    def handle(self) -> int:
        """The tutti_comm of the C API."""
        if self._handle is None:
            raise self._error(0, "handle")
        return self._handle

    @property
    def launcher(self) -> str:
        """The variables that Communicator() used, such as "torchrun (RANK, WORLD_SIZE)"; "" without a launcher."""
        text = ctypes.c_char_p()
        self._check("comm_launcher", c.comm_launcher(self._handle, text))
        return (text.value or b"").decode()

    def last_choice(self) -> Choice:
        """Returns the algorithm and the protocol of this rank's last collective."""
        algorithm, protocol = ctypes.c_char_p(), ctypes.c_char_p()
        self._check("comm_last_choice", c.comm_last_choice(self._handle, algorithm, protocol))
        return Choice((algorithm.value or b"").decode(), (protocol.value or b"").decode())

    def last_compression(self) -> Compression:
        """Returns the compression format of this rank's last collective, and its expected relative error."""
        name, error = ctypes.c_char_p(), ctypes.c_double()
        self._check("comm_last_compression", c.comm_last_compression(self._handle, name, error))
        return Compression((name.value or b"").decode(), error.value)

    def compression_statistics(self) -> CompressionStatistics:
        """Returns this rank's counters since the communicator was created."""
        struct = _api.CompressionStatisticsStruct(size=ctypes.sizeof(_api.CompressionStatisticsStruct))
        self._check("comm_compression_statistics", c.comm_compression_statistics(self._handle, struct))
        return CompressionStatistics(struct.compressed_calls, struct.uncompressed_calls, struct.element_bytes,
                                     struct.message_bytes)

    def attach_residual(self, buffer: Any, residual: Any) -> None:
        """Enables error feedback: quantization errors of sums of `buffer` are stored in `residual` and added to the next.

        residual: float32, as many elements as `buffer`, zeroed by the caller. Both are kept until detach_residual().
        """
        address, count, code, owner = self._input("residual_attach", buffer)
        store, size, kind, residual_owner = self._input("residual_attach", residual, writable=True)
        if kind != _api.Type.float32 or size != count:
            raise self._refusal("residual_attach", f"residual has {size} elements of type {_api.Type(kind).name}; it must "
                                f"have {count} of type float32")
        self._check("residual_attach", c.residual_attach(address, count, code, store, self._handle))
        self._residuals[address] = (owner, residual_owner)

    def detach_residual(self, buffer: Any) -> None:
        """Disables error feedback for `buffer`, after its calls are done."""
        address = self._input("residual_detach", buffer)[0]
        self._check("residual_detach", c.residual_detach(address, self._handle))
        self._residuals.pop(address, None)

    @property
    def _residuals(self) -> dict[int, Any]:
        home = self._owner or self
        return home.__dict__.setdefault("_kept_residuals", {})  # type: ignore[no-any-return]

    def synchronize(self) -> None:
        """Waits for this rank's calls so far, in all streams. Raises the communicator's error, if any."""
        self._check("comm_synchronize", c.comm_synchronize(self._handle))

    def abort(self) -> None:
        """Ends all waits of the communicator, on this rank and on its peers, with tutti.Aborted. Returns immediately."""
        self._check("comm_abort", c.comm_abort(self._handle))

    def async_error(self) -> Error | None:
        """Returns why the communicator failed, or None. Does not block. A failed communicator stays failed."""
        status = ctypes.c_int()
        self._check("comm_async_error", c.comm_async_error(self._handle, status))
        if status.value in (_api.Status.ok, _api.Status.in_progress):
            return None
        return error_of(status.value, c.last_error(self._handle).decode(errors="replace"), self.rank)

    def finalize(self) -> None:
        """Waits until all calls are done and all ranks finalize or close. Afterwards only queries and close are allowed."""
        self._check("comm_finalize", c.comm_finalize(self._handle))

    def close(self) -> None:
        """Waits until all ranks finalize or close the communicator, and frees it. A second close does nothing.

        Ranks that close several communicators do so in the same order, or use leave(). A failure that no call has raised
        is raised here.
        """
        self._finish(c.comm_destroy)

    def leave(self) -> None:
        """Like close(), but waits only for this rank's calls, not for peers."""
        self._finish(c.comm_destroy if self._owner else c.comm_leave)

    def _finish(self, end: Any) -> None:
        _callbacks.refuse_wait("comm_destroy")
        if self._forget.detach() is None:
            return
        status = end(self._handle)
        self._handle = None
        _open.discard(self)
        check(status, self.rank)

    def _check(self, operation: str, status: int) -> None:
        if status:
            raise self._error(status, operation)

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if kind is None:
            self.close()
            return
        successful_exit = isinstance(value, GeneratorExit) or (
            isinstance(value, SystemExit) and value.code in (None, 0))
        if self._owner is None and not successful_exit:
            c.comm_abort(self._handle)
        try:
            self.leave()  # Peers may be in another call, so that close() would wait for them.
        except Error:
            pass  # The exception of the body is raised.

    def __repr__(self) -> str:
        state = "" if self._handle is not None else ", closed"
        return f"<tutti.Communicator rank {self.rank} of {self.ranks}{state}>"


def _described_on_gpu(array: Any, writable: bool) -> Described:
    if not isinstance(array, Buffer):
        raise InvalidArgument(f"the array is of class {type(array).__name__}; a collective on a GPU needs a tutti.Buffer "
                              "with an address that the GPU can access")
    return describe(array, writable)


_open: weakref.WeakSet[Communicator] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """Ends communicators that the program left open. After an uncaught exception, aborts their calls first."""
    left = sorted(_open, key=lambda comm: comm._owner is None)  # Views first.
    for comm in left:
        if hasattr(sys, "last_type"):
            c.comm_abort(comm._handle)
    for comm in left:
        try:
            comm.leave()
        except Error:
            pass
    _streams.finish_all()


def algorithms(collective: str) -> list[str]:
    """Returns the algorithms of a collective, such as "all_gather"."""
    names = ctypes.c_char_p()
    check(c.algorithms(collective.encode(), names))
    return (names.value or b"").decode().split(", ")
