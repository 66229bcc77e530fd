"""Exceptions of process groups: those of the package tutti, which are also torch.distributed.DistBackendError."""

from __future__ import annotations

import contextlib
import datetime
import re
import time
from typing import Any, Iterator

import torch.distributed as dist

from tutti import _errors
from tutti._api import Status

# Status of the C API: the class of its failures.
_classes: dict[int, Any] = {
    status: type(kind.__name__, (kind, dist.DistBackendError), {"__module__": __name__, "__doc__": kind.__doc__})
    for status, kind in _errors.CLASSES.items()
}
globals().update({kind.__name__: kind for kind in _classes.values()})  # Pickle finds classes by their names.


# Beginning of messages about a collective, in the words of the flight recorder.
_OPERATION = re.compile(r"(\w+) \(sequence number \d+\): ")


def error_of(status: int, text: str, rank: int | None) -> _errors.Error:
    """Returns the exception for a status and a text of tutti_last_error() or of in_operation() in native/work.h.

    rank: this process in its group
    """
    error = _errors.error_of(status, text, rank, _classes)
    operation = _OPERATION.match(text)
    if operation is not None:
        error.operation = operation[1]
    return error


@contextlib.contextmanager
def raised_by(rank: int, operation: str = "") -> Iterator[None]:
    """Makes errors of the package tutti in its body those of a process group, in which this process is `rank`.

    operation: name and number of the collective, in the form of _OPERATION; "": none
    """
    try:
        yield
    except _errors.Error as error:
        if isinstance(error, dist.DistBackendError):
            raise
        function = f"tutti_{error.operation}" if error.operation else ""
        text = f"{operation or function}: {error.message}" if operation or function else error.message
        raise error_of(error.status, text, rank).with_traceback(error.__traceback__) from None


@contextlib.contextmanager
def limited_to(timeout: datetime.timedelta) -> Iterator[None]:
    """Adds to a Timeout of its body that the timeout of the operation has passed, if it has. PyTorch's users look for this."""
    start = time.monotonic()
    try:
        yield
    except _errors.Timeout as error:
        if 0 < timeout.total_seconds() <= time.monotonic() - start:
            error.message += "; the timeout of the operation has passed"
        raise


def argument_error(text: str) -> _errors.Error:
    """Returns the exception for an invalid argument, which is also a ValueError."""
    return error_of(Status.invalid_argument, text, None)


def timeout_error(text: str, rank: int) -> _errors.Error:
    return error_of(Status.timeout, text, rank)


def shut_down_error() -> _errors.Error:
    return _errors.InvalidUsage("the process group has been shut down; create a new one")


def no_members_error() -> _errors.Error:
    return _errors.InvalidUsage("the process group has no members; call torch.distributed._reconfigure() first")
