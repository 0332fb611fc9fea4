"""A set of indices along one dimension, by the simplest description that fits it exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import torch

EXAMPLES = 3
WINDOW = 1 << 22
"""Indices looked at together; a period that doesn't show in so many from the first on isn't found."""


class Form(Enum):
    """How a set is described. A set has the first form here that fits."""

    EVERY = "every index"
    ONE = "a single one"
    BELOW = "from 0 to the last"
    FROM = "from the first to the end"
    RANGE = "from the first to the last"
    STEP = "one of each period, from end to end"
    STEP_WITHIN = "one of each period, from the first to the last"
    BLOCK = "several next to each other of each period, from end to end"
    SOME = "none of these"


@dataclass(frozen=True)
class IndexSet:
    """`count` of the indices 0 to `size - 1`, from `first` to `last`, and the first few of them.

    `period` is that of a STEP or a BLOCK, in which the indices are those with a remainder of `first % period` and
    `width - 1` more.
    """

    size: int
    count: int
    first: int
    last: int
    examples: tuple[int, ...]
    form: Form
    period: int = 0
    width: int = 0

    @classmethod
    def of(cls, chosen: torch.Tensor) -> IndexSet:
        """The indices at which a boolean vector is true, which are not none."""
        size, count = chosen.numel(), int(chosen.sum())
        first = int(chosen.view(torch.uint8).argmax())
        last = size - 1 - int(chosen.flip(0).view(torch.uint8).argmax())
        form, period, width = _form(chosen, count, first, last)
        return cls(size, count, first, last, _examples(chosen, first), form, period, width)

    def log_choices(self) -> float:
        """The logarithm of how many sets of this form, size and count there are, or a little more."""
        if self.form is Form.EVERY:
            return 0.0
        if self.form in (Form.BELOW, Form.FROM):
            return math.log(2)
        if self.form in (Form.ONE, Form.RANGE):
            return math.log(self.size)
        return log_binomial(self.size, self.count) if self.form is Form.SOME else 2 * math.log(self.size)


def log_binomial(of: int, chosen: int) -> float:
    """The logarithm of the number of ways to choose so many of so many."""
    return math.lgamma(of + 1) - math.lgamma(chosen + 1) - math.lgamma(of - chosen + 1)


def _form(chosen: torch.Tensor, count: int, first: int, last: int) -> tuple[Form, int, int]:
    """The form, and the period and the width where there is one."""
    size = chosen.numel()
    if count == size:
        return Form.EVERY, 0, 0
    if count == 1:
        return Form.ONE, 0, 0
    if count == last - first + 1:
        return (Form.BELOW if first == 0 else Form.FROM if last == size - 1 else Form.RANGE), 0, 0
    begin, period, width = _first_period(chosen, first)
    if period and begin % period + width <= period:
        if _repeats(chosen, begin, period, width):
            return (Form.STEP if width == 1 else Form.BLOCK), period, width
        if width == 1 and _repeats(chosen[first : last + 1], begin - first, period, width):
            return Form.STEP_WITHIN, period, width
    return Form.SOME, 0, 0


def _first_period(chosen: torch.Tensor, first: int) -> tuple[int, int, int]:
    """Where a run of indices begins, how far off the next one begins, and the length of the run; zeros if unknown.

    The first run may have lost its beginning at index 0, so it counts only where there are no more than two; and then
    only if the two are alike in two halves.
    """
    window = chosen[first : first + WINDOW]
    inside = torch.zeros(window.numel() + 2, dtype=torch.int8, device=window.device)
    inside[1:-1] = window
    edges = inside.diff()
    begins = [first + int(at) for at in (edges == 1).nonzero().flatten()[:3]]
    ends = [first + int(at) for at in (edges == -1).nonzero().flatten()[:2]]
    if len(begins) < 2:
        return 0, 0, 0
    if len(begins) > 2:
        return begins[1], begins[2] - begins[1], ends[1] - begins[1]
    period = begins[1] - begins[0]
    return (begins[0], period, ends[0] - begins[0]) if 2 * period == chosen.numel() else (0, 0, 0)


def _repeats(chosen: torch.Tensor, begin: int, period: int, width: int) -> bool:
    """Whether the indices are exactly those from `begin` on, `width` of them in each period, in both directions."""
    for at in range(0, chosen.numel(), WINDOW):
        piece = chosen[at : at + WINDOW]
        indices = torch.arange(at, at + piece.numel(), device=piece.device)
        if not torch.equal((indices - begin).remainder(period) < width, piece):
            return False
    return True


def _examples(chosen: torch.Tensor, first: int) -> tuple[int, ...]:
    found: list[int] = []
    for at in range(first, chosen.numel(), WINDOW):
        found += [at + int(index) for index in chosen[at : at + WINDOW].nonzero().flatten()[: EXAMPLES - len(found)]]
        if len(found) == EXAMPLES:
            break
    return tuple(found)
