"""What is done to memory right before a call, by the judge for the reference and by the candidate for the solution.

Both do the same, because each step changes what a short kernel takes:

1. The block that the next output gets rotates (`OutputRotation`).
2. The blocks that outputs of this size are allocated from are overwritten, so that nothing useful is left in them.
3. The GPU touches the inputs, whose addresses it may have to look up again after another process ran.
4. It touches the rest of what PyTorch's allocator holds (`KnownMemory`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from inlinebench.timing.call import Clock
from inlinebench.timing.output_rotation import KnownMemory, OutputRotation

POISON_BYTE = 0xFF
"""Every floating type reads a run of these as NaN."""


class BeforeCall:
    """The steps above, for calls whose outputs take so many bytes each, on one device."""

    def __init__(self, clock: Clock, device: torch.device, output_bytes: Sequence[int]) -> None:
        self._clock, self._device, self._output_bytes = clock, device, output_bytes
        self._rotation = OutputRotation(output_bytes, device)
        self._memory = KnownMemory(clock, device)

    def prepare(self, inputs: Iterable[tuple[int, int]]) -> None:
        """To be called right before the clock starts. `inputs` are address and size in bytes of each."""
        self._rotation.move_on()
        blocks = [torch.empty(size, dtype=torch.uint8, device=self._device) for size in self._output_bytes]
        for block in blocks:  # all at once: one that was freed would be the next one's as well
            block.fill_(POISON_BYTE)
        del blocks
        for address, size in inputs:
            self._clock.touch(address, size)
        self._memory.look_up()
