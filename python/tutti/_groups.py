"""Groups of calls that run together."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from ._api import Status, c
from ._errors import check, last_error_among
from ._streams import Stream


class _Thread(threading.local):
    """Open groups of a thread."""

    def __init__(self) -> None:
        self.depth = 0
        # Calls that wait for the end of the outermost group: stream, arrays, and rank by handle of the communicator.
        self.calls: list[tuple[Stream | None, Any, tuple[int, int]]] = []

    def keep(self, stream: Stream | None, arrays: Any, comm: tuple[int, int]) -> None:
        self.calls.append((stream, arrays, comm))


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
            text = "an exception in its body, " + kind.__name__
            with contextlib.suppress(Exception):  # Its __str__ may fail.
                text += f": {value}"
            c.report(b"group", Status.invalid_usage, text.encode(errors="replace"))
        thread.depth -= 1
        calls: list[tuple[Stream | None, Any, tuple[int, int]]] = []
        if thread.depth == 0:
            calls, thread.calls = thread.calls, []
        status = c.group_end()
        error = last_error_among(status, dict(comm for _, _, comm in calls)) if status else None
        for stream, arrays, comm in calls:
            if stream is not None and stream.handle is not None:
                stream.keep(arrays, comm)
        if kind is None and error is not None:
            raise error
