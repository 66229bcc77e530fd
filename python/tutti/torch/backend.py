"""The Python path: a backend of torch.distributed without a compiler, for every PyTorch from 2.9."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import sys
import threading
import weakref
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from tutti._api import Type, c
from tutti._errors import check

from . import _native
from ._errors import limited_to, raised_by
from ._options import DEVICES, Options, communicator_name
from ._python_barriers import MonitoredBarriers
from ._python_calls import CallQueue, CoalescedWork, Communicator, Work, join, options_of
from ._python_collectives import Collectives
from ._python_messages import Messages
from ._python_tensors import check_outputs, check_tensors, reducible_type
from ._reconfigure import Reconfigurable

_MIN_SECTION_LIMIT = 64
UNSET = datetime.timedelta(milliseconds=-1)

# PyTorch 2.14 and newer support Python subclasses of Backend. Before, the backend is a subclass of ProcessGroup.
HAS_BACKENDS = _native.torch_version() >= 21400
_Base: Any = c10d.Backend if HAS_BACKENDS else dist.ProcessGroup


class TuttiBackend(Collectives, Messages, Reconfigurable, _Base):  # type: ignore[misc]
    """A process group, or the part of one for CPU tensors."""

    # PyTorch's own properties of these names call the method that reads them. Only a TuttiGroup supports reconfigure(), because
    # the rank and the size of a backend cannot change.
    supports_coalescing = supports_reconfigure = supports_window = _supports_time_estimate = False

    def __init__(self, rank: int, size: int, handle: Any, options: Options, timeout: datetime.timedelta, store: Any = None,
                 name: str = "") -> None:
        """name: of the communicator, in messages"""
        _Base.__init__(self, rank, size)
        self._rank, self._size, self._name = rank, size, ""
        self._communicator_name = name
        self._options, self._timeout, self._store = options, timeout, store
        self._comm = Communicator(handle, timeout)
        self._queue = CallQueue()
        self._sequence = 0
        self._description = "undefined"
        self._monitored_barriers: Optional[MonitoredBarriers] = None  # None after shrinking, and without members.
        self._lock = threading.Lock()  # Guards the next three members.
        self._waiting: weakref.WeakSet[threading.Thread] = weakref.WeakSet()  # For futures of messages.
        self._section: Optional[List[Work]] = None
        self._section_limit = 0  # Number of calls at which those that have succeeded are released.
        _open.add(self)

    def _start(self, operation: str, options: Any, outputs: Any, call: Any, writes: bool = True) -> Work:
        """Starts a call.

        operation: name of a collective, which gets a number; "": an internal call
        writes:    whether this rank writes to the outputs
        """
        if writes:
            check_outputs(outputs)
        if operation:
            self._sequence += 1
            operation += f" (sequence number {self._sequence})"
        work = Work(outputs, self._rank, operation)
        timeout = getattr(options, "timeout", UNSET)
        if timeout == UNSET:
            timeout = self._timeout
        is_async = self._add_to_section(work) or getattr(options, "asyncOp", True)
        self._queue.submit(work, lambda: self._run(call, timeout), is_async)
        return work

    def _add_to_section(self, work: Work) -> bool:
        """Returns false if no coalesced section is open."""
        released: List[Work] = []  # Freed after the lock.
        with self._lock:
            if self._section is None:
                return False
            self._section.append(work)
            if len(self._section) >= self._section_limit:  # An exception may leave a section open, which later calls join.
                released, self._section = self._section, [work for work in self._section if not work.has_succeeded()]
                self._section_limit = max(_MIN_SECTION_LIMIT, 2 * len(self._section))
        return True

    def _run(self, call: Any, timeout: datetime.timedelta) -> None:
        with limited_to(timeout):
            call(self._comm.handle(timeout))

    def getBackendName(self) -> str:
        return "tutti"

    def name(self) -> str:
        return "tutti"

    # ProcessGroup stores its name in its backends, and a subclass of it has none.
    def getGroupName(self) -> str:
        return self._name

    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupDesc(self) -> str:
        return self._description

    def setGroupDesc(self, description: str) -> None:
        self._description = description

    def get_group_store(self) -> Any:
        return self._store

    @property
    def supports_splitting(self) -> bool:
        return True

    @property
    def supports_shrinking(self) -> bool:
        return True

    @property
    def options(self) -> Any:
        made = c10d.Backend.Options("tutti", self._timeout)
        made.group_name = self._name
        return made

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        self._timeout = timeout

    _set_default_timeout = set_timeout

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def _set_sequence_number_for_group(self) -> None:
        """Numbers begin at 0 on all ranks."""

    def start_coalescing(self) -> None:
        """Opens a section. A section that an exception left open ends; its calls continue."""
        with self._lock:
            abandoned, self._section = self._section, []
            self._section_limit = _MIN_SECTION_LIMIT
        del abandoned  # Freed after the lock.

    def end_coalescing(self) -> Any:
        with self._lock:
            section, self._section = self._section, None
        if section is None:
            raise RuntimeError("no coalesced section of this process group is open; start one first")
        return CoalescedWork(section)

    # Names of the methods of ProcessGroup.
    def _start_coalescing(self, device: Any = None) -> None:
        self.start_coalescing()

    def _end_coalescing(self, device: Any = None) -> Any:
        return self.end_coalescing()

    def barrier(self, opts: Any = None) -> Work:
        token = torch.zeros(1, dtype=torch.uint8, device="cpu")

        def call(comm: Any) -> None:
            check(c.all_reduce(token.data_ptr(), token.data_ptr(), 1, int(Type.uint8), 3, comm, None))

        return self._start("barrier", opts, [], call)

    def monitored_barrier(self, opts: Any = None, wait_all_ranks: bool = False) -> None:
        timeout = opts if isinstance(opts, datetime.timedelta) else getattr(opts, "timeout", UNSET)
        timeout = self._timeout if timeout == UNSET else timeout
        self._comm.handle()  # Fails if the group has no members.
        if self._monitored_barriers is None:
            raise RuntimeError("monitored_barrier: a process group that was made by shrinking has no store; use barrier()")
        self._monitored_barriers.wait(timeout, wait_all_ranks)

    def attach_residual(self, buffer: torch.Tensor, residual: torch.Tensor) -> None:
        check_tensors("attach_residual", [buffer], buffer)

        def call(comm: Any) -> None:
            check(c.residual_attach(buffer.data_ptr(), buffer.numel(), reducible_type(buffer), residual.data_ptr(), comm))

        self._start("", _Blocking, [], call).wait()

    def detach_residual(self, buffer: torch.Tensor) -> None:
        self._start("", _Blocking, [], lambda comm: check(c.residual_detach(buffer.data_ptr(), comm))).wait()

    def split(self, store: Any, ranks: Sequence[int], options: Any = None) -> Optional[TuttiBackend]:
        if self._rank not in ranks:
            return None
        timeout, name = self._timeout_and_name(options)
        return _keep(_create(store, list(ranks).index(self._rank), len(ranks), self._options, timeout, name))

    def _timeout_and_name(self, options: Any) -> Tuple[datetime.timedelta, str]:
        """Returns those of a new group. options: of torch.distributed; None: those of this group."""
        if options is None:
            return self._timeout, self._communicator_name
        return options._timeout, f"group {options.group_name}"

    def merge(self, store: Any, options: Any, rank: int, size: int) -> TuttiBackend:
        return _keep(_create(store, rank, size, self._options, *self._timeout_and_name(options)))

    def shrink(self, excluded: Sequence[int], flags: int = 0, options: Any = None) -> TuttiBackend:
        """After a failure this group is as before. Otherwise its later calls are refused."""
        timeout, name = self._timeout_and_name(options)
        made = options_of(self._options, name, timeout)
        handles: List[Any] = []
        self._start("", _Blocking, [], lambda comm: handles.append(self._comm.shrink(list(excluded), made))).wait()
        self._queue.stop()
        rank = self._rank - sum(other < self._rank for other in excluded)
        size = self._size - len(excluded)
        return _keep(TuttiBackend(rank, size, handles[0], self._options, timeout, None, name))

    def abort(self) -> None:
        self._comm.abort()

    def shutdown(self) -> None:
        _kept.discard(self)
        self._queue.stop()
        if not self._comm.leave():  # Ends all messages.
            return
        with self._lock:
            waiting = list(self._waiting)  # They run callbacks, which they cannot at the end of the program.
        if threading.current_thread() in waiting:
            return  # A callback that waited for another one could wait for ever.
        for thread in waiting:
            thread.join()

    def __del__(self) -> None:
        if hasattr(self, "_comm") and self._comm.is_open():
            self.shutdown()


_open: weakref.WeakSet[TuttiBackend] = weakref.WeakSet()
_kept: Set[TuttiBackend] = set()  # Backends to which only objects of C++ refer, which do not keep them alive.


def _keep(backend: TuttiBackend) -> TuttiBackend:
    """Keeps a backend until its shutdown(). PyTorch makes the group of it, whose rank and size cannot change."""
    backend._can_reconfigure = not HAS_BACKENDS
    _kept.add(backend)
    return backend


@atexit.register
def _end_all() -> None:
    """Ends groups that the program left open, while their threads run. After an uncaught exception, aborts their calls."""
    for backend in list(_open):
        if hasattr(sys, "last_type"):
            with contextlib.suppress(RuntimeError):
                backend.abort()
        backend.shutdown()


_FORWARDED = (
    "allgather", "_allgather_base", "allgather_coalesced", "allgather_into_tensor_coalesced", "all_gather_single",
    "all_gather_single_coalesced", "allreduce", "allreduce_coalesced", "alltoall", "alltoall_base", "all_to_all_single", "barrier",
    "broadcast", "gather", "monitored_barrier", "recv", "recv_anysource", "reduce", "reduce_scatter", "_reduce_scatter_base",
    "reduce_scatter_single", "reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced", "scatter", "send", "shutdown",
    "abort", "_start_coalescing", "_end_coalescing", "_get_sequence_number_for_group", "get_group_store",
    "get_reconfigure_handle", "reconfigure")


class TuttiGroup(dist.ProcessGroup):  # type: ignore[misc]
    """A process group whose methods are those of its backend.

    PyTorch's own group wraps the works of a backend in Python: is_completed() and the source of a receive are lost. Calls
    from Python reach this group without the wrapper, and without PyTorch's dispatcher.
    """

    def __init__(self, backend: Any) -> None:
        super().__init__(backend._store, backend._rank, backend._size)
        self._tutti = backend
        self._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
        for device in DEVICES:
            self._register_backend(torch.device(device), dist.ProcessGroup.BackendType.CUSTOM, backend)

    def getBackendName(self) -> str:
        return "tutti"

    def getRank(self) -> int:
        return int(self._tutti._rank)

    def getSize(self) -> int:
        return int(self._tutti._size)

    rank, size = getRank, getSize
    supports_reconfigure = True


def _forward(name: str) -> Any:
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        return getattr(self._tutti, name)(*arguments, **named)

    return method


for _name in _FORWARDED:
    setattr(TuttiGroup, _name, _forward(_name))


class _Blocking:
    timeout = UNSET
    asyncOp = False


def _create(store: Any, rank: int, size: int, options: Options, timeout: datetime.timedelta, name: str) -> TuttiBackend:
    made: Dict[str, Any] = options_of(options, name, timeout)
    with raised_by(rank):
        handle, own_store = join(store, rank, size, made)
    backend = TuttiBackend(rank, size, handle, options, timeout, store, name)
    backend._monitored_barriers = MonitoredBarriers(own_store, rank, size)
    return backend


def create(given: Any, options: Options) -> Any:
    """Creates a process group, or its backend. `given` is PyTorch's DistributedBackendOptions."""
    name = communicator_name(given)
    if getattr(given, "enable_reconfigure", False):
        backend = TuttiBackend(given.group_rank, given.group_size, None, options, given.timeout, given.store, name)
    else:
        backend = _create(given.store, given.group_rank, given.group_size, options, given.timeout, name)
    return TuttiGroup(backend) if HAS_BACKENDS else backend
