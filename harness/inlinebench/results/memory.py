"""The record of the device memory of a call, which is a part of a result."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Memory:
    """The peak device memory of a call on a GPU, beyond its inputs and outputs and the reference's parameters and
    buffers.

    Raises ValueError for negative sizes, and if a part is larger than the whole.
    """

    solution_bytes: int
    """The peak of the solution in bytes. What it keeps between calls counts: workspaces, and its own copies of weights.
    """
    reference_bytes: int
    """The peak of the reference in bytes. What it keeps between calls does not count, except workspaces of cuBLAS."""
    outside_allocator_bytes: int = 0
    """The part of `solution_bytes` that PyTorch's allocator did not report and the driver shows, such as memory from
    `cudaMalloc`."""

    def __post_init__(self) -> None:
        if min(self.solution_bytes, self.reference_bytes, self.outside_allocator_bytes) < 0:
            raise ValueError("a size of memory is negative")
        if self.outside_allocator_bytes > self.solution_bytes:
            raise ValueError(f"{self.outside_allocator_bytes} bytes can't be a part of {self.solution_bytes}")

    @property
    def solution_mib(self) -> float:
        """The peak of the solution in MiB."""
        return self.solution_bytes / MIB

    @property
    def reference_mib(self) -> float:
        """The peak of the reference in MiB."""
        return self.reference_bytes / MIB
