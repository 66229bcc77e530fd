"""Messages with tags, and their requests. Communicator inherits them."""

from __future__ import annotations

import ctypes
import operator
from dataclasses import dataclass
from typing import Any, Callable, SupportsIndex

from . import _callbacks
from ._api import ANY_RANK, MessageStruct, NotCopyable, Status, c
from ._arrays import describe
from ._collectives import Collectives
from ._errors import Aborted, InvalidArgument, Timeout, error_of
from ._options import limit_ms

_TAGS = 1 << 64


@dataclass(frozen=True)
class Message:
    """A message that was received, sent or found. peer: the sender; for a send, the receiver. count: in elements."""

    peer: int
    tag: int
    count: int


def forget(handle: int, array: Any) -> None:
    """Destroys a request without references when it is complete, and keeps its array until then."""
    if c.request_wait(handle, 0, None) == Status.in_progress:
        _callbacks.register(c.request_on_completion, handle, lambda _: _destroy(handle, array))
    else:
        c.request_destroy(handle)


def _destroy(handle: int, array: Any) -> None:
    c.request_destroy(handle)


class Request(NotCopyable):
    """A send or receive in progress. Communicator.isend() and irecv() return it. Any thread may use it.

    It keeps the array alive until the request is complete: for a receive, the message is in the array; for a send, the array
    may be reused. Dropping the last reference neither waits nor cancels: the message is sent or received nevertheless.
    Errors: a failure is raised by each wait(). Requests that are incomplete when their communicator is closed or left end
    with InvalidUsage; after a death of their peer, a failure or an abort they end within about a second.
    """

    __slots__ = ("_operation", "_rank", "_handle", "_array", "_ended", "_users", "__weakref__")

    def __init__(self, operation: str, rank: int, handle: int, array: Any) -> None:
        self._operation = operation
        self._rank = rank
        self._handle: int | None = handle
        self._array = array
        self._ended: Message | tuple[int, str] | None = None  # The message, or status and text of the failure.
        # With a callback: one entry for it and one for _end(). pop() is atomic; who takes the last entry destroys the handle,
        # so that neither waits for the other.
        self._users: list[bool] | None = None

    def wait(self, timeout: float | None = None) -> Message:
        """Blocks until the request is complete, and returns its message. Raises why the request failed.

        timeout: maximum wait in seconds; 0 does not block; None: no limit. When it has passed, Timeout is raised, and the
        request continues.
        """
        self._advance(limit_ms(timeout))
        if isinstance(self._ended, Message):
            return self._ended
        if self._ended is not None:
            raise error_of(*self._ended, self._rank)
        _callbacks.refuse_wait("request_wait")
        raise Timeout(f"{self._operation} is not complete after {timeout} s; it continues: wait again, or cancel it",
                      operation="request_wait", rank=self._rank)

    def done(self) -> bool:
        """Returns true if the request is complete, has failed or was cancelled. Does not block."""
        self._advance(0)
        return self._ended is not None

    def cancel(self) -> None:
        """Cancels the request unless it is complete. Its wait() then raises Aborted.

        Blocks while the elements of the message are moving. Afterwards the array may be reused; that of a receive may have
        changed.
        """
        self._advance(0)
        if self._ended is None:
            _callbacks.refuse_wait("request_destroy")
            if self._users is not None:
                self._users.clear()
                self._users = None
            self._end((Status.aborted, f"tutti_request_wait: {self._operation} was cancelled"))

    def add_done_callback(self, function: Callable[[Request], Any]) -> None:
        """Calls function(request) once the request is complete, has failed or was cancelled: at once if it is.

        A thread of the library calls it, or the thread that ends the communicator. function must not wait for peers, nor
        cancel requests, nor end communicators; exceptions in it go to sys.unraisablehook. A request has at most one.
        """
        if self._handle is None:
            function(self)
            return
        handle, users = self._handle, [True, False]

        def call(_: int) -> None:
            try:
                function(self)
            finally:
                if users and users.pop():
                    c.request_destroy(handle)

        before, self._users = self._users, users
        status = _callbacks.register(c.request_on_completion, handle, call)
        if status:
            self._users = before
            if self._ended is not None:  # Another thread has seen the end meanwhile, and destroyed the request.
                function(self)
                return
            raise error_of(status, c.last_error(None).decode(errors="replace"), self._rank)

    def _advance(self, timeout_ms: int) -> None:
        """Waits for the request, in a thread of the library not at all, and stores how it ended."""
        if self._ended is not None:
            return
        struct = MessageStruct(size=ctypes.sizeof(MessageStruct))
        status = c.request_wait(self._handle, 0 if _callbacks.in_library() else timeout_ms, struct)
        if status == Status.in_progress or self._ended is not None:  # Another thread has stored it.
            return
        self._end(Message(struct.peer, struct.tag, struct.count) if status == 0
                  else (status, c.last_error(None).decode(errors="replace")))

    def _end(self, ended: Message | tuple[int, str]) -> None:
        self._ended = ended
        handle, self._handle, self._array = self._handle, None, None
        if self._users is None or self._users.pop():
            c.request_destroy(handle)

    def __del__(self) -> None:
        if self._handle is not None:
            forget(self._handle, self._array)

    def __repr__(self) -> str:
        state = "in progress" if not self.done() else "done" if isinstance(self._ended, Message) else "failed"
        return f"<tutti.Request {self._operation} of rank {self._rank}, {state}>"


