"""Options of process groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Tuple

DEVICES = ["cpu", "cuda"]  # On the Python path, CUDA tensors get an error.
COMPRESSION = ("raw", "bf16", "fp16", "int8", "int8_b32", "int6", "int4", "fp8_e4m3", "fp8_e5m2", "mxfp8")
ROUNDING = ("nearest", "stochastic")


def _check_name(field: str, value: Any, names: Tuple[str, ...]) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{field} is of class {type(value).__name__}; pass one of " + ", ".join(names))
    if value not in ("", *names):
        raise ValueError(f"{field} is {value!r}; pass one of " + ", ".join(names))


@dataclass
class Options:
    """The argument `pg_options` of init_process_group() and new_group(). Equal on all ranks.

    compression           "raw" (none, default), "bf16", "fp16", "int8", "int8_b32", "int6", "int4", "fp8_e4m3", "fp8_e5m2"
                          or "mxfp8", for float32, float16 and bfloat16 tensors
    max_relative_error    bound on the expected relative error, instead of a format, above 0 and below 1; 0: no bound
    compression_rounding  "nearest" (default) or "stochastic"
    compression_seed      seed of stochastic rounding

    A split of the group inherits the options.

    Raises ValueError for an unknown name or a value out of range, and TypeError for a value of another type.
    """

    compression: str = ""
    max_relative_error: float = 0.0
    compression_rounding: str = ""
    compression_seed: int = 0

    def __post_init__(self) -> None:
        _check_name("compression", self.compression, COMPRESSION)
        _check_name("compression_rounding", self.compression_rounding, ROUNDING)
        if not isinstance(self.max_relative_error, (int, float)):
            raise TypeError(f"max_relative_error is of class {type(self.max_relative_error).__name__}; pass a number")
        if not 0 <= self.max_relative_error < 1:
            raise ValueError(f"max_relative_error is {self.max_relative_error}; pass a number from 0 to less than 1")
        if self.max_relative_error > 0 and self.compression:
            raise ValueError("pass compression or max_relative_error, but not both")
        if not isinstance(self.compression_seed, int):
            raise TypeError(f"compression_seed is of class {type(self.compression_seed).__name__}; pass an int")


def communicator_name(given: Any) -> str:
    """Returns the name of a group's communicator in messages: none for the default group, whose list of ranks is empty."""
    return f"group {given.group_id}" if given.global_ranks_in_group else ""
