"""The roofline time: the shortest time that some work can take on a device with given peaks.

It is the larger of two times, because a kernel can move memory and compute at once: the time to move the required bytes
at the speed of a copy, and the time of the operations at the rate of the fastest method of their accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inlinebench.results.times import Roofline, binding

if TYPE_CHECKING:
    from inlinebench.timing.peaks import Peaks


@dataclass(frozen=True)
class Work:
    """The least work of one call. Raises ValueError for negative counts."""

    bytes: int
    """Bytes read and written."""
    flops: int
    """Floating-point operations."""
    dtype: str
    """The accuracy whose rate counts (`float32`, `tf32`, `bfloat16`...)."""
    stated: bool = False
    """Whether the problem states at least one of the counts itself."""
    note: str = ""
    """Which operations could not be counted; empty if all were counted."""

    def __post_init__(self) -> None:
        if self.bytes < 0 or self.flops < 0:
            raise ValueError(f"{self.bytes} bytes and {self.flops} operations are not a valid amount of work")


def roofline(work: Work, peaks: Peaks) -> Roofline:
    """Returns the roofline time of `work`. Operations without a measured rate count as taking no time."""
    memory_ms = work.bytes / peaks.copy_bytes_s * 1e3
    rate = peaks.fastest(work.dtype)
    compute_ms = work.flops / rate.flops_s * 1e3 if rate else 0.0
    return Roofline(work.bytes, work.flops, memory_ms, compute_ms, binding(memory_ms, compute_ms))
