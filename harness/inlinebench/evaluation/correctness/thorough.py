"""Chooses in secret which calls are judged by the rule in all of their elements."""

from __future__ import annotations

import random

from inlinebench.problem.variants import Variant


class ThoroughCalls:
    """One call of each kind of inputs, at a secret place among those that are certain to be made.

    A solution therefore cannot tell in which call small errors, which the bound by the output's size lets pass, show.

    Args:
        kinds: the number of kinds of inputs.
        calls: the number of calls that are certain to be made.
        secret_random: the source of the choice.
    """

    def __init__(self, kinds: int, calls: int, secret_random: random.Random) -> None:
        self._rounds, self._secret_random = max(1, calls // kinds), secret_random
        self._left: dict[Variant, int] = {}

    def next(self, variant: Variant) -> bool:
        """Whether the next call, with this kind of inputs, is thorough."""
        if variant not in self._left:
            self._left[variant] = self._secret_random.randrange(self._rounds)
        self._left[variant] -= 1
        return self._left[variant] == -1
