"""The records of how a kernel was launched, of what limits it on a GPU, and of what the GPU counted.

They are a part of a result. `residency` computes the occupancy from the first two.
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32
"""Threads of a warp."""
REGISTER_UNIT, WARP_UNIT, SHARED_UNIT = 256, 4, 128
"""What an SM allocates at once: registers for a warp, warps for a block (one for each of its four schedulers), and
bytes of shared memory for a block. They hold for compute capability 7.0 and later."""
REGISTERS, SHARED, THREADS, BLOCKS = "registers", "shared memory", "threads", "blocks"
"""What can limit the number of blocks on an SM."""


@dataclass(frozen=True)
class Launched:
    """How a kernel was launched. Raises ValueError for negative numbers."""

    blocks: int
    """The number of blocks."""
    threads: int
    """The threads of a block."""
    registers: int
    """The registers of a thread."""
    shared_bytes: int
    """The shared memory of a block in bytes, static and dynamic."""

    def __post_init__(self) -> None:
        if min(self.blocks, self.threads, self.registers, self.shared_bytes) < 0:
            raise ValueError(f"no kernel is launched with negative numbers: {self}")


@dataclass(frozen=True)
class Multiprocessors:
    """The streaming multiprocessors (SMs) of a GPU, and the limits of each. Raises ValueError for limits below 1."""

    count: int
    """The number of SMs."""
    threads: int
    """The most threads on an SM."""
    blocks: int
    """The most blocks on an SM."""
    registers: int
    """The registers of an SM."""
    shared_bytes: int
    """The shared memory of an SM in bytes."""
    reserved_bytes: int
    """The shared memory in bytes that CUDA itself takes for each block."""

    def __post_init__(self) -> None:
        limits = (self.count, self.threads, self.blocks, self.registers, self.shared_bytes)
        if min(limits) < 1 or self.reserved_bytes < 0:
            raise ValueError(f"no GPU has such limits: {self}")


@dataclass(frozen=True)
class Counters:
    """What the GPU counted in the launches of one kernel, by Nsight Compute.

    Counts are added up over the launches, and other values are those of the longest launch. A counter that the GPU or
    the version of Nsight Compute does not have is absent.
    """

    ms: float
    """The time in ms, with cold caches."""
    dram_bytes: int | None = None
    """Bytes that were read from and written to DRAM."""
    dram_share: float | None = None
    """The throughput of DRAM as a share of its peak, from 0 to 1."""
    l2_share: float | None = None
    """The throughput of L2 as a share of its peak, from 0 to 1."""
    tensor_share: float | None = None
    """The time in which the tensor cores worked, from 0 to 1."""
    sectors: float | None = None
    """The 32-byte sectors of global memory that an access of a warp touches on average: a load or a store, whichever
    touch more of them in all."""
    shared_share: float | None = None
    """The throughput of shared memory as a share of its peak, from 0 to 1."""
    conflict_share: float | None = None
    """The share of the accesses' cycles at shared memory that only repeat an access because of bank conflicts."""
    atomics: int | None = None
    """Atomic instructions on global memory, each of a warp."""
    local_bytes: int | None = None
    """Bytes that threads moved to and from local memory: spilled registers, and arrays that are indexed at run
    time."""
    stall: str | None = None
    """What warps waited for most, as Nsight Compute names it (`long_scoreboard`)."""
    stall_share: float | None = None
    """The share of the warps' time that they waited for it, from 0 to 1."""


@dataclass(frozen=True)
class Residency:
    """How many blocks of a kernel an SM can run at once."""

    blocks: int
    """The blocks on an SM; 0 if none fits."""
    limited_by: str
    """What allows no more of them: `registers`, `shared memory`, `threads` or `blocks`."""
    occupancy: float
    """Their threads as a share of what the SM could run, from 0 to 1."""


def residency(launched: Launched, sm: Multiprocessors) -> Residency:
    """Returns how many blocks of a launch fit on an SM, by the rules of NVIDIA's occupancy calculator."""
    warps = _up(max(1, launched.threads), WARP) // WARP
    fit = {
        THREADS: sm.threads // WARP // warps,
        BLOCKS: sm.blocks,
        SHARED: sm.shared_bytes // max(1, _up(launched.shared_bytes + sm.reserved_bytes, SHARED_UNIT)),
    }
    if launched.registers:
        in_registers = sm.registers // _up(launched.registers * WARP, REGISTER_UNIT)
        fit[REGISTERS] = in_registers // WARP_UNIT * WARP_UNIT // warps
    limited_by = min(fit, key=lambda limit: fit[limit])
    blocks = fit[limited_by]
    return Residency(blocks, limited_by, min(1.0, blocks * warps * WARP / sm.threads))


def _up(value: int, unit: int) -> int:
    """Returns the next multiple of a unit."""
    return -(-value // unit) * unit
