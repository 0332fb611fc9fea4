"""Describes in words which elements of a tensor a mask marks, by a set of indices along each dimension.

A description is given only if it is significant: if the same number of elements were marked at random, all of them
would fall within indices of an equally simple description less than once in a million times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from inlinebench.compare.index_sets import IndexSet, SetForm, log_binomial

CHANCE = 1e-6
"""The probability below which a description is significant."""
NAMED = {
    SetForm.EVERY: "every {one}", SetForm.ONE: "{one} {first}", SetForm.BELOW: "{many} < {end}",
    SetForm.FROM: "{many} >= {first}",
    SetForm.RANGE: "{many} {first} to {last}", SetForm.STEP: "every {nth} {one} ({examples})",
    SetForm.STEP_WITHIN: "every {nth} {one} from {first} to {last}",
    SetForm.BLOCK: "{many} {low} to {high} of every {period}",
    SetForm.SOME: "{count} of {size} {many} ({examples})",
}
"""Descriptions for dimensions whose indices have a name, such as rows."""
NUMBERED = {
    SetForm.EVERY: "all of {one}", SetForm.ONE: "{one} = {first}", SetForm.BELOW: "{one} < {end}",
    SetForm.FROM: "{one} >= {first}",
    SetForm.RANGE: "{one} from {first} to {last}", SetForm.STEP: "every {nth} of {one} ({examples})",
    SetForm.STEP_WITHIN: "every {nth} of {one} from {first} to {last}",
    SetForm.BLOCK: "{one} from {low} to {high} of every {period}",
    SetForm.SOME: "{count} of {size} of {one} ({examples})",
}
"""Descriptions for the dimensions of larger tensors, such as `index 2`."""


@dataclass(frozen=True)
class Axis:
    """The name of a dimension."""

    dimension: int
    """The number of the dimension."""
    one: str
    """`row`, `column` or `element`. For tensors with more than two dimensions: `index 2` or `the last index`."""
    many: str | None = None
    """The plural. None for tensors with more than two dimensions."""

    def describe(self, indices: IndexSet) -> str:
        """Returns a description of a set of indices along this dimension."""
        examples = ", ".join(map(str, indices.examples)) + (", ..." if indices.count > len(indices.examples) else "")
        low = indices.first % indices.period if indices.period else 0
        return (NAMED if self.many else NUMBERED)[indices.form].format(
            one=self.one, many=self.many, first=indices.first, last=indices.last, end=indices.last + 1,
            count=indices.count, size=indices.size, examples=examples, period=indices.period,
            nth=ordinal(indices.period), low=low, high=low + indices.width - 1,
        )

    def tally(self, indices: IndexSet) -> str:
        """Returns the number of indices in words."""
        if indices.form is SetForm.EVERY:
            return self.describe(indices)
        return f"{indices.count} of {indices.size} {self.many or f'of {self.one}'}"


def axes(dimensions: int) -> list[Axis]:
    """Returns the names of the dimensions of a tensor with that many dimensions."""
    if dimensions == 1:
        return [Axis(0, "element", "elements")]
    if dimensions == 2:
        return [Axis(0, "row", "rows"), Axis(1, "column", "columns")]
    last = dimensions - 1
    return [Axis(number, "the last index" if number == last else f"index {number}") for number in range(dimensions)]


def where(mask: torch.Tensor) -> str | None:
    """Describes where a bool mask is true, or returns None if no description is significant.

    Needs memory for at most one more mask.
    """
    if not mask.dim():
        return None
    wrong = _within(mask)
    if wrong is not None:
        return wrong
    right = _within(mask.logical_not())
    return None if right is None else f"the only correct elements are: {right}"


def ordinal(number: int) -> str:
    """Returns an ordinal number: `1st`, `2nd`, `12th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _within(mask: torch.Tensor) -> str | None:
    count, total = int(mask.sum()), mask.numel()
    if count in (0, total):
        return None
    sides = [(axis, IndexSet.of(along(mask, axis.dimension))) for axis in axes(mask.dim())]
    significant = [_is_significant(indices, count, total) for _, indices in sides]
    if not any(significant):
        return None
    enclosed = math.prod(indices.count for _, indices in sides)
    # If the mask covers all enclosed elements, the description of every dimension is exact, significant or not.
    words = ", ".join(
        axis.describe(indices) if is_significant or count == enclosed else axis.tally(indices)
        for (axis, indices), is_significant in zip(sides, significant, strict=True)
    )
    return words if len(sides) == 1 else f"{words}: {_share(count, enclosed)}"


def along(mask: torch.Tensor, dimension: int) -> torch.Tensor:
    """Returns for each index along a dimension whether any element is true there."""
    others = [number for number in range(mask.dim()) if number != dimension]
    return mask.any(dim=others) if others else mask


def _is_significant(indices: IndexSet, count: int, total: int) -> bool:
    """Whether `count` of `total` elements, if chosen at random, would almost never all fall within such indices."""
    if indices.form is SetForm.EVERY:
        return False
    enclosed = indices.count * (total // indices.size)
    by_chance = indices.log_choices() + log_binomial(enclosed, count) - log_binomial(total, count)
    return by_chance < math.log(CHANCE)


def _share(count: int, enclosed: int) -> str:
    if count == enclosed:
        return "all elements of these"
    share = f"{100 * count / enclosed:.3g}"
    return f"all but {enclosed - count} of the elements there" if share == "100" else f"{share} % of the elements there"
