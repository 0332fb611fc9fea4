"""Prepares memory right before a call: the judge for the reference, the candidate for the solution.

Both take the same steps, because each step changes the time of a short kernel:

1. Rotate the block that the next output gets (`OutputRotation`).
2. Overwrite the blocks that outputs of this size are allocated from, so that they hold no earlier result.
3. Touch the inputs on the GPU, which loses address translations while another process runs.
4. Touch the rest of the memory that PyTorch's allocator holds (`KnownMemory`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from inlinebench.timing.call import Clock
from inlinebench.timing.output_rotation import KnownMemory, OutputRotation

POISON_BYTE = 0xFF
"""Every floating-point dtype reads repetitions of this byte as NaN."""


class BeforeCall:
    """Runs these steps before calls on one device. `output_bytes` has the size of each output in bytes."""

    def __init__(self, clock: Clock, device: torch.device, output_bytes: Sequence[int]) -> None:
        self._clock, self._device, self._output_bytes = clock, device, output_bytes
        self._rotation = OutputRotation(output_bytes, device)
        self._memory = KnownMemory(clock, device)

    def prepare(self, inputs: Iterable[tuple[int, int]]) -> None:
        """Runs the steps. Call it right before the clock starts. `inputs` has address and size in bytes of each input.
        """
        self._rotation.move_on()
        blocks = [torch.empty(size, dtype=torch.uint8, device=self._device) for size in self._output_bytes]
        for block in blocks:  # all blocks exist at once, or the allocator could return the same block twice
            block.fill_(POISON_BYTE)
        del blocks
        for address, size in inputs:
            self._clock.touch(address, size)
        self._memory.look_up()
