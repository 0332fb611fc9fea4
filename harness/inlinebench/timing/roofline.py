"""The roofline time: the least time that some work takes on a device with given peaks.

It is the larger of two times, because a kernel can move memory and calculate at once: the bytes that must move at the
speed of a copy, and the operations at the rate of the fastest method of their accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inlinebench.records.result import Roofline, binding

if TYPE_CHECKING:
    from inlinebench.timing.peaks import Peaks


@dataclass(frozen=True)
class Work:
    """What one call needs at least: bytes read and written, and floating-point operations.

    `dtype` names the accuracy whose rate counts (`float32`, `tf32`, `bfloat16`...). `stated` says that the problem
    gave at least one of the counts itself; `note` says what could not be counted, and is empty if nothing.
    """

    bytes: int
    flops: int
    dtype: str
    stated: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        if self.bytes < 0 or self.flops < 0:
            raise ValueError(f"{self.bytes} bytes and {self.flops} operations are no work")


def roofline(work: Work, peaks: Peaks) -> Roofline:
    """The roofline time of some work. Operations of an accuracy whose rate nobody measured take no time in it."""
    memory_ms = work.bytes / peaks.copy_bytes_s * 1e3
    rate = peaks.fastest(work.dtype)
    compute_ms = work.flops / rate.flops_s * 1e3 if rate else 0.0
    return Roofline(work.bytes, work.flops, memory_ms, compute_ms, binding(memory_ms, compute_ms))

