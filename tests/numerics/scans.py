"""Scans over the last dimension in the arithmetic of kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

Operator = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def in_order(x: torch.Tensor, operator: Operator) -> torch.Tensor:
    """Combines values from the first to the last one."""
    out = [x[..., 0]]
    for value in x[..., 1:].unbind(-1):
        out.append(operator(out[-1], value))
    return torch.stack(out, -1)


def doubling(x: torch.Tensor, operator: Operator) -> torch.Tensor:
    """Combines values at distances 1, 2, 4, and so on (Hillis and Steele), as a warp does by shuffles."""
    distance = 1
    while distance < x.shape[-1]:
        x = torch.cat([x[..., :distance], operator(x[..., :-distance], x[..., distance:])], -1)
        distance *= 2
    return x


def by_chunks(
    x: torch.Tensor, operator: Operator, fill: float, *, size: int = 64, carry: Operator | None = None,
    scan: Callable[[torch.Tensor, Operator], torch.Tensor] = doubling
) -> torch.Tensor:
    """Scans chunks, then the chunks' results in order, and combines both.

    Args:
        x: the values.
        operator: combines two values.
        fill: the neutral value.
        size: the number of values of a chunk.
        carry: combines the chunks' results, if not by `operator`.
        scan: the scan within a chunk.
    """
    count = x.shape[-1]
    chunks = functional.pad(x, (0, -count % size), value=fill).unflatten(-1, (-1, size))
    scanned = scan(chunks, operator)
    carries = in_order(scanned[..., -1], carry or operator)
    before = functional.pad(carries[..., :-1], (1, 0), value=fill)
    return operator(before.unsqueeze(-1), scanned).flatten(-2)[..., :count]
