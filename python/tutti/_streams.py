"""Streams and events."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import deque
from typing import Any, Callable

from . import _callbacks
from ._api import NotCopyable, Status, c
from ._errors import Error, InvalidArgument, check, last_error, last_error_among
from ._options import limit_ms


class Event(NotCopyable):
    """A position in a stream. An event that was never recorded counts as reached. Any thread may use it."""

    def __init__(self) -> None:
        self._handle = _new_event()
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
    """Arrays of calls in a stream, each with an event behind its call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: deque[tuple[int, Any]] = deque()  # Event and arrays.
        self._spare: list[int] = []  # Events without a call.
        self._kept: list[Any] = []  # Arrays of calls without an event.

    def add(self, arrays: Any, stream: int | None) -> None:
        """Keeps `arrays` of a call that is in the stream already, and releases those of calls that are done.

        If the process has no free handle of an event, the event of the latest call moves behind this one and keeps the arrays
        of both; without such a call, they are kept until the stream ends.
        """
        with self._lock:
            done = self._take_done()
            event = self._spare.pop() if self._spare else _new_event_or_none()
            if event is None and self._calls:
                event, arrays_before = self._calls.pop()
                arrays = (arrays_before, arrays)
            if event is None:
                self._kept.append(arrays)
            else:
                check(c.event_record(event, stream))  # Behind the calls of all arrays, also those that other threads have added.
                self._calls.append((event, arrays))
        del done  # Not under the lock, because the end of an array may run code of the program.

    def release(self) -> None:
        """Releases the arrays of calls that are done. Does nothing during another call, such as one that garbage collection
        interrupts."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            done = self._take_done()
        finally:
            self._lock.release()
        del done

    def _take_done(self) -> list[Any]:
        done = []
        while self._calls and c.event_query(self._calls[0][0]) != Status.in_progress:
            event, arrays = self._calls.popleft()
            self._spare.append(event)
            done.append(arrays)
        return done

    def destroy(self) -> None:
        """Releases all arrays and events, after the end of the stream."""
        with self._lock:
            calls, self._calls, kept, self._kept = self._calls, deque(), self._kept, []
            events, self._spare = [event for event, _ in calls] + self._spare, []
        del kept  # Not under the lock.
        for event in events:
            c.event_destroy(event)


def _new_event_or_none() -> int | None:
    try:
        return _new_event()
    except Error:
        return None


def _new_event() -> int:
    handle = ctypes.c_void_p()
    check(c.event_create(handle))
    return handle.value or 0


class Stream(NotCopyable):
    """A queue of calls on host memory, which a thread of the library runs in order.

    Calls with `stream=` return at once. Until they are done, their inputs must not be changed nor their outputs read. The
    stream keeps their arrays until then, and releases them in a later call, query() or synchronize(). Any thread may use a stream.
    `with Stream() as stream:` closes it at the end.
    """

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        check(c.stream_create(handle))
        self.handle: int | None = handle.value
        self._arrays = _Arrays()
        self._ranks: dict[int, int] = {}  # Rank of this process by the handle of each communicator with calls in the stream.
        self._destroy = weakref.finalize(self, _callbacks.outside, _destroy, self.handle, self._arrays)
        self._destroy.atexit = False  # tutti._communicator ends communicators first.
        _open.add(self)

    def synchronize(self) -> None:
        """Waits until all calls in the stream are done. Raises their first error."""
        _callbacks.refuse_wait("stream_synchronize")
        self._finish(c.stream_synchronize(self.handle))

    def query(self) -> bool:
        """Returns true if all calls in the stream are done. Raises their first error. Does not block."""
        status = c.stream_query(self.handle)
        if status == Status.in_progress:
            self._arrays.release()
            return False
        self._finish(status)
        return True

    def _finish(self, status: int) -> None:
        """Releases the arrays of calls that are done. Raises the error of a status."""
        error = self._error(status)
        self._arrays.release()
        if error is not None:
            raise error

    def _error(self, status: int) -> Error | None:
        return last_error_among(status, dict(self._ranks)) if status else None

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
        if not callable(function):
            raise InvalidArgument(f"function is {function!r}; pass a function of one argument", operation="stream_add_callback")
        check(_callbacks.register(c.stream_add_callback, self.handle,
                                  lambda status: function(self._error(status))))

    def close(self) -> None:
        """Waits until all calls in the stream are done, and destroys it. Raises their first error."""
        _callbacks.refuse_wait("stream_destroy")
        if self._destroy.detach() is None:
            return
        _open.discard(self)
        handle, self.handle = self.handle, None
        error = self._error(c.stream_destroy(handle))
        self._arrays.destroy()
        if error is not None:
            raise error

    def keep(self, arrays: Any, comm: tuple[int, int]) -> None:
        """Keeps objects alive until the calls that are in the stream now are done. comm: handle and rank of the last one."""
        self._arrays.add(arrays, self.handle)
        self._ranks[comm[0]] = comm[1]

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
    arrays.destroy()


def _is_done(status: int) -> bool:
    if status == Status.in_progress:
        return False
    if status:
        raise last_error(status)
    return True
