"""Accesses, converts and formats single elements of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch

Index = TypeVar("Index", int, torch.Tensor)


def comparable(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a bool tensor as uint8, because a candidate can write any byte to it. Returns other tensors unchanged."""
    return tensor.view(torch.uint8) if tensor.dtype is torch.bool else tensor


def take(tensor: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Returns the elements at flat indices (1-d int64), as `comparable` does. Needs no full copy for any layout."""
    tensor = comparable(tensor)
    return tensor.view(-1)[at] if tensor.is_contiguous() else tensor[unravel(at, tensor.shape)]


def widen(values: torch.Tensor) -> torch.Tensor:
    """Converts values to float64, complex128 or int64."""
    if values.is_complex():
        return values.to(torch.complex128)
    return values.double() if values.is_floating_point() else values.to(torch.int64)


def text_of(value: torch.Tensor, dtype: torch.dtype) -> str:
    """Formats a single value of a dtype, with enough digits to distinguish it from its neighbours.

    A bool is given by its byte, as `comparable` returns it.
    """
    if dtype is torch.bool:
        return {0: "false", 1: "true"}.get(int(value), f"{int(value)}, which is not a boolean")
    if not (dtype.is_floating_point or dtype.is_complex):
        integer = int(value.to(torch.int64))  # large uint64 values wrap around
        return str(integer % 2**64 if dtype is torch.uint64 else integer)
    digits = 17 if dtype in (torch.float64, torch.complex128) else 9
    if dtype.is_complex:
        return f"{float(value.real):.{digits}g}{float(value.imag):+.{digits}g}j"
    return f"{float(value):.{digits}g}"


def unravel(flat: Index, shape: Sequence[int]) -> tuple[Index, ...]:
    """Converts a flat index, or a tensor of them, to a multi-dimensional one.

    `torch.unravel_index` does the same for tensors, but its first call imports SymPy, which takes up to a second.
    """
    index = list[Index]()
    for size in reversed(shape):
        index.append(flat % size)
        flat = flat // size
    return tuple(reversed(index))
