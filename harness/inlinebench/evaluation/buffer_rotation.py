"""Chooses the set of buffers that each call uses."""

from __future__ import annotations

import random


class BufferRotation:
    """Alternates between the next set in turn and a set that was used before.

    The time of a short kernel depends on the addresses of its memory (`inlinebench.devices.cuda.output_rotation`), so
    calls use many sets. A solution that caches outputs by the addresses of its inputs fails only if the same addresses
    return with other values, so every other call reuses a set. Which one is drawn from the secret random source.
    """

    def __init__(self, sets: int, secret_random: random.Random) -> None:
        self._sets, self._secret_random = sets, secret_random
        self._calls = 0

    def next(self) -> int:
        """Returns the index of the set for the next call."""
        turn, reuse = divmod(self._calls, 2)
        self._calls += 1
        return self._secret_random.randrange(min(turn + 1, self._sets)) if reuse else turn % self._sets
