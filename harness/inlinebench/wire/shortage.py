"""Recognizes out-of-memory errors, which have several exception types and messages."""

from __future__ import annotations

import torch

SIGNS = ("CUDA error: out of memory", "can't allocate memory", "cudaErrorMemoryAllocation", "std::bad_alloc")
"""Messages of CUDA's runtime, torch's CPU allocator and C++."""


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an exception says that device or host memory ran out."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return error is not None and any(sign in str(error) for sign in SIGNS)
