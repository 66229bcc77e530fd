"""Functions of the program that threads of the library call."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from typing import Any, Callable

from ._api import CallbackFunction
from ._errors import InvalidUsage


class _Thread(threading.local):
    is_library = False  # Whether the thread is one of the library, which is in a callback.


_thread = _Thread()
_keys = itertools.count(1)
_waiting: dict[int, Callable[[int], None]] = {}  # Functions that will be called. C gets their keys.
os.register_at_fork(after_in_child=_waiting.clear)  # A child has no threads of the library.


def _call(key: int, status: int) -> None:
    if sys._getframe().f_back is None:  # A thread of the library. Python's data of the thread end with this call.
        _thread.is_library = True
    _waiting.pop(key)(status)  # ctypes passes exceptions to sys.unraisablehook.


_called_by_c = CallbackFunction(_call)


def register(add: Callable[..., int], handle: int | None, function: Callable[[int], None]) -> int:
    """Passes `function`, which gets a status, to `add` of the C API. Keeps it alive until it is called.

    Returns the status of `add`. Until communicators and streams end, each function is called.
    """
    key = next(_keys)
    _waiting[key] = function
    status = add(handle, _called_by_c, key)
    if status:
        _waiting.pop(key, None)
    return status


def in_library() -> bool:
    """Returns true in a callback in a thread of the library."""
    return _thread.is_library


def refuse_wait(operation: str) -> None:
    """Raises InvalidUsage in a thread of the library, which would wait for itself."""
    if _thread.is_library:
        raise InvalidUsage("a callback must not wait; call it in a thread of the program", operation=operation)


def outside(function: Callable[..., Any], *arguments: Any) -> None:
    """Calls a function that may wait: in another thread, if this one is of the library."""
    if _thread.is_library:
        threading.Thread(target=function, args=arguments).start()
    else:
        function(*arguments)
