"""Parts of the Python path: the communicator of a process group, the order of its calls, and their works."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import datetime
import logging
import math
import os
import threading
import time
import weakref
from typing import Any, Callable, Deque, Dict, List, Optional, Set, Tuple

import torch
import torch.distributed as dist

from tutti import _options
from tutti._api import CommOptions, Status, Type, UniqueIdStruct, c
from tutti._errors import InvalidArgument, InvalidUsage, RemoteError, check

from ._errors import error_of, no_members_error, raised_by, shut_down_error, timeout_error
from ._options import Options
from ._python_tensors import no_autograd

log = logging.getLogger("tutti.torch")

KEY = "tutti/id"
_REJECTED = b"rank 0 cannot join: "  # Begins the value of KEY if its options are invalid.
Call = Callable[[Any], None]  # Makes a call on the communicator that it gets.


def join(store: Any, rank: int, size: int, made: Dict[str, Any]) -> Tuple[Any, Any]:
    """Returns the handle of a new communicator, and a store with the keys of this group alone.

    Rank 0 creates the id; the others read it from the store.
    """
    identifier = UniqueIdStruct()
    if rank == 0:
        check(c.get_unique_id(identifier))
        store.set(KEY, bytes(memoryview(identifier).cast("B")))
    else:
        data = store.get(KEY)
        if data.startswith(_REJECTED):
            raise error_of(Status.remote_error, data.decode(errors="replace"), rank)
        if len(data) != ctypes.sizeof(identifier):
            raise RuntimeError(f"the store's {KEY} has {len(data)} bytes instead of {ctypes.sizeof(identifier)}; use the "
                               "same version of tutti on all ranks")
        ctypes.memmove(ctypes.addressof(identifier), data, len(data))
    handle = ctypes.c_void_p()
    try:
        check(c.comm_create(identifier, rank, size, _options.struct_of(made), handle), rank)
    except Exception as error:
        if rank == 0:
            _withdraw_id(store, error)
        raise
    try:
        _forget_id(store, rank, handle)
    except Exception:
        c.comm_leave(handle)
        raise
    return handle.value, dist.PrefixStore(_prefix_of(bytes(memoryview(identifier).cast("B"))), store)


def _delete_id(store: Any) -> None:
    """A store may outlive its groups, so the next group must not find this id."""
    with contextlib.suppress(Exception):  # Stores that cannot delete keys serve one group.
        store.delete_key(KEY)


def _withdraw_id(store: Any, error: Exception) -> None:
    """Replaces the id after a failure of rank 0, so that ranks that have not read it report the failure or wait.

    Invalid options stay invalid, so a group that is made again with this store may find the old failure.
    """
    if not isinstance(error, InvalidArgument):
        _delete_id(store)
        return
    with contextlib.suppress(Exception):  # Without a store, the other ranks get its error.
        store.set(KEY, _REJECTED + str(error).encode())


def _forget_id(store: Any, rank: int, comm: Any) -> None:
    """Returns on all ranks when the id is gone."""
    if rank == 0:
        _delete_id(store)
    token = ctypes.c_uint8()
    address = ctypes.addressof(token)
    # A rank that has returned may already have failed the communicator by its first call, or have ended. The first call of
    # this rank reports that.
    with contextlib.suppress(InvalidUsage, RemoteError):
        check(c.broadcast(address, address, 1, int(Type.uint8), 0, comm, None), rank)


def _prefix_of(identifier: bytes) -> str:
    """Returns the prefix of the store's keys of the group with this id: its FNV-1a hash, as on the C++ path."""
    value = 0xcbf29ce484222325
    for byte in identifier:
        value = (value ^ byte) * 0x100000001b3 % (1 << 64)
    return f"tutti/{value}"


def _limit_s(timeout: datetime.timedelta) -> float:
    return timeout.total_seconds() if timeout > datetime.timedelta(0) else math.inf


def options_of(options: Options, name: str, timeout: datetime.timedelta,
               init_timeout: Optional[datetime.timedelta] = None) -> Dict[str, Any]:
    given = {key: value for key, value in vars(options).items() if value}
    init_limit = _limit_s(timeout if init_timeout is None else init_timeout)
    return {"name": name, "timeout": _limit_s(timeout), "init_timeout": init_limit, **given}


