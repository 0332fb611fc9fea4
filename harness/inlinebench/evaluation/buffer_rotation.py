"""In which set of buffers each call finds its inputs."""

from __future__ import annotations

import random


class BufferRotation:
    """Every other call comes back to a set that was used before; those between take one set after the other.

    The time of a short kernel depends on the addresses of its memory (`inlinebench.timing.output_rotation`), so calls
    use many buffers. But a solution that caches outputs by the addresses of its inputs is only found out where the same
    addresses come again with other values. Which calls do so is drawn from the secret random source.
    """

    def __init__(self, sets: int, secret_random: random.Random) -> None:
        self._sets, self._secret_random = sets, secret_random
        self._calls = 0

    def next(self) -> int:
        """The number of the next call's set."""
        fresh, back = divmod(self._calls, 2)
        self._calls += 1
        return self._secret_random.randrange(min(fresh + 1, self._sets)) if back else fresh % self._sets
