"""Options of communicators: keyword arguments in Python, tutti_comm_options in C."""

from __future__ import annotations

import ctypes
import math
import operator
from typing import Any, Mapping, TypedDict

from ._api import CommOptions, TuningOptions
from ._errors import InvalidArgument

_TUNING = ("algorithm", "protocol", "transport", "channels", "min_channels", "max_channels")  # Fields of tutti_tuning_options.
_TIMES = {"timeout": "timeout_ms", "init_timeout": "init_timeout_ms"}
_LONGEST_MS = 1 << 40  # 34 years.
_INTEGER_BITS = {"compression_seed": 64, "channels": 32, "min_channels": 32, "max_channels": 32, "traffic_class": 64}


class Options(TypedDict, total=False):
    """Keyword arguments of the methods that create communicators. Communicator describes them. None is the default."""

    name: str | None
    timeout: float | None
    init_timeout: float | None
    memory: str | None
    compression: str | None
    max_relative_error: float | None
    compression_rounding: str | None
    compression_seed: int | None
    algorithm: str | None
    protocol: str | None
    transport: str | None
    channels: int | None
    min_channels: int | None
    max_channels: int | None
    wait: str | None
    traffic_class: int | None


def _milliseconds(name: str, seconds: Any) -> int:
    if seconds == math.inf:
        return -1
    if not isinstance(seconds, (int, float)) or not seconds > 0:
        raise InvalidArgument(f"{name} is {seconds!r}; it must be a number of seconds above 0, or math.inf for no limit")
    return max(1, round(min(seconds * 1000, _LONGEST_MS)))


def limit_ms(timeout: Any) -> int:
    """Returns the maximum wait in milliseconds for C: -1, which is no limit, for None and infinity."""
    if timeout is None or timeout == math.inf:
        return -1
    if not isinstance(timeout, (int, float)) or not timeout >= 0:
        raise InvalidArgument(f"timeout is {timeout!r}; it must be 0 or more seconds, or None for no limit")
    return min(math.ceil(timeout * 1000), _LONGEST_MS)


def _set(struct: ctypes.Structure, name: str, value: Any) -> None:
    if name in _INTEGER_BITS:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise InvalidArgument(f"{name} is {value!r}; it must be an integer")
        number = operator.index(value)
        if not 0 <= number < 1 << _INTEGER_BITS[name]:
            raise InvalidArgument(f"{name} is {number}; it must be 0 or more, and fit in {_INTEGER_BITS[name]} bits")
        setattr(struct, name, number)
    elif name == "max_relative_error":
        try:
            setattr(struct, name, value)
        except TypeError:
            raise InvalidArgument(f"{name} is {value!r}; it must be a number") from None
    elif isinstance(value, str):
        if "\0" in value:
            raise InvalidArgument(f"{name} is {value!r}; it must not contain a null character")
        setattr(struct, name, value.encode())
    else:
        raise InvalidArgument(f"{name} is {value!r}; it must be a string")


def struct_of(options: Mapping[str, object]) -> CommOptions:
    """Returns the C struct. It keeps `tuning` alive."""
    made = CommOptions(size=ctypes.sizeof(CommOptions))
    tuning = TuningOptions(size=ctypes.sizeof(TuningOptions))
    for name, value in options.items():
        if name not in Options.__annotations__:
            raise InvalidArgument(f"option {name!r} is unknown; options are {', '.join(Options.__annotations__)}")
        if value is None:
            continue
        if name in _TIMES:
            setattr(made, _TIMES[name], _milliseconds(name, value))
        elif name in _TUNING:
            _set(tuning, name, value)
            made.tuning = ctypes.pointer(tuning)
        else:
            _set(made, name, value)
    return made
