"""Prepares memory right before a call: the judge for the reference, the candidate for the solution.

Both take the same steps, because each step changes the time of a short kernel:

1. Rotate the block that the next output gets (`OutputRotation`).
2. Overwrite the blocks that outputs of this size are allocated from, so that they hold no earlier result.
3. Touch the inputs on the GPU, which loses address translations while another process runs.
4. Touch the rest of the memory that PyTorch's allocator holds (`KnownMemory`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from inlinebench.devices.cuda.output_rotation import KnownMemory, OutputRotation
from inlinebench.timing.call import Clock
from inlinebench.timing.poison import PoisonedBlocks


class CudaBeforeCall:
    """Runs these steps before calls on one device. `output_bytes` has the size of each output in bytes."""

    def __init__(self, clock: Clock, device: torch.device, output_bytes: Sequence[int]) -> None:
        self._clock, self._poisoned = clock, PoisonedBlocks(device, output_bytes)
        self._rotation = OutputRotation(output_bytes, device)
        self._memory = KnownMemory(clock, device)

    @property
    def held_bytes(self) -> int:
        """The bytes of the blocks that are kept allocated during a call."""
        return self._rotation.held_bytes

    def prepare(self, inputs: Sequence[tuple[int, int]]) -> None:
        """Runs the steps. Call it right before the clock starts. `inputs` has address and size in bytes of each input.
        """
        self._rotation.move_on()
        self._poisoned.prepare(inputs)
        for address, size in inputs:
            self._clock.touch(address, size)
        self._memory.look_up()
