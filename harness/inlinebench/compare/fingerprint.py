"""Tells whether memory was changed, without keeping a copy of it."""

from __future__ import annotations

import torch

CHUNK = 1 << 22
"""64-bit words at a time."""


class Fingerprint:
    """A secret weighted sum of memory, modulo 2**64: who doesn't know the weights can't change the memory and keep it.

    Weights are odd, so every change of one word changes the sum.
    """

    def __init__(self, device: torch.device, seed: int) -> None:
        generator = torch.Generator(device).manual_seed(seed)
        bounds = torch.iinfo(torch.int64)
        self._weights = torch.empty(CHUNK, dtype=torch.int64, device=device)
        self._weights.random_(bounds.min, bounds.max, generator=generator).bitwise_or_(1)

    def of(self, memory: torch.Tensor) -> torch.Tensor:
        """The sums of a flat uint8 tensor whose size is a multiple of 8, one a chunk (int64)."""
        words = memory.view(torch.int64)
        chunks = torch.split(words, CHUNK)
        return torch.stack([(chunk * self._weights[: chunk.numel()]).sum() for chunk in chunks] or [words.sum()])


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two dense tensors of the same shape, dtype and strides hold the same bits, NaN included."""
    return torch.equal(bits(one), bits(other))


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a dense tensor, in the order of its memory (flat uint8)."""
    flat = torch.as_strided(tensor, (tensor.numel(),), (1,))
    return flat.view(torch.uint8) if flat.numel() else flat
