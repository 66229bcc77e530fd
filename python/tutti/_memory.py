"""Arrays in memory that other ranks of the host can access."""

from __future__ import annotations

import ctypes
import sys
import weakref
from typing import Any

from . import _types
from ._api import c
from ._arrays import numpy_dtype
from ._errors import InvalidArgument, check


def zeros(shape: int | tuple[int, ...], dtype: Any = "float32") -> Any:
    """Returns a NumPy array of zeros in memory that other ranks of the host can access.

    Collectives are faster with it, if all ranks use such arrays. Slices are as fast. Each array has a file descriptor until it
    and its slices are freed, so allocate few large ones.
    shape: a number of elements, or a tuple. dtype: a tutti.Type, a name such as "float32", or what numpy.dtype() accepts.
    """
    code = _type_of(dtype)
    element = numpy_dtype(code)
    count = 1
    for size in (shape,) if isinstance(shape, int) else shape:
        if not hasattr(size, "__index__") or size < 0:
            raise InvalidArgument(f"the shape is {shape!r}; sizes must be 0 or more", operation="zeros")
        count *= size
    size_bytes = max(1, count) * _types.SIZES[code]
    if size_bytes > sys.maxsize:
        raise InvalidArgument(f"the shape is {shape!r}, of {size_bytes} bytes, which exceed the address space", operation="zeros")
    address = ctypes.c_void_p()
    check(c.mem_alloc(address, size_bytes))
    memory = (ctypes.c_char * size_bytes).from_address(address.value or 0)
    # Arrays refer to `memory`. At the end of the program the system frees it, since calls in streams may still use it.
    weakref.finalize(memory, c.mem_free, address.value).atexit = False
    return sys.modules["numpy"].frombuffer(memory, element, count).reshape(shape)


def _type_of(dtype: Any) -> int:
    try:
        return _types.type_of(dtype)
    except InvalidArgument:
        try:
            import numpy
            code = None if dtype is None else _types.of_numpy(numpy.dtype(dtype))
        except (ImportError, TypeError, ValueError):
            code = None
        if code is None:
            raise
        return code
