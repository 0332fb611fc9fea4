"""How a lack of memory shows: in exceptions of several types, some known by their words alone."""

from __future__ import annotations

import torch

SIGNS = ("CUDA error: out of memory", "can't allocate memory", "cudaErrorMemoryAllocation", "std::bad_alloc")
"""Of CUDA's runtime, torch's allocator on the CPU, and C++."""


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an exception says that memory ran out, of the device or of the host."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return error is not None and any(sign in str(error) for sign in SIGNS)
