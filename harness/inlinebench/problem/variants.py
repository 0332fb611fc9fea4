"""Variants of drawn inputs: other values for the same problem, so that a solution cannot rely on their distribution.

Zeros stay zeros and symmetric matrices stay symmetric, so triangular, banded, padded and symmetric inputs keep their
structure. Factors are powers of two or signs, which do not change mantissas, so a variant does not add rounding to the
inputs as drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import torch

from inlinebench.compare.elements import unravel

SAMPLE = 4096
"""The number of elements that are sampled to distinguish continuous values from masks and labels."""
FEWEST_DISTINCT = 16
"""A sample with fewer distinct values than this is a mask, a constant or a code, not a continuous quantity."""
LARGE_EVERY = 4096
"""LARGE enlarges one of this many values, and at least one."""
ONE_LARGE_OF = 64
"""ONE_LARGE enlarges a positive and a negative one of this many values."""
LARGER = 3
"""The power of two by which LARGE and ONE_LARGE move values above the largest one, so that they are 4 to 16 times as
large."""
OVERFLOWS = 7
"""The least exponent of the values of ONE_LARGE, as `frexp` has it. They are near 128, and `exp` of more than 88.7 is
infinite in float32: a softmax without the row's maximum is not finite then."""
ONE_SLICE_OF = 8
"""SIGNS gives one sign to one of this many slices along each dimension, and SCALED_DOWN makes them much smaller."""
SMALL_SLICE = -8
"""The exponent of the factor by which SCALED_DOWN makes some slices smaller. The squares of their values are about as
small as the constants that normalizations add, and float16 still has digits for most of them."""


class Variant(str, Enum):
    """How the input values of a call differ from those that `get_inputs` drew."""

    PLAIN = "as drawn"
    ONE_SIGN = "with values of one sign"
    SCALED_DOWN = "scaled down by powers of two"
    SCALED_UP = "scaled up by a power of two"
    SIGNS = "random signs"
    LARGE = "with a few large values"
    ONE_LARGE = "with one large value of each sign"

    def __str__(self) -> str:
        return self.value

    @property
    def enlarges(self) -> bool:
        """Whether a few values become much larger than the others."""
        return self in (Variant.LARGE, Variant.ONE_LARGE)

    def of(self, positions: Sequence[int], gradients_from: int | None = None) -> str:
        """Describes this variant of the inputs at these positions, such as "random signs of inputs 0 and 1".

        Positions from `gradients_from` on are those of the gradients of the outputs, which a backward is given.
        """
        if not positions:
            return "inputs as drawn"
        own = [each for each in positions if gradients_from is None or each < gradients_from]
        names = [f"input{'s' * (len(own) > 1)} {' and '.join(map(str, own))}"] * bool(own)
        inputs = " and ".join(names + ["the outputs' gradients"] * (len(own) < len(positions)))
        return f"{self} of {inputs}" if self is Variant.SIGNS else f"{inputs} {self}"


FEWEST_SORTED, SORTED_ROWS = 8, 64
"""The length of the shortest rows that can count as sorted, and how many rows are examined."""
BLUR = 2.0**-7
"""The largest share by which `blur` reduces a value. The relative step of bfloat16 is half of it."""
CHANGING = (Variant.ONE_SIGN, Variant.SCALED_DOWN, Variant.SCALED_UP, Variant.SIGNS, Variant.LARGE, Variant.ONE_LARGE)
"""The variants that change values."""
POWERS_OF_TWO = {Variant.SCALED_DOWN: (-1, -2), Variant.SCALED_UP: (1, 2)}
"""The exponents of the factors of a variant that scales, the largest change last."""


