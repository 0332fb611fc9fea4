"""Compares tensors bit by bit, NaN included."""

from __future__ import annotations

import torch

WORD = torch.int64.itemsize


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two dense tensors of the same shape, dtype and strides hold the same bits."""
    pair = bits(one), bits(other)
    # Compared by words, since a comparison on a GPU writes a byte for each element.
    if all(each.numel() % WORD == 0 and each.storage_offset() % WORD == 0 for each in pair):
        return torch.equal(pair[0].view(torch.int64), pair[1].view(torch.int64))
    return torch.equal(*pair)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the bytes of a dense tensor in memory order, as flat uint8."""
    flat = torch.as_strided(tensor, (tensor.numel(),), (1,))
    return flat.view(torch.uint8) if flat.numel() else flat
