"""Draws sizes of a problem from the ranges of its constants, and finds a smaller size at which a failure remains.

Sizes at which kernels go wrong are rarer than sizes at which they are right, so values are not drawn evenly: each
constant takes turns between the lowest values, multiples of the tiles that kernels use, one below and one above them,
primes, the largest values that the cost allows, and any others.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from inlinebench.problem.shapes import constants
from inlinebench.problem.shapes.cost import Cost, cost_of
from inlinebench.problem.shapes.ranges import Range, Ranges, constants_of, relations

Size = Mapping[str, int]
"""The values of the constants that have ranges, by name."""

TILES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Sizes of the tiles, blocks and warps into which kernels divide their work."""
MULTIPLES = 3
"""The most tiles that a size near a multiple of them has."""
LONG = "long"
KINDS = ("lowest", "low", "below a tile", "tile", "above a tile", "prime", LONG, "any", "any")
"""What the values of a constant take turns between."""
KEPT = 0.7
"""The share of draws in which a size that is a multiple of another one in the file stays one."""
ALIKE = 0.4
"""The share of draws that change a single constant of an earlier one. Sizes with equal constructor arguments share a
model, and so meet what it keeps."""
FEW = 64
"""Of fewer values, all are as likely, where others are as likely as their logarithms."""
IN_VAIN = 300
"""After so many draws in a row that give no new size, all sizes have probably been drawn."""


@dataclass
class Drawing:
    """Draws sizes of a problem, each once. An iterator without an end as long as the ranges have further sizes.

    Args:
        tree: the text of the problem.
        ranges: the ranges of its constants.
        limits: the most that a size may cost.
        random: the source of the draws.
        fixed: values of other constants that replace the file's.
    """

    tree: ast.Module
    ranges: Ranges
    limits: Cost
    random: Random
    fixed: Mapping[str, Any] = field(default_factory=dict)
    _decks: dict[str, list[str]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Size]:
        known = {**constants.read(self.tree), **self.fixed}
        dividing = relations(self.tree, self.ranges)
        drawn: list[Size] = []
        in_vain = 0
        while in_vain < IN_VAIN:
            if drawn and self.random.random() < ALIKE:
                size = dict(self.random.choice(drawn))
                kinds = {self.random.choice(list(size)): self.random.choice(KINDS)}
            else:
                size = {name: each.low for name, each in self.ranges.items()}
                kinds = {name: self._next_kind(name) for name in self.random.sample(list(size), len(size))}
            size = self._draw(size, kinds, known, dividing)
            in_vain = in_vain + 1 if size in drawn else 0
            if size not in drawn:
                drawn.append(size)
                yield size

    def _draw(
        self, size: dict[str, int], kinds: Mapping[str, str], known: constants.Constants,
        dividing: Sequence[tuple[str, str]],
    ) -> dict[str, int]:
        """Returns a size with other values, of these kinds, of some of its constants."""
        for name in sorted(kinds, key=lambda each: kinds[each] != LONG):  # before others have used up the cost
            size[name] = self._value(name, kinds[name], size, known)
        if self.random.random() < KEPT:
            for one, other in dividing:
                _divide(size, one, other, self.ranges)
        return size

    def _value(self, name: str, kind: str, size: Size, known: constants.Constants) -> int:
        """Returns a value of a constant that the cost allows, beside the other ones as they are in a size."""
        allowed = self.ranges[name]
        value = allowed.at_most(_value_of(kind, allowed, self.random))
        while value > allowed.low and not self._is_cheap({**known, **constants_of({**size, name: value}, known)}):
            value = allowed.at_most(value // 2 if value % 2 == 0 else value // 2 | 1)
        return value

    def _is_cheap(self, known: constants.Constants) -> bool:
        resolved = {name: constants.resolved(value, known) for name, value in known.items()}
        cost = cost_of(self.tree, resolved)
        if cost.elements == 1:  # `get_inputs` makes its tensors in other functions, perhaps square matrices
            cost = replace(cost, elements=cost.size**2, work=max(cost.work, cost.size ** (3 if cost.threads else 2)))
        return cost.is_within(self.limits)

    def _next_kind(self, name: str) -> str:
        deck = self._decks.setdefault(name, [])
        if not deck:
            deck += self.random.sample(KINDS, len(KINDS))
        return deck.pop()


def _divide(size: dict[str, int], one: str, other: str, ranges: Ranges) -> None:
    """Changes two values so that the first one divides the second one, if the ranges have such values near them."""
    divisor, multiple = sorted((size[one], size[other]))
    multiple -= multiple % max(divisor, 1)
    if divisor in ranges[one] and multiple in ranges[other]:
        size[one], size[other] = divisor, multiple


def _value_of(kind: str, allowed: Range, random: Random) -> int:
    """Returns a value of a kind, which may be beyond the range or between its steps."""
    low, high = allowed.low, allowed.high
    if kind == "lowest":
        return low
    if kind == "low":
        return low + random.randint(1, 3) * allowed.step
    if kind == LONG:
        return high - random.choice((0, 0, 1)) * allowed.step
    if "tile" in kind:
        tile = random.choice([tile for tile in TILES if low < tile <= high] or [high])
        shift = {"below a tile": -1, "tile": 0, "above a tile": 1}[kind]
        times: int = random.choice((1, 1, *range(2, MULTIPLES + 1)))
        return tile * times + shift
    if (high - low) // allowed.step < FEW:
        return random.randint(low, high)
    value = round(math.exp(random.uniform(math.log(max(low, 1)), math.log(max(high, 1)))))
    return _prime(value) if kind == "prime" else value


def _prime(value: int) -> int:
    """Returns the largest prime that is not above a value; 2 below that."""
    while value > 2 and any(value % each == 0 for each in range(2, math.isqrt(value) + 1)):
        value -= 1
    return max(value, 2)


def shrunk(size: Size, ranges: Ranges, fails: Callable[[Size], bool], tries: int) -> Size:
    """Returns the smallest size that was found at which a failure remains: `size` itself, if no other one fails.

    For each constant, the lowest value is tried, then the middle between the largest value that does not fail and the
    smallest one that does. This is repeated as long as a smaller size is found: which sizes fail may depend on their
    remainders. `fails` is called at most `tries` times, for each size once.
    """
    best, before, asked = dict(size), dict[str, int](), dict[tuple[int, ...], bool]()

    def remains(smaller: dict[str, int]) -> bool:
        values = tuple(smaller.values())
        if values not in asked and len(asked) < tries:
            asked[values] = fails(smaller)
        return asked.get(values, False)

    while best != before:
        before = dict(best)
        for name, allowed in ranges.items():
            below, value = allowed.low - allowed.step, allowed.low
            while below < value < best[name]:
                if remains({**best, name: value}):
                    best[name] = value
                else:
                    below = value
                value = allowed.at_most((below + best[name]) // 2)
    return best
