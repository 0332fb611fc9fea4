"""Where a call's memory lies: elsewhere each time, and where the GPU doesn't have to look for it.

What a short kernel takes depends on where its memory happens to lie.

On an H100 a kernel of 3 µs took up to 7 % longer or shorter for it, by which L2 slices and which of the memory's
channels its lines belong to. A process that uses one place reports one of these times; the median over many places is
the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from inlinebench.timing.call import Clock

MOST_PLACES = 8
MOST_BYTES = 64 << 20
"""For all places: what is larger than half of it streams, and lies in many slices and channels anyway."""


_segments: Callable[[], list[dict[str, Any]]] = torch.cuda.memory_snapshot
_statistics: Callable[[torch.device], dict[str, Any]] = torch.cuda.memory_stats_as_nested_dict
_backend: Callable[[], str] = torch.cuda.get_allocator_backend
"""Bound before a solution could put its own in their place."""


class KnownMemory:
    """All that PyTorch's allocator holds on a GPU in this process: intermediate results lie there, and what libraries
    work with. Nothing where the device is no GPU."""

    def __init__(self, clock: Clock, device: torch.device) -> None:
        self._clock, self._device = clock, device
        self._changes: tuple[int, int] | None = None
        self._held: list[tuple[int, int]] = []

    def look_up(self) -> None:
        """Has the GPU look up where it lies, which it forgets while another process runs. Doesn't wait."""
        if self._device.type != "cuda" or _backend() != "native":  # the others don't tell what they hold
            return
        changes = self._count_changes()
        if changes != self._changes:  # listing what is held takes longer than all the rest
            held = [each for each in _segments() if each["device"] == self._device.index]
            self._held = [(each["address"], each["total_size"]) for each in held]
            self._changes = changes
        for address, size in self._held:
            self._clock.touch(address, size)


    def _count_changes(self) -> tuple[int, int]:
        """How much was ever reserved, and how much of it given back: whatever kind of segments there are, one of them
        grows when what is held changes."""
        reserved = _statistics(self._device)["reserved_bytes"]["all"]
        return reserved["allocated"], reserved["freed"]


class OutputRotation:
    """Blocks of PyTorch's allocator of the sizes of some outputs, all taken but one of each, which the next call gets.

    Does nothing where the device is no GPU.
    """

    def __init__(self, sizes: Sequence[int], device: torch.device) -> None:
        self._device = device
        number = min(MOST_PLACES, MOST_BYTES // max(1, sum(sizes))) if device.type == "cuda" else 0
        self._sizes = sizes if number > 1 else ()
        self._blocks = [[self._take(size) for _ in range(number)] for size in self._sizes]
        self._turn = 0

    def move_on(self) -> None:
        """Takes the block of the last call again, which is free by now, and frees the next one of each size."""
        last, self._turn = self._turn, self._turn + 1
        for size, blocks in zip(self._sizes, self._blocks, strict=True):
            if blocks[last % len(blocks)] is None:
                blocks[last % len(blocks)] = self._take(size)
            blocks[self._turn % len(blocks)] = None

    def _take(self, size: int) -> torch.Tensor | None:
        return torch.empty(size, dtype=torch.uint8, device=self._device)