_Work: Any = dist._Work if hasattr(dist, "_Work") else torch._C._distributed_c10d.Work


class Work(_Work):  # type: ignore[misc]
    """A call: it can be waited for, and has a future.

    operation: name and number of a collective in errors; see raised_by()
    """

    def __init__(self, outputs: Any, rank: int, operation: str = "") -> None:
        super().__init__()
        self._outputs = outputs
        self._rank = rank
        self._operation = operation
        self._done = threading.Event()
        self._error: Optional[BaseException] = None
        self._base: Optional[torch.futures.Future] = None
        self._future: Optional[torch.futures.Future] = None
        self._lock = threading.Lock()
        self._queue: Optional[CallQueue] = None  # Set when the call is queued.

    def run(self, call: Callable[[], object]) -> None:
        try:
            with raised_by(self._rank, self._operation), no_autograd():
                call()
        except BaseException as error:
            self._error = error
        with self._lock:
            self._done.set()
            base = self._base
        if base is not None:
            base.set_result(self._outputs)

    def wait(self, timeout: datetime.timedelta = datetime.timedelta(0)) -> bool:
        # A thread with a timeout must not make the call itself, because the call has its own timeout.
        if self._queue is not None and not timeout:
            self._queue.help(self)
        if not self._done.wait(timeout.total_seconds() or None):
            raise timeout_error(f"the operation has not completed within {timeout}; it continues: wait again, or increase the "
                                "timeout", self._rank)
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        return self._done.is_set()

    def is_success(self) -> bool:
        return self._error is None

    def has_succeeded(self) -> bool:
        """Returns whether this work is known to be complete, without an error. Does not ask for the state of a message."""
        return self._done.is_set() and self._error is None

    def exception(self) -> Any:
        return self._error

    def result(self) -> Any:
        return self._outputs

    def synchronize(self) -> None:
        self.wait()

    def get_future(self) -> torch.futures.Future:
        def value(base: torch.futures.Future) -> Any:
            if self._error is not None:
                raise self._error  # Only an error of a callback is an error for C++, too.
            return base.value()

        with self._lock:
            if self._future is not None:
                return self._future
            base = torch.futures.Future()
            self._future = base.then(value)
            self._base = base
            done = self._done.is_set()
        if done:
            base.set_result(self._outputs)
        return self._future


class CoalescedWork(_Work):  # type: ignore[misc]
    """The end of a coalesced section: complete when all its calls and messages are."""

    def __init__(self, works: List[Work]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: datetime.timedelta = datetime.timedelta(0)) -> bool:
        """Waits at most `timeout` for all of them together; 0: until they are complete."""
        deadline = time.monotonic() + timeout.total_seconds()
        for work in self._works:
            left_ms = max(1, math.ceil((deadline - time.monotonic()) * 1000))
            work.wait(datetime.timedelta(milliseconds=left_ms) if timeout else timeout)
        return True

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def exception(self) -> Any:
        return next((work.exception() for work in self._works if not work.is_success()), None)

    def result(self) -> Any:
        return []

    def synchronize(self) -> None:
        self.wait()

    def get_future(self) -> torch.futures.Future:
        return torch.futures.collect_all([work.get_future() for work in self._works])


def _refuse() -> None:
    raise shut_down_error()


