"""Which elements of a tensor a mask is about, in words: along each dimension a set of indices, where that tells much.

Something is said only where chance would hardly have it so: if as many elements were scattered at random, all of them
would lie within indices with a description so simple less than once in a million times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from inlinebench.compare.index_sets import Form, IndexSet, log_binomial

CHANCE = 1e-6
NAMED = {
    Form.EVERY: "every {one}", Form.ONE: "{one} {first}", Form.BELOW: "{many} < {end}", Form.FROM: "{many} >= {first}",
    Form.RANGE: "{many} {first} to {last}", Form.STEP: "every {nth} {one} ({examples})",
    Form.STEP_WITHIN: "every {nth} {one} from {first} to {last}",
    Form.BLOCK: "{many} {low} to {high} of every {period}", Form.SOME: "{count} of {size} {many} ({examples})",
}
NUMBERED = {
    Form.EVERY: "all of {one}", Form.ONE: "{one} = {first}", Form.BELOW: "{one} < {end}", Form.FROM: "{one} >= {first}",
    Form.RANGE: "{one} from {first} to {last}", Form.STEP: "every {nth} of {one} ({examples})",
    Form.STEP_WITHIN: "every {nth} of {one} from {first} to {last}",
    Form.BLOCK: "{one} from {low} to {high} of every {period}", Form.SOME: "{count} of {size} of {one} ({examples})",
}


@dataclass(frozen=True)
class Axis:
    """A dimension by name: a row or a column of a matrix, an element of a vector; `index 2`, `the last index`."""

    dimension: int
    one: str
    many: str | None = None

    def describe(self, indices: IndexSet) -> str:
        """A set of indices along this dimension."""
        examples = ", ".join(map(str, indices.examples)) + (", ..." if indices.count > len(indices.examples) else "")
        low = indices.first % indices.period if indices.period else 0
        return (NAMED if self.many else NUMBERED)[indices.form].format(
            one=self.one, many=self.many, first=indices.first, last=indices.last, end=indices.last + 1,
            count=indices.count, size=indices.size, examples=examples, period=indices.period,
            nth=ordinal(indices.period), low=low, high=low + indices.width - 1,
        )

    def tally(self, indices: IndexSet) -> str:
        """Only how many indices there are."""
        if indices.form is Form.EVERY:
            return self.describe(indices)
        return f"{indices.count} of {indices.size} {self.many or f'of {self.one}'}"


def axes(dimensions: int) -> list[Axis]:
    """The names of a tensor's dimensions."""
    if dimensions == 1:
        return [Axis(0, "element", "elements")]
    if dimensions == 2:
        return [Axis(0, "row", "rows"), Axis(1, "column", "columns")]
    last = dimensions - 1
    return [Axis(number, "the last index" if number == last else f"index {number}") for number in range(dimensions)]


def where(mask: torch.Tensor) -> str | None:
    """Where a boolean mask is true, in a sentence; None where only the number of its elements is worth telling.

    Takes the memory of one more mask at most.
    """
    if not mask.dim():
        return None
    wrong = _within(mask)
    if wrong is not None:
        return wrong
    right = _within(mask.logical_not())
    return None if right is None else f"right are only: {right}"


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `12th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _within(mask: torch.Tensor) -> str | None:
    count, total = int(mask.sum()), mask.numel()
    if count in (0, total):
        return None
    sides = [(axis, IndexSet.of(_along(mask, axis.dimension))) for axis in axes(mask.dim())]
    telling = [_is_telling(indices, count, total) for _, indices in sides]
    if not any(telling):
        return None
    room = math.prod(indices.count for _, indices in sides)
    # Where all elements of these are meant, the words for a dimension that tells little by itself are exact as well.
    words = ", ".join(
        axis.describe(indices) if tells or count == room else axis.tally(indices)
        for (axis, indices), tells in zip(sides, telling, strict=True)
    )
    return words if len(sides) == 1 else f"{words}: {_share(count, room)}"


def _along(mask: torch.Tensor, dimension: int) -> torch.Tensor:
    """For each index along a dimension whether anything is true there."""
    others = [number for number in range(mask.dim()) if number != dimension]
    return mask.any(dim=others) if others else mask


def _is_telling(indices: IndexSet, count: int, total: int) -> bool:
    """Whether `count` of `total` elements would hardly lie all within such indices if they were scattered at random."""
    if indices.form is Form.EVERY:
        return False
    room = indices.count * (total // indices.size)
    by_chance = indices.log_choices() + log_binomial(room, count) - log_binomial(total, count)
    return by_chance < math.log(CHANCE)


def _share(count: int, room: int) -> str:
    if count == room:
        return "all elements of these"
    share = f"{100 * count / room:.3g}"
    return f"all but {room - count} of the elements there" if share == "100" else f"{share} % of the elements there"
