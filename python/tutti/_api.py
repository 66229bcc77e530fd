"""The C API of include/tutti/tutti.h for ctypes: enums, structs, prototypes and the loaded functions.

tests/python/header_test.py compares these declarations with the header. A new function of the C API needs a line in
PROTOTYPES, a new type or reduction a line in its enum.
"""

from __future__ import annotations

import ctypes
import enum
from ctypes import (CFUNCTYPE, POINTER, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64,
                    c_void_p)
from typing import Any, Callable, NoReturn

from . import _library


class Status(enum.IntEnum):
    """Result of a C function (tutti_status)."""

    ok = 0
    invalid_argument = 1
    invalid_usage = 2
    system_error = 3
    remote_error = 4
    timeout = 5
    aborted = 6
    unsupported = 7
    internal_error = 8
    in_progress = 9


class Type(enum.IntEnum):
    """Type of elements (tutti_type)."""

    int8 = 0
    uint8 = 1
    int16 = 2
    uint16 = 3
    int32 = 4
    uint32 = 5
    int64 = 6
    uint64 = 7
    float16 = 8
    bfloat16 = 9
    float32 = 10
    float64 = 11
    float8_e4m3 = 12
    float8_e5m2 = 13
    bool = 14
    complex64 = 15
    complex128 = 16


class Reduction(enum.IntEnum):
    """Reductions of collectives. Communicator.pre_mul_sum() creates others."""

    sum = 0
    prod = 1
    min = 2
    max = 3
    avg = 4
    band = 5
    bor = 6
    bxor = 7


class UniqueIdStruct(ctypes.Structure):
    _fields_ = [("bytes", c_char * 128)]


class TuningOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("algorithm", c_char_p), ("protocol", c_char_p), ("transport", c_char_p),
                ("channels", c_uint32), ("min_channels", c_uint32), ("max_channels", c_uint32)]


class CommOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("timeout_ms", c_int64), ("init_timeout_ms", c_int64),
                ("memory", c_char_p), ("compression", c_char_p), ("max_relative_error", c_double),
                ("compression_rounding", c_char_p), ("compression_seed", c_uint64), ("tuning", POINTER(TuningOptions)),
                ("wait", c_char_p), ("traffic_class", c_uint64)]


class CompressionStatisticsStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("compressed_calls", c_uint64), ("uncompressed_calls", c_uint64),
                ("element_bytes", c_uint64), ("message_bytes", c_uint64)]


class MessageStruct(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("peer", c_int), ("tag", c_uint64), ("count", c_size_t)]


STRUCTS = {
    "tutti_unique_id": UniqueIdStruct,
    "tutti_tuning_options": TuningOptions,
    "tutti_comm_options": CommOptions,
    "tutti_compression_statistics": CompressionStatisticsStruct,
    "tutti_message": MessageStruct,
}

COLOR_NONE = -1
ANY_RANK = -1

CallbackFunction = CFUNCTYPE(None, c_void_p, c_int)  # void (*)(void* argument, tutti_status status).

_handle = c_void_p  # tutti_comm, tutti_request, tutti_stream, tutti_event.
_handle_out = POINTER(c_void_p)
_text_out = POINTER(c_char_p)
_int_out = POINTER(c_int)
_options = POINTER(CommOptions)
_counts = POINTER(c_size_t)
_message_out = POINTER(MessageStruct)

