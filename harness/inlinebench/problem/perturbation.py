"""Changes values a little, to find out how sensitive a result is to them.

Each value is multiplied by `1 + size * u`, with `u` uniform in [-1, 1], so zeros stay zero. Two things are kept,
because a reference may rely on them:

- Values stay in the range of their tensor: one at an end of the range, such as a probability of 1, moves inwards only.
- Tensors of whole numbers and rows that are sorted do not change: they may be masks, labels, positions or boundaries.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from inlinebench.compare.tolerance import rounding_of
from inlinebench.problem.variants import is_sorted


@dataclass(frozen=True)
class Perturbation:
    """How one run changes all values. The same perturbation of the same tensors gives the same values."""

    size: float | None
    """The largest relative change. None: what counts as rounding in the dtype of each tensor."""
    seed: int
    """Chooses the changes."""
    rounded: bool = False
    """Whether the results are rounded to their dtypes, so that a run in these dtypes gets the same values as one in
    float64."""

    def of(self, values: list[Values]) -> list[torch.Tensor]:
        """Returns the changed values in float64 or complex128. Integers keep their dtype."""
        generators: dict[torch.device, torch.Generator] = {}
        return [each.changed(self, generators) for each in values]


class Values:
    """A tensor whose values may be changed, with what has to be kept."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._range: tuple[float, float] | None = None
        wide = tensor.is_floating_point() or tensor.is_complex()
        self.may_change = wide and tensor.numel() > 0 and not _is_exact(tensor)
        if self.may_change and tensor.is_floating_point():
            low, high = (float(end) for end in tensor.double().aminmax())
            self._range = (low, high) if low < high else None  # of a constant, any change leaves the range

    def changed(self, by: Perturbation, generators: dict[torch.device, torch.Generator]) -> torch.Tensor:
        """Returns a copy that is changed. `generators` holds the generator of each device."""
        tensor = self._tensor
        wide = tensor.to(torch.complex128) if tensor.is_complex() else (
            tensor.double() if tensor.is_floating_point() else tensor)
        if not self.may_change:
            return wide.clone() if wide is tensor else wide
        if tensor.device not in generators:
            generators[tensor.device] = torch.Generator(tensor.device).manual_seed(by.seed)
        size = rounding_of(tensor.dtype) if by.size is None else by.size
        changes = torch.empty(tensor.shape, device=tensor.device).uniform_(
            -1, 1, generator=generators[tensor.device])  # in float32, which is fast and fine enough for changes
        changed = wide * changes.double().mul_(size).add_(1)
        if self._range is not None:
            changed.clamp_(*self._range)
        return changed.to(tensor.dtype).to(changed.dtype) if by.rounded else changed


def _is_exact(tensor: torch.Tensor) -> bool:
    """Whether all finite values are whole numbers, or all rows are sorted."""
    if tensor.is_complex():
        return False
    values = tensor.float() if tensor.element_size() == 1 else tensor
    return bool(((values == values.round()) | ~torch.isfinite(values)).all()) or is_sorted(values)
