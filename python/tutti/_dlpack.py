"""Reads DLPack capsules through ctypes: address, type and shape of arrays of other libraries in host memory."""

from __future__ import annotations

import ctypes
import math
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

from . import _types
from ._api import Type
from ._errors import InvalidArgument

_CPU_DEVICES = (1, 3)  # kDLCPU, and kDLCUDAHost, which is pinned host memory.
_READ_ONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
                ("tensor", _Tensor)]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = [ctypes.py_object, ctypes.c_char_p], c_void_p


def _capsule(array: Any) -> Any:
    try:
        return array.__dlpack__(max_version=(1, 0))
    except TypeError:  # The library implements a version before 1.0.
        return array.__dlpack__()


def read(array: Any, writable: bool) -> tuple[int, int, int, Any, tuple[int, ...]]:
    """Returns address, number of elements, type, owner and shape of an array that has __dlpack__.

    The owner is the capsule, which keeps the memory until it is freed. Raises InvalidArgument if the array lies on a
    device, is not contiguous, is read-only and `writable`, or has elements of an unknown type.
    """
    kind = type(array).__name__
    try:
        device = int(array.__dlpack_device__()[0])
        capsule = _capsule(array) if device in _CPU_DEVICES else None
    except (BufferError, RuntimeError, ValueError) as error:
        raise InvalidArgument(f"the {kind} cannot be exported: {error}") from error
    if capsule is None:
        raise InvalidArgument(f"the {kind} lies on a device (DLPack type {device}); it must lie in host memory")
    tensor, flags = _tensor(capsule, kind)
    if writable and flags & _READ_ONLY:
        raise InvalidArgument(f"the {kind} is read-only; results need a writable array")
    shape = tensor.shape[:tensor.ndim]
    code = _types.of_dlpack(tensor.code, tensor.bits) if tensor.lanes == 1 else None
    if code is None:
        raise InvalidArgument(f"elements of DLPack type ({tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes) are unknown; "
                              f"types are {', '.join(Type.__members__)}")
    if tensor.strides and not _is_contiguous(shape, tensor.strides[:tensor.ndim]):
        raise InvalidArgument(f"the {kind} is not contiguous in C order; pass a contiguous copy")
    return (tensor.data or 0) + tensor.byte_offset, math.prod(shape), code, capsule, tuple(shape)


def _tensor(capsule: Any, kind: str) -> tuple[_Tensor, int]:
    try:
        versioned = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
    except ValueError:  # The capsule has another name, that of versions before 1.0.
        return _Tensor.from_address(_pointer(capsule, b"dltensor")), 0
    if versioned.major != 1:
        raise InvalidArgument(f"the {kind} has DLPack {versioned.major}.{versioned.minor}; versions up to 1 are supported")
    return versioned.tensor, versioned.flags


def _is_contiguous(shape: list[int], strides: list[int]) -> bool:
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size == 0:
            return True
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
