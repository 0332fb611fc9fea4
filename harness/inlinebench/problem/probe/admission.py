"""Decides which variants of the inputs a reference accepts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import torch

from inlinebench.compare.bits import same_bits
from inlinebench.problem.forward import InputForm, Output, is_sticky, run
from inlinebench.problem.inputs import Draw
from inlinebench.problem.probe import FORWARD_SEED
from inlinebench.problem.probe.records import Trial
from inlinebench.problem.variants import CHANGING, POWERS_OF_TWO, Variant, apply_variant


def admit(
    model: torch.nn.Module, drawn: Draw, mutated: Collection[int], may_try: Callable[[Trial], bool],
    device: torch.device, *, varied: Sequence[int],
) -> dict[Variant, tuple[int, ...]]:
    """Returns for each variant the positions of the inputs, out of `varied`, that the reference accepts it for."""
    def accepts(variant: Variant, positions: tuple[int, ...]) -> bool:
        power = POWERS_OF_TWO[variant][-1] if variant in POWERS_OF_TWO else None
        return may_try((variant, positions)) and _stays_finite(
            model, drawn, device, variant=variant, power=power, positions=positions, mutated=mutated)

    admitted: dict[Variant, tuple[int, ...]] = {}
    for variant in CHANGING:
        alone = tuple(index for index in varied if accepts(variant, (index,)))
        if len(alone) == 1 or (alone and accepts(variant, alone)):
            admitted[variant] = alone
    return admitted


def _stays_finite(
    model: torch.nn.Module, drawn: Draw, device: torch.device, *, variant: Variant,
    power: int | None, positions: tuple[int, ...], mutated: Collection[int],
) -> bool:
    """Whether the outputs for a variant are finite, and the reference changes no further inputs, as `relu_` might."""
    form, generator = InputForm(drawn.skeleton, drawn.is_tensor), torch.Generator(device).manual_seed(FORWARD_SEED)
    tensors = [tensor.clone() for tensor in drawn.tensors]
    for index in positions:
        apply_variant(variant, tensors[index], generator, power)
    given = [tensor.clone() for tensor in tensors]
    try:
        output = Output.of(run(model, form.arguments(tensors, drawn.non_tensors), FORWARD_SEED))
        if any(not same_bits(tensors[index], given[index]) for index in range(len(given)) if index not in mutated):
            return False
        return all(bool(torch.isfinite(tensor).all()) for tensor in output.tensors)
    except Exception as error:
        if is_sticky(error):
            raise
        return False
