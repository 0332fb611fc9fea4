"""In which set of buffers each call finds its inputs."""

from __future__ import annotations

import random


class Visits:
    """Every other call comes back to a set that was used before; those between take one set after the other.

    What a short kernel takes depends on where its memory lies (`inlinebench.timing.output_rotation`), so the calls need
    many places. But a solution that keeps outputs by the addresses of its inputs, or slackens at one that it has seen, is
    found out only where the same addresses come again with other values. Which ones do is drawn from the secret stream.
    """

    def __init__(self, sets: int, chance: random.Random) -> None:
        self._sets, self._chance = sets, chance
        self._calls = 0

    def next(self) -> int:
        """The number of the next call's set."""
        fresh, back = divmod(self._calls, 2)
        self._calls += 1
        return self._chance.randrange(min(fresh + 1, self._sets)) if back else fresh % self._sets
