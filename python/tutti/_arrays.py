"""Arrays of callers: NumPy arrays, objects with the buffer protocol or DLPack, and addresses.

An array is described by a tuple (address, count, type, owner): count is in elements, and the memory is valid while the
owner lives. Arrays must be contiguous in C order; others are refused, since a hidden copy would cost time and lose results.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_char_p, c_int, c_ssize_t, c_void_p
from typing import Any, Tuple

from . import _dlpack, _types
from ._api import Type
from ._errors import InvalidArgument

Described = Tuple[int, int, int, Any]

_addressof = ctypes.addressof
_NoBytes = ctypes.c_char * 0
_exported = _NoBytes.from_buffer  # Fails unless the memory is writable and contiguous.


class Buffer:
    """Memory at an address, for callers that manage it themselves.

    address:  of the first element, aligned to the element size
    count:    number of elements
    type:     tutti.Type or its name, such as "float32"
    owner:    object that is kept alive until calls with the buffer are done
    writable: whether the memory may receive results
    """

    __slots__ = ("address", "count", "type", "owner", "writable")

    def __init__(self, address: int, count: int, type: Type | str, owner: Any = None, writable: bool = True) -> None:
        self.address = address
        self.count = count
        self.type = Type(_types.type_of(type))
        bytes_per_element = _types.SIZES[self.type]
        if not 0 <= count < 2**63 // bytes_per_element:
            raise InvalidArgument(f"count is {count}; it must be 0 or more, and the memory below 2**63 bytes")
        self.owner = owner
        self.writable = writable


class _Kind:
    """How arrays of one class are described and created."""

    def describe(self, array: Any, writable: bool) -> Described:
        raise NotImplementedError

    def shape(self, array: Any) -> tuple[int, ...]:
        return tuple(array.shape)

    def new(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Returns a new array of the elements' type. NumPy's, unless the array's library creates its own."""
        dtype = numpy_dtype(self.describe(array, False)[2])
        return sys.modules["numpy"].empty(shape, dtype)


class _Buffers(_Kind):
    def describe(self, array: Any, writable: bool) -> Described:
        if writable and not array.writable:
            raise InvalidArgument("the Buffer is not writable; results need writable memory")
        return array.address, array.count, int(array.type), array

    def shape(self, array: Any) -> tuple[int, ...]:
        return (array.count,)


class _NumpyArrays(_Kind):
    def __init__(self, numpy: Any) -> None:
        self._codes: dict[Any, int] = {}
        self._empty = numpy.empty

    def describe(self, array: Any, writable: bool) -> Described:
        code = self._codes.get(array.dtype)
        if code is not None:
            try:
                exported = _exported(array)
                return _addressof(exported), array.size, code, exported
            except (TypeError, ValueError):  # Read-only, not contiguous, or a type of ml_dtypes.
                pass
        return self._describe_slowly(array, writable)

    def _describe_slowly(self, array: Any, writable: bool) -> Described:
        code = _types.of_numpy(array.dtype)
        if code is None:
            if not array.dtype.isnative and array.dtype.name in Type.__members__:
                raise InvalidArgument("the elements have a foreign byte order, which is not supported; pass "
                                      f"array.astype({array.dtype.name!r})")
            raise InvalidArgument(f"elements of type {array.dtype.name} are unknown; types are {', '.join(Type.__members__)}")
        self._codes[array.dtype] = code
        if not array.flags.c_contiguous:
            raise InvalidArgument(f"the array is not contiguous in C order (shape {array.shape}, strides {array.strides}); "
                                  "pass numpy.ascontiguousarray(array)")
        if writable and not array.flags.writeable:
            raise InvalidArgument("the array is read-only; results need a writable array")
        return array.__array_interface__["data"][0], array.size, code, array

    def new(self, array: Any, shape: tuple[int, ...]) -> Any:
        return self._empty(shape, array.dtype)


