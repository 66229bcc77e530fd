"""Groups of calls that run together."""

from __future__ import annotations

import threading
from typing import Any

from ._api import c
from ._errors import check
from ._streams import Stream


class _Thread(threading.local):
    """Open groups of a thread."""

    def __init__(self) -> None:
        self.depth = 0
        self.arrays: list[tuple[Stream | None, Any]] = []  # Of the calls that wait for the end of the outermost group.

    def keep(self, stream: Stream | None, arrays: Any) -> None:
        self.arrays.append((stream, arrays))


thread = _Thread()


class group:
    """`with tutti.group():` enqueues the calls of its body, and its end runs them together.

    Use: send and recv in both directions; one thread that drives several ranks, also to close their communicators.
    Results: arrays that calls return are valid after the end of the outermost group.
    Errors: an exception in the body cancels the calls of the group. Their communicators then fail, here and on the peers,
    so that no peer waits.
    """

    def __enter__(self) -> group:
        check(c.group_start())
        thread.depth += 1
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if kind is not None:
            c.send(None, 0, 0, 0, None, None)  # A rejected call makes the end cancel all other calls.
        thread.depth -= 1
        arrays: list[tuple[Stream | None, Any]] = []
        if thread.depth == 0:
            arrays, thread.arrays = thread.arrays, []
        status = c.group_end()
        for stream, kept in arrays:
            if stream is not None and stream.handle is not None:
                stream.keep(kept)
        if kind is None:
            check(status)
