"""Inputs of collectives, and their expected results."""

import torch
import torch.distributed as dist
from harness import values

INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
FLOATS8 = [torch.float8_e4m3fn, torch.float8_e5m2]
OTHERS = [torch.bool, torch.complex64, torch.complex128]
SHAPES = [(), (0,), (1,), (3, 5), (1031,), (70000,)]


def widened(tensors):
    """Returns tensors of a type that PyTorch's own operations have."""
    dtype = tensors[0].dtype
    wide = torch.float32 if dtype in FLOATS8 else torch.int64 if dtype in UNSIGNED else dtype
    return torch.stack([t.to(wide) for t in tensors])


def reduced(op, tensors):
    """Returns the expected result of a reduction."""
    dtype, stack = tensors[0].dtype, widened(tensors)
    if op == dist.ReduceOp.SUM:
        result = stack.sum(0)
    elif op == dist.ReduceOp.PRODUCT:
        result = stack.prod(0)
    elif op == dist.ReduceOp.MIN:
        result = stack.amin(0)
    elif op == dist.ReduceOp.MAX:
        result = stack.amax(0)
    elif op == dist.ReduceOp.AVG:
        result = stack.sum(0) / len(tensors)
    else:
        raise AssertionError(op)
    return result.to(dtype)


def inputs(size, shape, dtype):
    return [values(rank, shape, dtype) for rank in range(size)]


def layouts(tensor):
    """Yields the tensor in memory layouts: contiguous, with gaps, and transposed."""
    yield tensor.clone()
    if tensor.dim() >= 1:
        wide = torch.empty(*tensor.shape[:-1], tensor.shape[-1] * 2, dtype=tensor.dtype)
        gaps = wide[..., ::2]
        gaps.copy_(tensor)
        yield gaps
    if tensor.dim() == 2:
        yield tensor.t().contiguous().t()