# Name without "tutti_": types of the arguments. All functions return tutti_status, except those in RESULTS.
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "status_name": (c_int,),
    "last_error": (_handle,),
    "version": (),
    "get_unique_id": (POINTER(UniqueIdStruct),),
    "comm_create": (POINTER(UniqueIdStruct), c_int, c_int, _options, _handle_out),
    "comm_create_all": (c_int, _options, _handle_out),
    "comm_create_from_environment": (_options, _handle_out),
    "comm_launcher": (_handle, _text_out),
    "comm_split": (_handle, c_int, c_int, _options, _handle_out),
    "comm_shrink": (_handle, _int_out, c_int, _options, _handle_out),
    "comm_with_options": (_handle, _options, _handle_out),
    "comm_rank": (_handle, _int_out),
    "comm_ranks": (_handle, _int_out),
    "comm_device": (_handle, _int_out),
    "comm_device_memory": (_handle, _counts),
    "comm_last_choice": (_handle, _text_out, _text_out),
    "comm_last_compression": (_handle, _text_out, POINTER(c_double)),
    "comm_compression_statistics": (_handle, POINTER(CompressionStatisticsStruct)),
    "algorithms": (c_char_p, _text_out),
    "comm_synchronize": (_handle,),
    "comm_finalize": (_handle,),
    "comm_destroy": (_handle,),
    "comm_leave": (_handle,),
    "comm_abort": (_handle,),
    "comm_async_error": (_handle, _int_out),
    "reduction_create_pre_mul_sum": (c_void_p, c_int, _handle, POINTER(c_int32)),
    "reduction_destroy": (c_int32, _handle),
    "all_reduce": (c_void_p, c_void_p, c_size_t, c_int, c_int32, _handle, _handle),
    "all_gather": (c_void_p, c_void_p, c_size_t, c_int, _handle, _handle),
    "reduce_scatter": (c_void_p, c_void_p, c_size_t, c_int, c_int32, _handle, _handle),
    "broadcast": (c_void_p, c_void_p, c_size_t, c_int, c_int, _handle, _handle),
    "reduce": (c_void_p, c_void_p, c_size_t, c_int, c_int32, c_int, _handle, _handle),
    "all_to_all": (c_void_p, c_void_p, c_size_t, c_int, _handle, _handle),
    "all_to_all_v": (c_void_p, _counts, _counts, c_void_p, _counts, _counts, c_int, _handle, _handle),
    "gather": (c_void_p, c_void_p, c_size_t, c_int, c_int, _handle, _handle),
    "scatter": (c_void_p, c_void_p, c_size_t, c_int, c_int, _handle, _handle),
    "send": (c_void_p, c_size_t, c_int, c_int, _handle, _handle),
    "recv": (c_void_p, c_size_t, c_int, c_int, _handle, _handle),
    "report": (c_char_p, c_int, c_char_p),
    "group_start": (),
    "group_end": (),
    "isend": (c_void_p, c_size_t, c_int, c_int, c_uint64, _handle, _handle_out),
    "irecv": (c_void_p, c_size_t, c_int, c_int, c_uint64, _handle, _handle_out),
    "iprobe": (c_int, c_uint64, _handle, _int_out, _message_out),
    "request_wait": (_handle, c_int64, _message_out),
    "request_on_completion": (_handle, CallbackFunction, c_void_p),
    "request_destroy": (_handle,),
    "stream_create": (_handle_out,),
    "stream_destroy": (_handle,),
    "stream_synchronize": (_handle,),
    "stream_query": (_handle,),
    "stream_add_callback": (_handle, CallbackFunction, c_void_p),
    "event_create": (_handle_out,),
    "event_destroy": (_handle,),
    "event_record": (_handle, _handle),
    "stream_wait": (_handle, _handle),
    "event_synchronize_for": (_handle, c_int64),
    "event_query": (_handle,),
    "residual_attach": (c_void_p, c_size_t, c_int, c_void_p, _handle),
    "residual_detach": (c_void_p, _handle),
    "mem_alloc": (_handle_out, c_size_t),
    "mem_free": (c_void_p,),
}
RESULTS: dict[str, Any] = {"status_name": c_char_p, "last_error": c_char_p, "version": c_int}

# Functions of the C API without a prototype here: for C programs, for libraries on top of the C API, and for GPUs.
NOT_USED = {"group_simulate_end", "reduction_create_pre_mul_sum_at", "event_synchronize", "current_device",
            "window_register", "window_deregister", "mem_alloc_cuda", "mem_trim_cuda", "mem_register", "mem_deregister"}

library, so_path = _library.load()


def _function(name: str) -> Callable[..., Any]:
    try:
        function = library["tutti_" + name]  # A new object, whose types other users of `library` cannot change.
    except AttributeError:
        raise ImportError(f"tutti: {so_path} has no tutti_{name}: install a library of the package's version") from None
    function.argtypes = PROTOTYPES[name]
    function.restype = RESULTS.get(name, c_int)
    return function


def has(name: str) -> bool:
    """Returns true if the loaded library has the C function `name`, such as "tutti_isend"."""
    return hasattr(library, name)


class Functions:
    """The C functions, as attributes without "tutti_". A call releases the GIL."""

    def __init__(self) -> None:
        for name in PROTOTYPES:
            setattr(self, name, _function(name))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"the C function tutti_{name} has no prototype in tutti/_api.py")


c = Functions()


class NotCopyable:
    """Base of classes with a handle of the C API, which a copy of the object would destroy a second time."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"tutti.{type(self).__name__} can be neither copied nor pickled")


def version() -> str:
    """Returns the version of the loaded library, such as "0.2.0"."""
    number = c.version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
