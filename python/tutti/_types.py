"""Names of element types and reductions, and their values in the C API."""

from __future__ import annotations

import functools
import operator
import struct
from typing import Any

from ._api import Reduction, Type
from ._errors import InvalidArgument

# Kind of number (letters of NumPy) and size in bytes: name of the type.
_NUMBERS = {
    ("i", 1): "int8", ("u", 1): "uint8", ("i", 2): "int16", ("u", 2): "uint16", ("i", 4): "int32", ("u", 4): "uint32",
    ("i", 8): "int64", ("u", 8): "uint64", ("f", 2): "float16", ("f", 4): "float32", ("f", 8): "float64",
    ("b", 1): "bool", ("c", 8): "complex64", ("c", 16): "complex128",
}
# Types of ml_dtypes, by our names and by its own. Its float8_e4m3 has infinities, unlike that of the C API.
OF_ML_DTYPES = {"bfloat16": "bfloat16", "float8_e4m3": "float8_e4m3fn", "float8_e5m2": "float8_e5m2"}
_ML_DTYPES = {theirs: ours for ours, theirs in OF_ML_DTYPES.items()}
# Letters of formats of the buffer protocol, by kind of number.
_LETTERS = {"i": "bhilqn", "u": "BHILQNc", "f": "efd", "b": "?"}
# Code and bits of DLPack: kind of number, or name of the type.
_DLPACK_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_DLPACK_NAMES = {(4, 16): "bfloat16", (10, 8): "float8_e4m3", (12, 8): "float8_e5m2"}

_SIZES = {name: size for (_, size), name in _NUMBERS.items()} | {"bfloat16": 2, "float8_e4m3": 1, "float8_e5m2": 1}
SIZES = {int(code): _SIZES[name] for name, code in Type.__members__.items()}  # In bytes, by type.

OPERATIONS = {name: int(value) for name, value in Reduction.__members__.items()}


def _known(name: str | None) -> int | None:
    member = Type.__members__.get(name or "")
    return None if member is None else int(member)


def int_of(name: str, value: Any) -> int:
    """Returns a number that the C API takes as an int. ctypes would drop the upper bits of a larger one."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{name} is {value!r}; it must be an integer") from None
    if -2**31 <= number < 2**31:
        return number
    raise InvalidArgument(f"{name} is {number}; it must fit in 32 bits")


def of_number(kind: str, size: int) -> int | None:
    """Returns the type of numbers of `size` bytes, or None if the C API has none."""
    return _known(_NUMBERS.get((kind, size)))


def of_numpy(dtype: Any) -> int | None:
    """Returns the type of a NumPy dtype, or None."""
    # isbuiltin is 1 only for NumPy's own numbers in the native byte order.
    return of_number(dtype.kind, dtype.itemsize) if dtype.isbuiltin == 1 else _known(_ML_DTYPES.get(dtype.name))


def of_format(text: str, size: int) -> int | None:
    """Returns the type of a format of the buffer protocol, or None."""
    letter = text[1:] if text[:1] in ("@", "=", "<") else text
    kind = next((kind for kind, letters in _LETTERS.items() if len(letter) == 1 and letter in letters), "")
    return of_number({"Zf": "c", "Zd": "c"}.get(letter, kind), size)


@functools.cache
def of_dlpack(code: int, bits: int) -> int | None:
    """Returns the type of a DLDataType with one lane, or None."""
    return _known(_DLPACK_NAMES.get((code, bits))) or of_number(_DLPACK_KINDS.get(code, ""), bits // 8)


def type_of(given: Any) -> int:
    """Returns the type that a caller names: a Type, a name such as "float32", or a type of NumPy or PyTorch."""
    if isinstance(given, Type):
        return int(given)
    name = str(getattr(given, "name", getattr(given, "__name__", given))).removeprefix("torch.")
    code = _known(_ML_DTYPES.get(name, name))
    if code is None:
        raise InvalidArgument(f"type {name!r} is unknown; types are {', '.join(Type.__members__)}")
    return code


def scalar(value: complex, code: int) -> bytes:
    """Returns the bytes of an element. Raises InvalidArgument if the type has no such number, or no factors."""
    name = Type(code).name
    kind, size = next((key for key, number in _NUMBERS.items() if number == name), ("", 0))
    if name != "bfloat16" and kind not in ("i", "u", "f", "c"):
        raise InvalidArgument(f"factors of type {name} are not supported; types are int8 ... uint64, float16, bfloat16, "
                              "float32, float64, complex64 and complex128")
    try:
        return _packed(value, kind, size)
    except (AttributeError, TypeError, ValueError, OverflowError, struct.error):
        raise InvalidArgument(f"factor {value!r} is not a number of type {name}; pass a number in its range") from None


def _packed(value: Any, kind: str, size: int) -> bytes:
    if kind in ("i", "u"):
        if value != int(value):
            raise ValueError
        return int(value).to_bytes(size, "little", signed=kind == "i")
    if kind == "f":
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], value)
    if kind == "c":
        return struct.pack({8: "<2f", 16: "<2d"}[size], value.real, value.imag)
    bits = int.from_bytes(struct.pack("<f", value), "little")  # bfloat16: to nearest, ties to even.
    return struct.pack("<H", bits + 0x7FFF + (bits >> 16 & 1) >> 16)
