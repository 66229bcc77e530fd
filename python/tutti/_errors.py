"""Exceptions. Each failure of a C function raises the subclass of Error for its status."""

from __future__ import annotations

import ctypes
import re
from typing import Mapping

from ._api import PROTOTYPES, Status, c

# Messages name the rank that delays the others in these words. Other messages name the failed rank first.
_DELAYING = re.compile(r"\brank (\d+)(?:, which)? has not called it|\bwaited [^:]*? for rank (\d+)")
_RANK = re.compile(r"\brank (\d+)")
# Messages of waits begin with the call that failed, such as "all_reduce(3 int8, sum)".
_CALL = re.compile(r"(?:stream: )?([a-z_]+)\(")
# Names of the C API in messages, and those of Python. Other functions have the same name without "tutti_" and "comm_", options
# without "options.".
_C_NAME = re.compile(r"(?<![\w/.-])(?:options\.(?:tuning->)?(?=[a-z])|(?:tutti|TUTTI)_\w+|null\b)")
_PYTHON_NAMES = {"null": "None", "TUTTI_ANY_RANK": "None", "TUTTI_COLOR_NONE": "None", "tutti_group_start": "tutti.group()",
                 "tutti_group_end": "tutti.group()", "tutti_mem_alloc": "tutti.zeros()",
                 "tutti_get_unique_id": "tutti.UniqueId()"}


class Error(RuntimeError):
    """A call of Tutti failed.

    status:    why (tutti.Status)
    message:   what is wrong, what is allowed, and what to do
    operation: the C function without "tutti_", such as "all_reduce": the call that failed, also if a wait for a stream or a
               group reports it; "" if the failure belongs to no function
    rank:      this rank; None if no communicator, or more than one, is involved
    peer:      the rank that the message names as the cause, such as the one that died; None if that is this rank, if the
               message names no other one, if `rank` is None, and for invalid arguments
    """

    status = Status.internal_error

    def __init__(self, message: str, *, operation: str = "", rank: int | None = None) -> None:
        super().__init__(f"{operation}: {message}" if operation else message)
        self.message = message
        self.operation = operation
        self.rank = rank
        self.peer = None if self.status == Status.invalid_argument else peer_in(message, rank)


class InvalidArgument(Error, ValueError):
    """A value is never valid, such as an array with an unknown type."""

    status = Status.invalid_argument


class InvalidUsage(Error):
    """A value is valid, but at another time; or the ranks disagree on a call."""

    status = Status.invalid_usage


class SystemError_(Error):
    """A call of the operating system failed."""

    status = Status.system_error


class RemoteError(Error):
    """A peer died or failed."""

    status = Status.remote_error


class Timeout(Error):
    """A timeout passed."""

    status = Status.timeout


class Aborted(Error):
    """The communicator was aborted, by this rank or by a peer."""

    status = Status.aborted


class Unsupported(Error):
    """The call is valid, but not built in, or not available on this machine."""

    status = Status.unsupported


class InternalError(Error):
    """Tutti has a bug."""

    status = Status.internal_error


CLASSES: dict[int, type[Error]] = {
    int(kind.status): kind
    for kind in (InvalidArgument, InvalidUsage, SystemError_, RemoteError, Timeout, Aborted, Unsupported, InternalError)
}


def peer_in(message: str, rank: int | None) -> int | None:
    """Returns the rank that a message names as the cause. None if that is `rank`, which is this rank, if the message names no
    other one, or if `rank` is unknown."""
    if rank is None:
        return None
    delaying = _DELAYING.search(message)
    if delaying is not None:
        cause = int(delaying[1] or delaying[2])
        return None if cause == rank else cause
    return next((peer for peer in map(int, _RANK.findall(message)) if peer != rank), None)


def _name_in_python(found: re.Match[str]) -> str:
    name = found[0]
    if name.startswith("options."):
        return ""
    short = name.removeprefix("tutti_")
    return _PYTHON_NAMES.get(name, short.removeprefix("comm_") if short in PROTOTYPES else name)


def error_of(status: int, text: str, rank: int | None = None, classes: Mapping[int, type[Error]] = CLASSES) -> Error:
    """Returns the exception for a status and a text of tutti_last_error()."""
    operation, separator, message = text.partition(": ")
    if not separator or not operation.startswith("tutti_"):
        operation, message = "", text
    message = _C_NAME.sub(_name_in_python, message)
    error = classes.get(status, Error)(message, operation=operation.removeprefix("tutti_"), rank=rank)
    call = _CALL.match(message)
    if call is not None:
        error.operation = call[1]
    return error


def last_error(status: int, rank: int | None = None) -> Error:
    """Returns the exception for the last failed call of this thread."""
    return error_of(status, c.last_error(None).decode(errors="replace"), rank)


def last_error_among(status: int, ranks: Mapping[int, int]) -> Error:
    """Returns the exception for the last failed call of this thread, which waited for calls of several communicators.

    ranks: rank of this process by the handle of each communicator. The error belongs to the one that has failed.
    """
    text = c.last_error(None).decode(errors="replace")
    found = set(ranks.values())
    if len(found) > 1:  # Otherwise without queries, after which close() does not raise the failures that they found.
        failed = set()
        for handle, rank in ranks.items():
            state = ctypes.c_int()
            if c.comm_async_error(handle, state) == 0 and state.value == status:
                failed.add(rank)
        found = failed or found
    return error_of(status, text, found.pop() if len(found) == 1 else None)


def check(status: int, rank: int | None = None) -> None:
    """Raises the exception for a status other than ok."""
    if status:
        raise last_error(status, rank)