class Messages(Collectives):
    """Non-blocking messages in host memory, also of communicators on GPUs.

    Any thread may send and receive them, also during a collective. They are independent of collectives, send(), recv(), groups
    and streams. A receive matches a message by source and tag; messages of a rank with equal tags are received in the order of
    their sends.
    """

    def isend(self, array: Any, peer: int, tag: int = 0) -> Request:
        """Starts to send an array to `peer`, which may be this rank. Does not block.

        The array must not be changed until the request is complete; the message may not have been received then.
        tag: 0 or more, below 2**64. Errors: a receive of another count or type fails with InvalidUsage, and so does the send
        unless it has up to 64 KiB.
        """
        return self._start("isend", c.isend, array, peer, tag)

    def irecv(self, array: Any, peer: int | None = None, tag: int = 0) -> Request:
        """Starts to receive into `array` a message from `peer`, or from any rank if it is None. Does not block.

        The array must be writable, and not be used until the request is complete; wait() returns the sender. Its number of
        elements and its type are those of the message.
        """
        return self._start("irecv", c.irecv, array, ANY_RANK if peer is None else peer, tag)

    def iprobe(self, peer: int | None = None, tag: int = 0) -> Message | None:
        """Returns the message that irecv() with these arguments would receive, if it has arrived, else None. Does not block."""
        found = ctypes.c_int()
        struct = MessageStruct(size=ctypes.sizeof(MessageStruct))
        source = ANY_RANK if peer is None else self._int("iprobe", "peer", peer)
        status = c.iprobe(source, self._tag("iprobe", tag), self._handle, found, struct)
        if status:
            raise self._error(status, "iprobe")
        return Message(struct.peer, struct.tag, struct.count) if found.value else None

    def _start(self, operation: str, start: Any, array: Any, peer: int, tag: int) -> Request:
        peer = self._int(operation, "peer", peer)
        try:
            address, count, code, owner = describe(array, operation == "irecv")  # In host memory, also with a GPU.
        except InvalidArgument as error:
            raise self._refusal(operation, error.message) from None
        handle = ctypes.c_void_p()
        status = start(address, count, code, peer, self._tag(operation, tag), self._handle, handle)
        if status:
            raise self._error(status, operation)
        return Request(operation, self.rank, handle.value or 0, owner)

    def _tag(self, operation: str, tag: int) -> int:
        if isinstance(tag, SupportsIndex) and 0 <= operator.index(tag) < _TAGS:
            return operator.index(tag)
        raise self._refusal(operation, f"tag is {tag!r}; it must be an integer, 0 or more, below 2**64")
