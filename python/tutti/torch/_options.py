"""Options of process groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DEVICES = ["cpu", "cuda"]  # On the Python path, CUDA tensors get an error.


@dataclass
class Options:
    """The argument `pg_options` of init_process_group() and new_group(). Equal on all ranks.

    compression           "raw" (none, default), "bf16", "fp16", "int8", "int8_b32", "int6", "int4", "fp8_e4m3", "fp8_e5m2"
                          or "mxfp8", for float32, float16 and bfloat16 tensors
    max_relative_error    bound on the expected relative error, instead of a format, above 0 and below 1; 0: no bound
    compression_rounding  "nearest" (default) or "stochastic"
    compression_seed      seed of stochastic rounding

    A split of the group inherits the options.
    """

    compression: str = ""
    max_relative_error: float = 0.0
    compression_rounding: str = ""
    compression_seed: int = 0


def communicator_name(given: Any) -> str:
    """Returns the name of a group's communicator in messages: none for the default group, whose list of ranks is empty."""
    return f"group {given.group_id}" if given.global_ranks_in_group else ""
