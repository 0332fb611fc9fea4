"""Overwrites memory with bytes that show in results that were never written."""

from __future__ import annotations

from collections.abc import Sequence

import torch

POISON_BYTE = 0xFF
"""Every floating-point dtype reads repetitions of this byte as NaN."""


class PoisonedBlocks:
    """Overwrites the blocks that outputs of these sizes in bytes are allocated from, so that they hold no earlier
    result."""

    def __init__(self, device: torch.device, output_bytes: Sequence[int]) -> None:
        self._device, self._output_bytes = device, output_bytes

    @property
    def held_bytes(self) -> int:
        """0: the blocks are free again when a call begins."""
        return 0

    def prepare(self, inputs: Sequence[tuple[int, int]]) -> None:
        """Overwrites the blocks. Inputs need no preparation."""
        # All blocks exist at once, or the allocator could return the same block twice.
        for block in [torch.empty(size, dtype=torch.uint8, device=self._device) for size in self._output_bytes]:
            block.fill_(POISON_BYTE)
