"""Variants of drawn inputs: the same problem with other values, so that an answer can't rest on their distribution.

Zeros stay zeros and symmetric matrices stay symmetric, so triangular, banded, padded and symmetric inputs keep what
makes them so. Powers of two and signs change no mantissa, so a variant is no harder on rounding than the draw itself.
"""

from __future__ import annotations

from enum import Enum

import torch

SAMPLE = 4096
"""Elements looked at to tell continuous values from masks and labels."""
FEWEST_DISTINCT = 16
"""Fewer distinct values than this in the sample are a mask, a constant or a code, not a continuous quantity."""
POWERS_OF_TWO = (-2, -1, 1, 2)


class Variant(str, Enum):
    """How the values of a call differ from what `get_inputs` drew."""

    PLAIN = "as drawn"
    NEGATED = "negated"
    SCALED = "scaled by a power of two"
    SIGNS = "random signs"

    def __str__(self) -> str:
        return self.value


FEWEST_SORTED, SORTED_ROWS = 8, 64
"""The shortest rows that count as sorted, and how many are looked at."""
BLUR = 2.0**-7
"""The most that `blur` takes off, as a share: a bfloat16 has steps of half of that."""
CHANGING = (Variant.NEGATED, Variant.SCALED, Variant.SIGNS)


def is_continuous(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds a continuous quantity, so that variants of it make sense.

    Not so: integers, constants, masks (also additive ones with infinities), one-hot rows, labels stored as floats,
    probabilities (non-negative, sums of 1 along a dimension), and what is sorted along its last dimension.
    """
    if not tensor.is_floating_point() or tensor.numel() < FEWEST_DISTINCT:
        return False
    flat = tensor.reshape(-1)
    sample = flat[:: max(1, flat.numel() // SAMPLE)].double()
    values = sample[sample != 0]
    if not torch.isfinite(sample).all() or torch.unique(values).numel() < FEWEST_DISTINCT:
        return False
    return not bool((values == values.round()).all()) and not _is_probability(tensor) and not _is_sorted(tensor)


def _is_sorted(tensor: torch.Tensor) -> bool:
    """Whether all rows rise, or all fall: a reference may search in them."""
    if tensor.ndim == 0 or tensor.shape[-1] < FEWEST_SORTED:
        return False
    few = tensor.reshape(-1, tensor.shape[-1])[:SORTED_ROWS].double()
    steps = few.diff(dim=-1)
    return bool(((steps >= 0).all() or (steps <= 0).all()) and (steps != 0).any())


def apply_variant(
    variant: Variant, tensor: torch.Tensor, generator: torch.Generator, power: int | None = None
) -> torch.Tensor:
    """The variant of a continuous tensor, of the same shape, dtype and layout; random choices from the generator, but
    for the power of two where it is given.

    The tensor may be changed in place.
    """
    if variant is Variant.NEGATED:
        return tensor.neg_()
    if variant is Variant.SCALED:
        choice = int(torch.randint(len(POWERS_OF_TWO), (), generator=generator, device=generator.device))
        return tensor.mul_(2.0 ** (POWERS_OF_TWO[choice] if power is None else power))
    if variant is Variant.SIGNS:
        if _is_symmetric(tensor):
            signs = _signs(tensor.shape[-1:], tensor, generator)
            return tensor.mul_(signs).mul_(signs.unsqueeze(-1))
        return tensor.mul_(_signs(tensor.shape, tensor, generator))
    return tensor


def blur(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A continuous tensor with each value a little smaller, by a factor of its own; changed in place.

    For inputs that are used again: their values are new to whoever stored outputs for them.
    """
    if _is_symmetric(tensor):
        factors = _factors(tensor.shape[-1:], tensor, generator)
        return tensor.mul_(factors * factors.unsqueeze(-1))
    return tensor.mul_(_factors(tensor.shape, tensor, generator))


def _factors(shape: torch.Size, like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    factors = torch.empty(shape, dtype=torch.float32, device=generator.device)
    return factors.uniform_(1 - BLUR, 1, generator=generator).to(device=like.device, dtype=like.dtype)


def _signs(shape: torch.Size, like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    bits = torch.empty(shape, dtype=torch.int8, device=generator.device).random_(0, 2, generator=generator)
    return bits.mul_(2).sub_(1).to(device=like.device)


def _is_symmetric(tensor: torch.Tensor) -> bool:
    if tensor.dim() < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] < 2:
        return False
    return torch.equal(tensor, tensor.transpose(-1, -2))


def _is_probability(tensor: torch.Tensor) -> bool:
    if bool((tensor < 0).any()):
        return False
    for dim in range(tensor.dim()):
        sums = tensor.sum(dim, dtype=torch.float64)
        if tensor.shape[dim] > 1 and bool(((sums - 1).abs() < 1e-2).all()):
            return True
    return False
