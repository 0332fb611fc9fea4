"""Checks that the reference's gradient is that of its forward, by finite differences of the oracle.

A gradient is multiplied by a random direction. That must be how fast the outputs, weighted by the incoming gradients,
change along this direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from inlinebench.audit.prepared import PLAIN_CALLS, Call, Prepared
from inlinebench.audit.records import Flaw
from inlinebench.problem.forward import Tensors
from inlinebench.wire.backward import GradientForm

STEP = 1e-5
"""The distance of the points of a difference, as a share of the size of what is differentiated."""
DIRECTIONS = 3
"""The random directions in each call. A gradient is wrong if it is wrong along all of them in all calls."""
WRONG = 1e-2
"""The relative difference that makes a gradient wrong. In float64, neither the step nor rounding explains it."""
ROUNDING = 1e-7
"""A difference below this share of the sum of the outputs' absolute values is rounding, divided by the step."""


@dataclass(frozen=True)
class _Slopes:
    """How fast the weighted outputs change along a direction."""

    by_gradient: float
    """According to the reference's gradient."""
    by_difference: float
    """According to the forward."""
    rounding: float
    """A difference of both that is only rounding."""

    @property
    def differ(self) -> bool:
        difference = abs(self.by_gradient - self.by_difference)
        return difference > WRONG * max(abs(self.by_gradient), abs(self.by_difference)) + self.rounding


def wrong_gradients(prepared: Prepared) -> Iterator[Flaw]:
    """Finds gradients of the reference that are not those of its forward, such as of a wrong autograd function."""
    form = prepared.probed.gradients
    if form is None or not prepared.probed.float64:
        return
    calls = list(islice(prepared.calls(), PLAIN_CALLS))
    for number, name in enumerate(form.names):
        found = [slopes for call in calls for slopes in _slopes(prepared, form, call, number)]
        if found and all(each.differ for each in found):
            first = found[0]
            yield Flaw("wrong gradient", True, f"the {name} is not that of forward: along a random direction, the "
                       f"outputs change by {first.by_difference:.3g} by finite differences in float64, and by "
                       f"{first.by_gradient:.3g} by the gradient; if that is intended, as where a value is detached, "
                       "ignore this", {"gradient": name, "directions": len(found)})


def _slopes(prepared: Prepared, form: GradientForm, call: Call, number: int) -> Iterator[_Slopes]:
    """Yields the slopes along random directions of the source of the gradient with this number."""
    exact = call.run()
    if exact is None:
        return
    gradient = exact[f"output {len(prepared.probed.outputs) - len(form.names) + number}"]
    given, weights = [each.double() if each.is_floating_point() else each for each in call.inputs], prepared.weights()
    is_input = number < len(form.inputs)
    source = given[form.inputs[number]] if is_input else weights[form.parameters[number - len(form.inputs)]].double()
    if not source.is_floating_point() or not source.numel():
        return
    generator = torch.Generator(source.device).manual_seed(number)
    step = STEP * max(float(source.square().mean().sqrt()), STEP)
    for _ in range(DIRECTIONS):
        direction = torch.randn(source.shape, generator=generator, dtype=torch.float64, device=source.device)
        ends = []
        for sign in (1, -1):
            moved = source + sign * step * direction
            if is_input:
                run = call.run(inputs=_replaced(given, form.inputs[number], moved))
            else:
                run = call.run(weights={form.parameters[number - len(form.inputs)]: moved})
            if run is None:
                return
            ends.append(_weighted(prepared, form, run, given))
        size = _weighted(prepared, form, exact, given, absolute=True)
        yield _Slopes(float((gradient * direction).sum()), (ends[0] - ends[1]) / (2 * step), ROUNDING * size)


def _replaced(tensors: Sequence[torch.Tensor], index: int, other: torch.Tensor) -> list[torch.Tensor]:
    return [*tensors[:index], other, *tensors[index + 1:]]


def _weighted(
    prepared: Prepared, form: GradientForm, found: Mapping[str, torch.Tensor] | Tensors, given: Sequence[torch.Tensor],
    *, absolute: bool = False,
) -> float:
    """Returns the sum of the outputs, weighted by the incoming gradients, or of the absolute values."""
    total = 0.0
    for position, incoming in zip(form.outputs, given[len(given) - len(form.incoming):], strict=True):
        index = sum(prepared.probed.output_is_tensor[:position])
        products = found[f"output {index}"].double() * incoming
        total += float((products.abs() if absolute else products).sum())
    return total
