"""Single elements of tensors: by their places, in a form that can be compared, and as text."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def comparable(tensor: torch.Tensor) -> torch.Tensor:
    """Bytes of booleans, because a candidate can write any byte where a bool is due; others as they are."""
    return tensor.view(torch.uint8) if tensor.dtype is torch.bool else tensor


def take(tensor: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """The elements at flat indices, `comparable`, whatever the tensor's layout is and without a copy of all of it."""
    tensor = comparable(tensor)
    return tensor.view(-1)[at] if tensor.is_contiguous() else tensor[torch.unravel_index(at, tensor.shape)]


def widen(values: torch.Tensor) -> torch.Tensor:
    """Comparable values in float64, complex128 or int64."""
    if values.is_complex():
        return values.to(torch.complex128)
    return values.double() if values.is_floating_point() else values.to(torch.int64)


def text_of(value: torch.Tensor, dtype: torch.dtype) -> str:
    """A single value of a dtype as a text, in digits enough to tell it from its neighbours; a boolean by its byte."""
    if dtype is torch.bool:
        return {0: "false", 1: "true"}.get(int(value), f"{int(value)}, which is no boolean")
    if not (dtype.is_floating_point or dtype.is_complex):
        whole = int(value.to(torch.int64))  # which the largest of uint64 wrap around
        return str(whole % 2**64 if dtype is torch.uint64 else whole)
    digits = 17 if dtype in (torch.float64, torch.complex128) else 9
    if dtype.is_complex:
        return f"{float(value.real):.{digits}g}{float(value.imag):+.{digits}g}j"
    return f"{float(value):.{digits}g}"


def unravel(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The index of an element by its flat one."""
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))
