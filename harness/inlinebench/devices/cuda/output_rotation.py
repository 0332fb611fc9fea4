"""Rotates the memory of outputs between calls, and keeps the GPU's address translations of held memory warm.

The time of a short kernel depends on its addresses. On an H100 a kernel of 3 µs varied by up to 7 %, depending on the
L2 slices and memory channels of its cache lines. With a single address, a process reports one of these times; the
median over many addresses is the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from inlinebench.timing.call import Clock

MOST_BLOCKS = 8
MOST_BYTES = 64 << 20
"""For all blocks together. An output larger than half of it covers many slices and channels anyway."""

_segments: Callable[[], list[dict[str, Any]]] = torch.cuda.memory_snapshot
_statistics: Callable[[torch.device], dict[str, Any]] = torch.cuda.memory_stats_as_nested_dict
_backend: Callable[[], str] = torch.cuda.get_allocator_backend
"""Bound at import, before a solution could replace them."""


class KnownMemory:
    """The memory that PyTorch's allocator holds on a GPU in this process: intermediate results and workspaces of
    libraries."""

    def __init__(self, clock: Clock, device: torch.device) -> None:
        self._clock, self._device = clock, device
        self._changes: tuple[int, int] | None = None
        self._regions: list[tuple[int, int]] = []

    def look_up(self) -> None:
        """Makes the GPU look up the addresses of this memory, which it forgets while another process runs.

        Does not wait.
        """
        if _backend() != "native":  # other allocators do not list their memory
            return
        changes = self._count_changes()
        if changes != self._changes:  # listing the segments takes longer than everything else here
            held = [each for each in _segments() if each["device"] == self._device.index]
            self._regions = [(each["address"], each["total_size"]) for each in held]
            self._changes = changes
        for address, size in self._regions:
            self._clock.touch(address, size)

    def _count_changes(self) -> tuple[int, int]:
        """Returns the total bytes ever reserved and ever freed. One of them grows with every change of the segments,
        whichever kind of segments the allocator uses."""
        reserved = _statistics(self._device)["reserved_bytes"]["all"]
        return reserved["allocated"], reserved["freed"]


class OutputRotation:
    """Blocks of PyTorch's allocator in the sizes of some outputs. All but one of each size are kept allocated, so that
    the next call's output gets the free one.
    """

    def __init__(self, sizes: Sequence[int], device: torch.device) -> None:
        self._device = device
        number = min(MOST_BLOCKS, MOST_BYTES // max(1, sum(sizes)))
        self._sizes = sizes if number > 1 else ()
        self._blocks = [[self._take(size) for _ in range(number)] for size in self._sizes]
        self._turn = 0

    @property
    def held_bytes(self) -> int:
        """The bytes of the blocks that are kept allocated during a call."""
        return sum(size * (len(blocks) - 1) for size, blocks in zip(self._sizes, self._blocks, strict=True))

    def move_on(self) -> None:
        """Allocates the block of the last call again, which is free by now, and frees the next one of each size."""
        last, self._turn = self._turn, self._turn + 1
        for size, blocks in zip(self._sizes, self._blocks, strict=True):
            if blocks[last % len(blocks)] is None:
                blocks[last % len(blocks)] = self._take(size)
            blocks[self._turn % len(blocks)] = None

    def _take(self, size: int) -> torch.Tensor | None:
        return torch.empty(size, dtype=torch.uint8, device=self._device)
