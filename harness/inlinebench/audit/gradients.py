"""Checks that the reference's gradient is that of its forward, by finite differences of the oracle.

A gradient is multiplied by a random direction. That must be how fast the outputs, weighted by the incoming gradients,
change along this direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import torch

from inlinebench.audit.prepared import PLAIN_CALLS, Call, Prepared
from inlinebench.audit.records import Flaw
from inlinebench.problem.finite_differences import Slopes, slopes
from inlinebench.problem.forward import Tensors
from inlinebench.wire.backward import GradientForm


def wrong_gradients(prepared: Prepared) -> Iterator[Flaw]:
    """Finds gradients of the reference that are not those of its forward, such as of a wrong autograd function."""
    form = prepared.probed.gradients
    if form is None or not prepared.probed.float64:
        return
    calls = list(islice(prepared.calls(), PLAIN_CALLS))
    for number, name in enumerate(form.names):
        found = [each for call in calls for each in _slopes(prepared, form, call, number)]
        if found and all(each.differ for each in found):
            yield Flaw("wrong gradient", True, f"{found[0].describe(name)}; if that is intended, as where a value is "
                       "detached, ignore this", {"gradient": name, "directions": len(found)})


def _slopes(prepared: Prepared, form: GradientForm, call: Call, number: int) -> Iterator[Slopes]:
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

    def weighted(moved: torch.Tensor) -> float | None:
        if is_input:
            run = call.run(inputs=_replaced(given, form.inputs[number], moved))
        else:
            run = call.run(weights={form.parameters[number - len(form.inputs)]: moved})
        return None if run is None else _weighted(prepared, form, run, given)

    yield from slopes(gradient, source, weighted, _weighted(prepared, form, exact, given, absolute=True), number)


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