class CallQueue:
    """Runs calls one after the other: in the caller's thread if it blocks and nothing is pending, or if the caller is a
    callback of a running call; else in a thread of the queue."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pending: Deque[Any] = collections.deque()
        self._incomplete: Set[Work] = set()
        self._runner = 0  # Identifier of the thread that runs calls; 0: none.
        self._thread: Optional[threading.Thread] = None
        self._stopped = False
        self._process = os.getpid()

    def submit(self, work: Work, call: Callable[[], object], is_async: bool) -> None:
        def run() -> None:
            try:
                call()
            finally:
                self._incomplete.discard(work)  # Before waits for the work end.

        me = threading.get_ident()
        with self._changed:
            nested = self._runner == me
            refused = self._stopped and not nested
            inline = nested or (not self._runner and not self._pending and not is_async)
            if not inline and not refused:
                if self._thread is None:
                    thread = threading.Thread(target=self._work, args=(weakref.ref(self),), daemon=True)
                    thread.start()
                    self._thread = thread
                work._queue = self
                self._incomplete.add(work)
                self._pending.append((work, run))
                self._changed.notify_all()
                return
            if not refused:
                self._incomplete.add(work)
                self._runner = me
        try:
            work.run(_refuse if refused else run)
        finally:
            if not nested and not refused:
                self._release()

    def _release(self) -> None:
        with self._changed:
            self._runner = 0
            self._changed.notify_all()

    def help(self, work: Work) -> None:
        """Runs pending calls until `work` has completed, if this thread runs a call, so that no other thread can."""
        while self._runner == threading.get_ident() and not work._done.is_set():
            with self._changed:
                if not self._pending:
                    return
                first, call = self._pending.popleft()
            first.run(call)

    @staticmethod
    def _work(reference: Any) -> None:
        while True:
            queue = reference()
            if queue is None or not queue._run_one():
                return
            del queue

    def _run_one(self) -> bool:
        """Returns false when the thread must end."""
        with self._changed:
            self._changed.wait_for(lambda: not self._runner and (self._stopped or self._pending), timeout=1.0)
            if self._runner or not self._pending:
                return not self._stopped or bool(self._pending)
            work, call = self._pending.popleft()
            self._runner = threading.get_ident()
        try:
            work.run(call)
        finally:
            self._release()
        return True

    def is_idle(self) -> bool:
        """Returns whether all calls are complete. Their callbacks may still run."""
        return not self._incomplete

    def stop(self) -> None:
        """Waits until all calls have completed and the thread has ended. Later calls are refused.

        In a callback of a call: does not wait. In a child of fork(): does nothing, because the thread is the parent's.
        """
        if self._process != os.getpid():
            return
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
            if self._runner == threading.get_ident():
                return
            self._changed.wait_for(lambda: not self._runner and not self._pending)
        # A thread that frees objects of C++ while the program ends would abort it.
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()


class Communicator:
    """A handle, and one with the timeout of the last call that had another. A child of fork() does not end its parent's.

    handle: None before reconfigure(), which refuses calls
    """

    def __init__(self, handle: Any, timeout: datetime.timedelta) -> None:
        self._process = os.getpid()
        self._handle = handle
        self._has_members = handle is not None
        self._timeout = timeout
        self._view: Any = None
        self._view_timeout: Optional[datetime.timedelta] = None

    def handle(self, timeout: Optional[datetime.timedelta] = None) -> Any:
        """Returns a handle for calls that wait `timeout` at most; None: the timeout of the group; 0: no limit."""
        if self._handle is None:
            raise shut_down_error() if self._has_members else no_members_error()
        if timeout is None or timeout == self._timeout:
            return self._handle
        if self._view is None or timeout != self._view_timeout:
            if self._view is not None:
                check(c.comm_destroy(self._view))
                self._view = None
            view = ctypes.c_void_p()
            check(c.comm_with_options(self._handle, _options.struct_of({"timeout": _limit_s(timeout)}), view))
            self._view, self._view_timeout = view.value, timeout
        return self._view

    def shrink(self, excluded: List[int], made: Dict[str, Any]) -> Any:
        ranks = (ctypes.c_int * len(excluded))(*excluded)
        handle = ctypes.c_void_p()
        struct: CommOptions = _options.struct_of(made)
        check(c.comm_shrink(self.handle(), ranks, len(excluded), struct, handle))
        return handle.value

    def abort(self) -> None:
        if self._handle is not None and self._process == os.getpid():
            check(c.comm_abort(self._handle))

    def is_open(self) -> bool:
        return self._handle is not None

    def leave(self) -> bool:
        """Idempotent. Returns false in a child of fork(), which leaves nothing.

        Warns of a failure that no call of this rank has raised: the root of a broadcast only sends.
        """
        handle, self._handle = self._handle, None
        if self._process != os.getpid():
            return False
        if handle is not None and c.comm_leave(handle):
            log.warning("the process group ends after a failure that no operation of this rank has raised: %s",
                        c.last_error(None).decode(errors="replace").removeprefix("tutti_comm_leave: "))
        return True
