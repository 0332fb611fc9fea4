"""Reads the peak memory of a call from the counters of PyTorch's allocator on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from inlinebench.devices.base import AllocatorPeak

_statistics: Callable[[torch.device], dict[str, Any]] = torch.cuda.memory_stats_as_nested_dict
_reset: Callable[[torch.device], None] = torch.cuda.reset_peak_memory_stats
_empty_cache: Callable[[], None] = torch.cuda.empty_cache
_backend: Callable[[], str] = torch.cuda.get_allocator_backend
"""Bound at import, before a solution could replace them."""


class CudaAllocatorMeter:
    """Reads the counters of PyTorch's allocator in this process, for one device.

    Requested bytes are read, not allocated ones, which are rounded up.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def begin(self) -> int:
        """Begins to record the peak. Returns the bytes that are in use now."""
        _reset(self._device)
        return int(_statistics(self._device)["requested_bytes"]["all"]["current"])

    def begin_with_empty_cache(self) -> None:
        """Frees cached memory, so that what is reserved afterwards is in use, and begins to record the peak."""
        _empty_cache()
        _reset(self._device)

    def free_workspaces(self) -> None:
        """Frees the workspaces of cuBLAS, which the next call that needs one allocates again.

        Not for a solution's process: a CUDA graph of its may use them.
        """
        torch._C._cuda_clearCublasWorkspaces()

    def peak(self) -> AllocatorPeak | None:
        """Returns the peak since the beginning. None if PyTorch uses an allocator that does not count requests."""
        if _backend() != "native":
            return None
        counters = _statistics(self._device)
        return AllocatorPeak(counters["requested_bytes"]["all"]["peak"], counters["reserved_bytes"]["all"]["current"])
