"""Measures the peak device memory of a solution's call: by PyTorch's allocator in its process, and by the driver.

The allocator's counters are exact, but they come from the solution's process, and they lack what kernels' authors
allocate by `cudaMalloc`. So the judge adds up by how much the driver's free memory falls while the candidate runs, from
before it loads the solution to the end of the measured call. It reads that while the candidate is stopped, and nothing
of its own changes meanwhile. What this growth has beyond the allocator's reserved memory is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from inlinebench.devices.base import AllocatorPeak, Device
from inlinebench.evaluation.reference import Reference
from inlinebench.results.memory import MIB, Memory

LEAST_OUTSIDE = 192 * MIB
"""Growth beyond the allocator's reserved memory does not count up to this size, because it includes the code of the
kernels that were loaded, and what the driver sets aside to run them. On an H100 this is 92 MiB for solutions without
libraries, and 158 MiB with cuBLAS. Above it, all of it counts."""
MOST_HIDDEN = 224 * MIB
"""By how much the growth may exceed the peak: what does not count, and memory that the allocator reserves and nothing
uses. It reserves 20 MiB for a tensor of more than 1 MiB. All that is beyond counts, whatever the allocator says."""


def measured_call(warmup: int, secret: Random) -> int | None:
    """Returns the number of the warm-up call whose memory is measured, or None if there are fewer than three.

    It is neither the first one, which may compile and try configurations, nor the last one, whose reference is paired
    with a measured call. The others are equally probable, so a solution cannot know it.
    """
    return secret.randrange(2, warmup) if warmup > 2 else None


def peak_memory(peak: AllocatorPeak, growth: int, known: int) -> tuple[int, int] | None:
    """Returns the memory of a call in bytes, and the part of it that is not from the allocator.

    Args:
        peak: what the allocator said. `reserved_bytes` must contain no cached memory from before the call.
        growth: by how many bytes the driver's free memory fell, from before the solution was loaded.
        known: the bytes of outputs, parameters, buffers and of the harness, which do not count.

    Returns None if the allocator claims to hold more than the driver shows: then another process has freed memory.
    """
    outside = growth - peak.reserved_bytes
    if outside < -LEAST_OUTSIDE:
        return None
    inside = max(0, peak.peak_bytes - known)
    found = max(inside + (outside if outside > LEAST_OUTSIDE else 0), growth - known - MOST_HIDDEN)
    return found, found - inside


class CandidateMemory:
    """Measures the memory of one candidate, which computes one workload.

    Args:
        device: the device that it uses.
        call: the number of the call to measure, or None to measure nothing.
    """

    def __init__(self, device: Device, call: int | None) -> None:
        self._device, self._call = device, call
        self._growth = 0
        self._peak: AllocatorPeak | None = None

    def measures(self, number: int) -> bool:
        """Whether the call with this number is measured."""
        return number == self._call

    @contextmanager
    def growing(self) -> Iterator[None]:
        """Adds what the driver's free memory falls by meanwhile. Only the candidate may run, and it has to be stopped,
        or to wait for its first solution, at both ends."""
        if self._call is None:
            yield
            return
        before = self._device.unreserved_bytes()
        yield
        self._growth += before - self._device.unreserved_bytes()

    def end(self, peak: AllocatorPeak | None) -> None:
        """Ends the measurement after the measured call, with what the allocator said."""
        self._call, self._peak = None, peak

    def record(self, reference: Reference) -> Memory | None:
        """Returns the record, or None if the memory could not be measured. Makes a call of the reference, and raises as
        that does."""
        if self._peak is None:
            return None
        found = peak_memory(self._peak, self._growth, reference.known_bytes())
        reference_bytes = reference.memory_bytes()
        return None if found is None or reference_bytes is None else Memory(found[0], reference_bytes, found[1])
