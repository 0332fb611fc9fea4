"""Describes which elements of an output depend on some values of an input, in a solution and in its reference.

Some values of an input are replaced. An element that then changes in the reference only lacks them; one that changes in
the solution only reads what it should not. Pure functions on tensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from inlinebench.compare.elements import comparable, widen
from inlinebench.compare.index_sets import IndexSet, SetForm
from inlinebench.compare.regions import along, axes

SHARE = 0.99
"""The share of elements for which a statement must hold."""
SLIGHT = 1e-4
"""A change smaller than this share of the median one may be rounding, and proves nothing."""
ROUNDINGS = 64
"""As many units of rounding are no difference."""
CLOSEST = 2.0**-6
"""The largest relative difference of elements that count as equal: 64 roundings of bfloat16 are more."""
FEWEST = 4
"""Fewer elements of a larger output say nothing about indices."""
MOST_BITS = 10
"""Parts of a dimension are formed by this many of the lowest bits of the index."""


@dataclass(frozen=True)
class Part:
    """Some of the indices along one dimension of an input."""

    position: int
    """The position of the input."""
    dimension: int
    """The dimension."""
    chosen: torch.Tensor
    """Marks the indices: a 1-d bool tensor on the CPU."""
    dimensions: int
    """The number of dimensions of the input."""

    @property
    def size(self) -> int:
        """The number of the indices."""
        return int(self.chosen.sum())

    def __str__(self) -> str:
        name = f"input {self.position}"
        if bool(self.chosen.all()):
            return name
        return f"{axes(self.dimensions)[self.dimension].describe(IndexSet.of(self.chosen))} of {name}"

    def replaced(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the input with other values of the same tensor in this part, so that they stay in its range.

        Half of the values are used, each of them twice, since a permutation would leave sums as they are.
        """
        count = tensor.numel()
        source = (torch.arange(count, device=tensor.device) // 2 * 2 + count // 3 + 1) % count
        other = tensor.reshape(-1)[source].reshape(tensor.shape)
        shape = [-1 if number == self.dimension else 1 for number in range(self.dimensions)]
        return torch.where(self.chosen.to(tensor.device).reshape(shape), other, tensor)


def from_index(position: int, dimension: int, tensor: torch.Tensor, first: int) -> Part:
    """Returns the part of a dimension from an index to the end."""
    chosen = torch.arange(tensor.shape[dimension]) >= first
    return Part(position, dimension, chosen, tensor.dim())


def parts(position: int, dimension: int, tensor: torch.Tensor) -> Iterator[Part]:
    """Yields parts of a dimension: indices with a bit that is set (odd ones, 16 to 31 of every 32), and the middle one.
    """
    size, index = tensor.shape[dimension], torch.arange(tensor.shape[dimension])
    for bit in range(min(MOST_BITS, (size - 1).bit_length())):
        yield Part(position, dimension, (index >> bit) % 2 == 1, tensor.dim())
    yield Part(position, dimension, index == size // 2, tensor.dim())


@dataclass(frozen=True)
class Influence:
    """The elements of an output that a change of some inputs reaches, as bool tensors."""

    expected: torch.Tensor
    """Those that clearly change in the reference."""
    lost: torch.Tensor
    """Those of them that do not change in the solution."""
    gained: torch.Tensor
    """Those that clearly change in the solution, but not in the reference."""

    @property
    def none_left(self) -> bool:
        """Whether the solution depends on none of the values, but the reference does."""
        count = int(self.expected.sum())
        return count > 0 and int(self.lost.sum()) >= SHARE * count

    @property
    def is_unused(self) -> bool:
        """Whether the change has no effect on the solution at all, but on the reference."""
        return self.none_left and not bool(self.gained.any())

    def describe(self, part: Part) -> str | None:
        """Returns a sentence about how the solution differs from the reference, or None if nothing is clear."""
        lost, gained, expected = _block(self.lost), _block(self.gained), _block(self.expected)
        if self.none_left and not gained:
            return f"the output doesn't depend on {part}, but the reference's does"
        if expected is None and bool(self.expected.any()):
            return None  # where the reference changes follows from values, as in a maximum, not from indices
        if lost and gained:
            actual = _block(self.expected & ~self.lost | self.gained)
            return f"{part} decides {actual} of the output, but {expected} of the reference's" if actual else None
        if gained:
            return f"{gained} of the output depends on {part}, but the reference's doesn't"
        return f"{lost} of the output doesn't depend on {part}, but the reference's does" if lost else None


def _block(mask: torch.Tensor) -> str | None:
    """Describes a mask that is true for all elements at some indices of each dimension, and nowhere else.

    Returns None if the elements that it marks have no such simple form.
    """
    if int(mask.sum()) < min(FEWEST, mask.numel()):
        return None
    sides = [(axis, IndexSet.of(along(mask, axis.dimension))) for axis in axes(mask.dim())] if mask.dim() else []
    enclosed = math.prod(indices.count for _, indices in sides)
    if int(mask.sum()) < SHARE * enclosed or any(indices.form is SetForm.SOME for _, indices in sides):
        return None
    words = [axis.describe(indices) for axis, indices in sides if indices.form is not SetForm.EVERY]
    return ", ".join(words) or "every element"


def influence(
    reference: tuple[torch.Tensor, torch.Tensor], solution: tuple[torch.Tensor, torch.Tensor]
) -> Influence:
    """Compares an output of the reference before and after a change of inputs with the same of a solution."""
    expected, actual = _change(*reference), _change(*solution)
    usual = _median(expected) or _median(actual)
    clear = _is_clear(expected, reference[0], usual)
    lost = clear & (actual == 0) & torch.isfinite(solution[0])  # NaN stays NaN, whatever it depends on
    return Influence(clear, lost, (expected == 0) & _is_clear(actual, solution[0], usual))


def _change(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Returns by how much each element changes. NaN is infinitely far from every number, and equal to NaN."""
    before, after = widen(comparable(before)), widen(comparable(after))
    change = (after - before).abs().double().nan_to_num(nan=torch.inf)
    return change.masked_fill(_equal(before, after), 0.0)


def _is_clear(change: torch.Tensor, before: torch.Tensor, usual: float) -> torch.Tensor:
    """Returns where a change is neither slight, compared with the usual one, nor rounding."""
    least = torch.tensor(SLIGHT * usual, dtype=torch.float64, device=change.device)
    if before.is_floating_point():
        least = least.maximum(ROUNDINGS * torch.finfo(before.dtype).eps * before.double().abs())
    return (change > least) & torch.isfinite(change)


def _median(change: torch.Tensor) -> float:
    finite = change[(change > 0) & torch.isfinite(change)]
    return float(finite.median()) if finite.numel() else 0.0


def explains(got: torch.Tensor, expected: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether nearly all elements that are far from the expected ones are close to those of `other` instead."""
    if other.shape != got.shape or not got.is_floating_point():
        return False
    far, near = ~close(got, expected), close(got, other)
    count = int(far.sum())
    enough = count >= min(FEWEST, far.numel()) and int((near & far).sum()) >= SHARE * count
    return enough and bool(near.double().mean() >= SHARE)


def close(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Returns whether elements of floating-point tensors differ by no more than some roundings. NaN equals NaN."""
    share = min(ROUNDINGS * torch.finfo(one.dtype).eps, CLOSEST)
    exact = other.double()
    size = exact.square().nan_to_num(0.0, 0.0, 0.0).mean().sqrt()
    near = (one.double() - exact).abs() <= share * (exact.abs() + size)
    return near | _equal(one, other)


def _equal(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (one == other) | (one.isnan() & other.isnan())