def is_continuous(tensor: torch.Tensor) -> bool:
    """Whether a tensor contains a continuous quantity, so that variants of it make sense.

    False for floats of 8 bits (PyTorch has no arithmetic for them), integers, constants, masks (also additive masks
    with infinities), one-hot rows, labels stored as floats, probabilities (non-negative, with sums of 1 along a
    dimension), and values sorted along the last dimension.
    """
    if not tensor.is_floating_point() or tensor.element_size() == 1 or tensor.numel() < FEWEST_DISTINCT:
        return False
    flat = tensor.reshape(-1)
    sample = flat[:: max(1, flat.numel() // SAMPLE)].double()
    values = sample[sample != 0]
    if not torch.isfinite(sample).all() or torch.unique(values).numel() < FEWEST_DISTINCT:
        return False
    return not bool((values == values.round()).all()) and not _is_probability(tensor) and not is_sorted(tensor)


def is_sorted(tensor: torch.Tensor) -> bool:
    """Whether all rows increase, or all decrease. A reference may search in sorted rows."""
    if tensor.ndim == 0 or tensor.shape[-1] < FEWEST_SORTED:
        return False
    few = tensor.reshape(-1, tensor.shape[-1])[:SORTED_ROWS].double()
    steps = few.diff(dim=-1)
    return bool(((steps >= 0).all() or (steps <= 0).all()) and (steps != 0).any())


def apply_variant(
    variant: Variant, tensor: torch.Tensor, generator: torch.Generator, power: int | None = None
) -> torch.Tensor:
    """Changes a continuous tensor in place and returns it.

    Args:
        variant: the variant to apply.
        tensor: the tensor. Its shape, dtype and layout stay the same.
        generator: the source of random choices.
        power: the exponent of the factor of a variant that scales. None: chosen at random.
    """
    if variant is Variant.ONE_SIGN:
        return tensor.neg_() if bool((tensor <= 0).all()) else tensor.abs_().neg_()
    if variant in POWERS_OF_TWO:
        powers = POWERS_OF_TWO[variant]
        choice = int(torch.randint(len(powers), (), generator=generator, device=generator.device))
        tensor.mul_(2.0 ** (powers[choice] if power is None else power))
        return _shrink_slices(tensor, generator) if variant is Variant.SCALED_DOWN else tensor
    if variant.enlarges:
        return _enlarge(tensor, generator, one_of_each_sign=variant is Variant.ONE_LARGE)
    if variant is Variant.SIGNS:
        if _is_symmetric(tensor):
            signs = _signs(tensor.shape[-1:], tensor, generator)
            return tensor.mul_(signs).mul_(signs.unsqueeze(-1))
        signs = _signs(tensor.shape, tensor, generator)
        sign = 1 - 2 * int(torch.randint(2, (), generator=generator, device=generator.device))
        return tensor.abs_().mul_(signs.masked_fill_(_some_slices(tensor, generator), sign))
    return tensor


def _shrink_slices(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Makes some rows, some columns, and so on much smaller, in place.

    A normalization that forgets what is added below its root, or adds it elsewhere, is wrong by less than the tolerance
    where values are about 1.
    """
    if _is_symmetric(tensor):
        few = _few(tensor.shape[-1], tensor, generator)
        mask = few | few.unsqueeze(-1)
    else:
        mask = _some_slices(tensor, generator)
    return tensor.copy_(torch.where(mask, tensor * 2.0**SMALL_SLICE, tensor))


def _some_slices(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Returns a mask of some slices along each dimension: of a matrix, some rows and some columns.

    Whole slices are needed: a maximum over a row that begins at 0 shows only if all values of the row are negative.
    Slices of one element are left out, and so is the only one along a dimension of length 1.
    """
    mask = torch.zeros(tensor.shape, dtype=torch.bool, device=tensor.device)
    for dimension, size in enumerate(tensor.shape):
        if 1 < size < tensor.numel():
            mask.index_fill_(dimension, _few(size, tensor, generator).nonzero().flatten(), value=True)
    return mask


def _few(size: int, like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Returns a mask of `size` that is true at about one of ONE_SLICE_OF random places, and at least at one."""
    places = torch.randint(size, (-(-size // ONE_SLICE_OF),), generator=generator, device=generator.device)
    return torch.zeros(size, dtype=torch.bool, device=like.device).index_fill_(0, places.to(like.device), value=True)


def _enlarge(tensor: torch.Tensor, generator: torch.Generator, *, one_of_each_sign: bool) -> torch.Tensor:
    """Multiplies values at random positions by powers of two, so that they exceed all others.

    A sum over a sample of the values is wrong with many of them, and a sample does not show that there is a single one.
    A single one has both signs, since a maximum or an exponential hides what becomes very negative.
    """
    count = ONE_LARGE_OF if one_of_each_sign else -(-tensor.numel() // LARGE_EVERY)
    flat = torch.randint(tensor.numel(), (count,), generator=generator, device=generator.device).to(tensor.device)
    positions = unravel(flat, tensor.shape)
    values = tensor[positions].double()
    exponent = torch.frexp(tensor.abs().amax().double()).exponent + LARGER
    if one_of_each_sign:
        exponent = exponent.clamp(min=OVERFLOWS)
        mantissas = torch.frexp(values).mantissa
        top, bottom = mantissas.argmax(), mantissas.argmin()
        chosen = torch.stack([torch.where(mantissas[top] > 0, top, bottom),  # a sign may be missing
                              torch.where(mantissas[bottom] < 0, bottom, top)])
        positions, values = tuple(position[chosen] for position in positions), values[chosen]
    exponents = exponent - torch.frexp(values).exponent
    enlarged = (values * torch.exp2(exponents.double())).to(tensor.dtype)
    symmetric = _is_symmetric(tensor)
    tensor[positions] = enlarged
    if symmetric:
        tensor[(*positions[:-2], positions[-1], positions[-2])] = enlarged
    return tensor


def blur(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Makes each value of a continuous tensor slightly smaller, by an individual random factor, in place.

    Inputs that are reused get new values in this way, so that stored outputs do not match them.
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
