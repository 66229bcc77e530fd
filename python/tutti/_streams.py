"""Streams and events."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import deque
from typing import Any, Callable

from . import _callbacks
from ._api import Status, c
from ._errors import Error, check, last_error
from ._options import limit_ms

_BATCH = 64  # Number of calls after which a stream looks for arrays that it can release.


class Event:
    """A position in a stream. An event that was never recorded counts as reached. Any thread may use it."""

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        check(c.event_create(handle))
        self._handle = handle.value
        self._destroy = weakref.finalize(self, c.event_destroy, self._handle)

    def record(self, stream: Stream) -> None:
        """Moves the event to the end of the stream."""
        check(c.event_record(self._handle, stream.handle))

    def synchronize(self, timeout: float | None = None) -> bool:
        """Blocks until the event is reached, and returns true; or until `timeout` has passed, and returns false.

        timeout: maximum wait in seconds; None: no limit. The calls before the event continue, and the communicator stays
        usable.
        """
        return _is_done(c.event_synchronize_for(self._handle, limit_ms(timeout)))

    def query(self) -> bool:
        """Returns true if the event is reached. Does not block."""
        return _is_done(c.event_query(self._handle))


class _Arrays:
    """Arrays of calls in a stream. They are released when their calls are done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: list[Any] = []
        self._older: deque[tuple[Event, list[Any]]] = deque()

    def add(self, arrays: Any, stream: Stream) -> None:
        """Keeps `arrays` of a call that is in the stream already."""
        with self._lock:
            self._newest.append(arrays)
            if len(self._newest) < _BATCH:
                return
            event = Event()
            event.record(stream)  # Behind the calls of all arrays, also those that other threads have added.
            self._older.append((event, self._newest))
            self._newest = []
            while self._older and self._older[0][0].query():
                self._older.popleft()

    def take(self) -> list[Any]:
        """Returns all arrays and keeps none."""
        with self._lock:
            taken: list[Any] = [self._newest, self._older]
            self._newest, self._older = [], deque()
            return taken

    def put_back(self, taken: list[Any]) -> None:
        """Keeps again what take() returned."""
        with self._lock:
            self._newest = taken[0] + self._newest
            self._older = taken[1] + self._older


class Stream:
    """A queue of calls on host memory, which a thread of the library runs in order.

    Calls with `stream=` return at once. Until they are done, their inputs must not be changed nor their outputs read. The
    stream keeps the arrays alive. Any thread may use a stream. `with Stream() as stream:` closes it at the end.
    """

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        check(c.stream_create(handle))
        self.handle: int | None = handle.value
        self._arrays = _Arrays()
        self._destroy = weakref.finalize(self, _callbacks.outside, _destroy, self.handle, self._arrays)
        self._destroy.atexit = False  # tutti._communicator ends communicators first.
        _open.add(self)

    def synchronize(self) -> None:
        """Waits until all calls in the stream are done. Raises their first error."""
        _callbacks.refuse_wait("stream_synchronize")
        arrays = self._arrays.take()
        status = c.stream_synchronize(self.handle)
        del arrays
        check(status)

    def query(self) -> bool:
        """Returns true if all calls in the stream are done. Raises their first error. Does not block."""
        arrays = self._arrays.take()
        status = c.stream_query(self.handle)
        if status == Status.in_progress:
            self._arrays.put_back(arrays)
        return _is_done(status)

    def wait(self, event: Event) -> None:
        """Makes later calls in the stream wait until the event is reached. Does not block."""
        check(c.stream_wait(self.handle, event._handle))

    def record(self, event: Event | None = None) -> Event:
        """Moves an event, or a new one, to the end of the stream. Returns the event."""
        event = event or Event()
        event.record(self)
        return event

    def add_callback(self, function: Callable[[Error | None], Any]) -> None:
        """Calls function(error) in a thread of the library when all earlier calls in the stream are done. Does not block.

        error: the first error of these calls since the previous callback, or None. The stream raises it as well.
        function: may make calls with a stream, query, and add callbacks. It must not wait. Exceptions in it go to
        sys.unraisablehook. It is kept alive, and called once before synchronize() or close() of the stream returns.
        """
        check(_callbacks.register(c.stream_add_callback, self.handle,
                                  lambda status: function(last_error(status) if status else None)))

    def close(self) -> None:
        """Waits until all calls in the stream are done, and destroys it. Raises their first error."""
        _callbacks.refuse_wait("stream_destroy")
        if self._destroy.detach() is None:
            return
        _open.discard(self)
        handle, self.handle = self.handle, None
        status = c.stream_destroy(handle)
        self._arrays.take()
        check(status)

    def keep(self, arrays: Any) -> None:
        """Keeps objects alive until the calls that are in the stream now are done."""
        self._arrays.add(arrays, self)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


_open: weakref.WeakSet[Stream] = weakref.WeakSet()


def finish_all() -> None:
    """Waits for the calls and callbacks in all streams, after their communicators have ended."""
    for stream in list(_open):
        c.stream_synchronize(stream.handle)


def _destroy(handle: int | None, arrays: _Arrays) -> None:
    c.stream_destroy(handle)
    arrays.take()


def _is_done(status: int) -> bool:
    if status == Status.in_progress:
        return False
    if status:
        raise last_error(status)
    return True
