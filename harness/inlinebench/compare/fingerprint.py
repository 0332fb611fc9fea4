"""Detects changes of memory without keeping a copy of it."""

from __future__ import annotations

import torch

CHUNK = 1 << 22
"""The number of 64-bit words in one sum."""


class Fingerprint:
    """Sums 64-bit words with secret weights, modulo 2**64.

    Without knowing the weights, nobody can change the memory and keep the sums. All weights are odd, so every change of
    a single word changes its sum. `seed` determines the weights.
    """

    def __init__(self, device: torch.device, seed: int) -> None:
        generator = torch.Generator(device).manual_seed(seed)
        bounds = torch.iinfo(torch.int64)
        self._weights = torch.empty(CHUNK, dtype=torch.int64, device=device)
        self._weights.random_(bounds.min, bounds.max, generator=generator).bitwise_or_(1)

    def of(self, memory: torch.Tensor) -> torch.Tensor:
        """Returns one int64 sum for each chunk of a flat uint8 tensor, whose size must be a multiple of 8."""
        words = memory.view(torch.int64)
        chunks = torch.split(words, CHUNK)
        return torch.stack([(chunk * self._weights[: chunk.numel()]).sum() for chunk in chunks] or [words.sum()])


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two dense tensors of the same shape, dtype and strides hold the same bits, NaN included."""
    return torch.equal(bits(one), bits(other))


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the bytes of a dense tensor in memory order, as flat uint8."""
    flat = torch.as_strided(tensor, (tensor.numel(),), (1,))
    return flat.view(torch.uint8) if flat.numel() else flat
