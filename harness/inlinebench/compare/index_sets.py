"""Finds the simplest exact description of a set of indices along one dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import torch

EXAMPLES = 3
"""The number of indices that are kept as examples."""
WINDOW = 1 << 22
"""The number of indices that are processed together. A period must show within this many indices from the first."""


class SetForm(Enum):
    """The form of a set of indices. A set has the first form in this list that fits it."""

    EVERY = "every index"
    ONE = "a single index"
    BELOW = "from 0 to the last"
    FROM = "from the first to the end"
    RANGE = "from the first to the last"
    STEP = "one of each period, over the whole dimension"
    STEP_WITHIN = "one of each period, from the first to the last"
    BLOCK = "several adjacent ones of each period, over the whole dimension"
    SOME = "none of these"


@dataclass(frozen=True)
class IndexSet:
    """A non-empty set of indices along a dimension."""

    size: int
    """The size of the dimension."""
    count: int
    """The number of indices in the set."""
    first: int
    """The smallest index."""
    last: int
    """The largest index."""
    examples: tuple[int, ...]
    """The first few indices."""
    form: SetForm
    """The form of the set."""
    period: int = 0
    """The period of a STEP, STEP_WITHIN or BLOCK. 0 otherwise."""
    width: int = 0
    """The number of adjacent indices in each period, from the remainder `first % period` on. 0 without a period."""

    @classmethod
    def of(cls, chosen: torch.Tensor) -> IndexSet:
        """Describes the indices at which a 1-d bool tensor is true. At least one must be."""
        size, count = chosen.numel(), int(chosen.sum())
        first = int(chosen.view(torch.uint8).argmax())
        last = size - 1 - int(chosen.flip(0).view(torch.uint8).argmax())
        form, period, width = _form(chosen, count, first, last)
        return cls(size, count, first, last, _examples(chosen, first), form, period, width)

    def log_choices(self) -> float:
        """Returns the logarithm of an upper bound of the number of sets of this form, size and count."""
        if self.form is SetForm.EVERY:
            return 0.0
        if self.form in (SetForm.BELOW, SetForm.FROM):
            return math.log(2)
        if self.form in (SetForm.ONE, SetForm.RANGE):
            return math.log(self.size)
        return log_binomial(self.size, self.count) if self.form is SetForm.SOME else 2 * math.log(self.size)


def log_binomial(of: int, chosen: int) -> float:
    """Returns the logarithm of the binomial coefficient `of` over `chosen`."""
    return math.lgamma(of + 1) - math.lgamma(chosen + 1) - math.lgamma(of - chosen + 1)


def _form(chosen: torch.Tensor, count: int, first: int, last: int) -> tuple[SetForm, int, int]:
    """Returns the form, and period and width (0 if the form has none)."""
    size = chosen.numel()
    if count == size:
        return SetForm.EVERY, 0, 0
    if count == 1:
        return SetForm.ONE, 0, 0
    if count == last - first + 1:
        return (SetForm.BELOW if first == 0 else SetForm.FROM if last == size - 1 else SetForm.RANGE), 0, 0
    begin, period, width = _first_period(chosen, first)
    if period and begin % period + width <= period:
        if _repeats(chosen, begin, period, width):
            return (SetForm.STEP if width == 1 else SetForm.BLOCK), period, width
        if width == 1 and _repeats(chosen[first : last + 1], begin - first, period, width):
            return SetForm.STEP_WITHIN, period, width
    return SetForm.SOME, 0, 0


def _first_period(chosen: torch.Tensor, first: int) -> tuple[int, int, int]:
    """Returns the begin of a run of adjacent indices, the distance to the next run, and the run's length.

    The first run may be cut off at index 0, so the second run is used. If there are only two runs, the first one is
    used, provided that their distance is half of the size. Returns zeros if there is no period.
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
    """Whether the set is exactly `width` indices from `begin` on, repeated with the period in both directions."""
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
