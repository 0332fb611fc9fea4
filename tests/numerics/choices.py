"""Choices by value: top-k, sorting and largest values, with equal values in other orders, and wrong choices.

Values are compared over the last dimension, and the largest come first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

Chosen = tuple[torch.Tensor, torch.Tensor]
Sort = Callable[[torch.Tensor], Chosen]


def first_of_equals(x: torch.Tensor) -> Chosen:
    """Sorts. Of equal values, the first in the row comes first."""
    return torch.sort(x, dim=-1, descending=True, stable=True)


def last_of_equals(x: torch.Tensor) -> Chosen:
    """Sorts. Of equal values, the last in the row comes first."""
    values, indices = first_of_equals(x.flip(-1))
    return values, x.shape[-1] - 1 - indices


def any_of_equals(x: torch.Tensor) -> Chosen:
    """Sorts. Equal values come in a random order."""
    order = torch.randperm(x.shape[-1], device=x.device)
    values, indices = first_of_equals(x[..., order])
    return values, order[indices]


def by_merging(x: torch.Tensor, count: int = 8) -> Chosen:
    """Sorts parts of a row, then the parts' results, the last part first."""
    begins = range(0, x.shape[-1], -(-x.shape[-1] // count))
    parts = [first_of_equals(part) for part in x.split(-(-x.shape[-1] // count), -1)]
    values = torch.cat([part[0] for part in reversed(parts)], -1)
    indices = torch.cat([part[1] + begin for part, begin in reversed(list(zip(parts, begins, strict=True)))], -1)
    values, order = first_of_equals(values)
    return values, indices.gather(-1, order)


def repeated(sort: Sort, x: torch.Tensor, place: int) -> Chosen:
    """Repeats the index before `place`. Values are right."""
    values, indices = sort(x)
    indices = indices.clone()
    indices[..., place] = indices[..., place - 1]
    return values, indices


def swapped(sort: Sort, x: torch.Tensor, place: int, distance: int) -> Chosen:
    """Swaps the value and the index at `place` with those at some distance, which are clearly smaller."""
    order = torch.arange(x.shape[-1], device=x.device)
    order[place], order[place + distance] = place + distance, place
    values, indices = sort(x)
    return values[..., order], indices[..., order]


def of_rounded(dtype: torch.dtype, x: torch.Tensor) -> Chosen:
    """Sorts rounded values. Returns the values that belong to the indices."""
    indices = first_of_equals(x.to(dtype).float())[1]
    return x.gather(-1, indices), indices


def shifted(sort: Sort, x: torch.Tensor) -> Chosen:
    """Returns indices that are one too large, and 0 for the last one. Values are right."""
    values, indices = sort(x)
    return values, (indices + 1) % x.shape[-1]


SORTS: dict[str, Sort] = {
    "first of equals first": first_of_equals,
    "last of equals first": last_of_equals,
    "equals in any order": any_of_equals,
    "parts merged": by_merging,
}
"""Ways to sort that are accepted."""
ROUNDED: dict[str, Sort] = {"order of bf16 values": partial(of_rounded, torch.bfloat16)}
"""Ways to sort float32 that are not."""