class _DlpackArrays(_Kind):
    def describe(self, array: Any, writable: bool) -> Described:
        return _dlpack.read(array, writable)[:4]

    def shape(self, array: Any) -> tuple[int, ...]:
        return tuple(array.shape) if hasattr(array, "shape") else _dlpack.read(array, False)[4]

    def new(self, array: Any, shape: tuple[int, ...]) -> Any:
        if hasattr(array, "new_empty"):  # PyTorch.
            return array.new_empty(shape)
        return super().new(array, shape)


class _View(ctypes.Structure):  # Py_buffer.
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t), ("itemsize", c_ssize_t), ("readonly", c_int),
                ("ndim", c_int), ("format", c_char_p), ("shape", c_void_p), ("strides", c_void_p), ("suboffsets", c_void_p),
                ("internal", c_void_p)]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes, _get_buffer.restype = [ctypes.py_object, ctypes.POINTER(_View), c_int], c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes, _release_buffer.restype = [ctypes.POINTER(_View)], None


class _Memory(_Kind):
    """Objects with the buffer protocol, such as bytearray, array.array and memoryview."""

    def describe(self, array: Any, writable: bool) -> Described:
        view = memoryview(array)
        code = _types.of_format(view.format, view.itemsize)
        if code is None:
            raise InvalidArgument(f"elements of format {view.format!r} are unknown; types are {', '.join(Type.__members__)}")
        if not view.c_contiguous:
            raise InvalidArgument("the memory is not contiguous in C order; pass a contiguous copy")
        if writable and view.readonly:
            raise InvalidArgument(f"the {type(array).__name__} is read-only; results need writable memory")
        raw = _View()
        _get_buffer(view, raw, 0)
        address = raw.buf or 0
        _release_buffer(raw)
        return address, view.nbytes // view.itemsize, code, view  # The view keeps the memory in its place.

    def shape(self, array: Any) -> tuple[int, ...]:
        return tuple(memoryview(array).shape or ())


_kinds: dict[type, _Kind] = {Buffer: _Buffers()}


def numpy_dtype(code: int) -> Any:
    """Returns NumPy's dtype. Raises InvalidArgument if NumPy, or ml_dtypes for its types, is not installed."""
    name = Type(code).name
    try:
        import numpy
        if name in _types.OF_ML_DTYPES:
            import ml_dtypes
            return numpy.dtype(getattr(ml_dtypes, _types.OF_ML_DTYPES[name]))
        return numpy.dtype(name)
    except ImportError as error:
        raise InvalidArgument(f"no NumPy array of type {name} can be created, because {error.name} is not installed: install "
                              "it, or pass out=") from None


def _add_kind(array: Any) -> _Kind:
    numpy = sys.modules.get("numpy")
    kind: _Kind
    if isinstance(array, Buffer):
        kind = _Buffers()
    elif numpy is not None and isinstance(array, numpy.ndarray):
        if type(array) is not numpy.ndarray and isinstance(array, numpy.ma.MaskedArray):
            raise InvalidArgument("the array has a mask, which would be ignored; pass array.filled(), or array.data")
        kind = _NumpyArrays(numpy)
    elif hasattr(array, "__dlpack__"):
        kind = _DlpackArrays()
    elif _is_memory(array):
        kind = _Memory()
    else:
        raise InvalidArgument(f"an object of class {type(array).__name__} is not an array; pass a NumPy array, or an "
                              "object with the buffer protocol or DLPack")
    _kinds[type(array)] = kind
    return kind


def _is_memory(array: Any) -> bool:
    try:
        memoryview(array).release()
    except TypeError:
        return False
    return True


def kind_of(array: Any) -> _Kind:
    return _kinds.get(type(array)) or _add_kind(array)


def describe(array: Any, writable: bool) -> Described:
    """Returns (address, count, type, owner). Raises InvalidArgument with the reason if the array is refused."""
    return (_kinds.get(type(array)) or _add_kind(array)).describe(array, writable)
