"""Compares gradients of a reference with finite differences of its forward in float64.

A gradient is multiplied by a random direction. That must be how fast the outputs, weighted by the incoming gradients,
change along this direction.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from inlinebench.problem import problem_file
from inlinebench.problem.forward import InputForm, Output, is_sticky, run, to_double
from inlinebench.problem.inputs import Draw
from inlinebench.problem.problem_file import ProblemError
from inlinebench.process.steps import FORWARD_IN_FLOAT64
from inlinebench.wire.backward import ForwardBackward, GradientForm
from inlinebench.wire.tree import flatten

STEP = 1e-5
"""The distance of the points of a difference, as a share of the size of what is differentiated."""
DIRECTIONS = 3
"""The random directions. A gradient is wrong if it is wrong along all of them."""
WRONG = 1e-2
"""The relative difference that makes a gradient wrong. In float64, neither the step nor rounding explains it."""
ROUNDING = 1e-7
"""A difference below this share of the sum of the outputs' absolute values is rounding, divided by the step."""
OPT_OUT = "GRADIENT_CHECK"
"""The name in a problem file that turns the check off with the value False."""
SEED = 11
"""The seed of the forwards."""
_CPP_FUNCTION = "torch::autograd::CppNode"
"""How the name of a node begins whose backward is that of a `torch::autograd::Function`."""


@dataclass(frozen=True)
class Slopes:
    """How fast the weighted outputs change along a direction."""

    by_gradient: float
    """According to the reference's gradient."""
    by_difference: float
    """According to the forward."""
    rounding: float
    """A difference of both that is only rounding."""

    @property
    def differ(self) -> bool:
        """Whether the gradient is not that of the forward."""
        difference = abs(self.by_gradient - self.by_difference)
        return difference > WRONG * max(abs(self.by_gradient), abs(self.by_difference)) + self.rounding

    def describe(self, name: str) -> str:
        """Returns a sentence about the gradient with this name."""
        return (f"the {name} is not that of forward: along a random direction, the outputs change by "
                f"{self.by_difference:.3g} by finite differences in float64, and by {self.by_gradient:.3g} by the "
                "gradient")


def slopes(
    gradient: torch.Tensor, source: torch.Tensor, weighted: Callable[[torch.Tensor], float | None], size: float,
    seed: int,
) -> Iterator[Slopes]:
    """Yields the slopes along random directions, which `seed` decides.

    Args:
        gradient: the gradient, in float64.
        source: what it is a gradient of, in float64.
        weighted: returns the sum of the outputs, weighted by the incoming gradients, with another tensor in place of
            the source. None if the forward fails with it; then no more slopes follow.
        size: the sum of the absolute values of the weighted outputs.
    """
    generator = torch.Generator(source.device).manual_seed(seed)
    step = STEP * max(float(source.square().mean().sqrt()), STEP)
    for _ in range(DIRECTIONS):
        direction = torch.randn(source.shape, generator=generator, dtype=torch.float64, device=source.device)
        ahead, behind = (weighted(source + sign * step * direction) for sign in (1, -1))
        if ahead is None or behind is None:
            return
        yield Slopes(float((gradient * direction).sum()), (ahead - behind) / (2 * step), ROUNDING * size)


def defines_gradients(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether autograd would call a backward that is not PyTorch's, such as of a `torch.autograd.Function`."""
    seen, waiting = set[object](), [output.grad_fn for output in outputs]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        if isinstance(node, torch.autograd.function.BackwardCFunction) or node.name().startswith(_CPP_FUNCTION):
            return True
        seen.add(node)
        waiting += [following for following, _ in node.next_functions]
    return False


def check_gradients(
    module: types.ModuleType, model: torch.nn.Module, form: InputForm, drawn: Draw, device: torch.device
) -> None:
    """Raises ProblemError if a gradient of a reference is not that of its forward, unless the problem file opts out.

    It must differ along several directions, so that kinks do not matter. What does not fit in memory is not checked.
    """
    if not getattr(module, OPT_OUT, True):
        return
    both = problem_file.second_model(module, model).double().to(device)
    assert isinstance(both, ForwardBackward)
    try:
        wrong = _Checked(both, both.form, form, drawn).first_wrong()
    except torch.OutOfMemoryError:
        return
    if wrong:
        raise ProblemError(f"{module.__file__}: {wrong}; correct the reference's backward, or if that is intended, as "
                           f"in a straight-through estimator, set {OPT_OUT} = False in the problem")


class _Checked:
    """A reference in float64 whose gradients are checked on the drawn inputs."""

    def __init__(self, both: ForwardBackward, gradients: GradientForm, form: InputForm, drawn: Draw) -> None:
        self._both, self._gradients, self._form, self._drawn = both, gradients, form, drawn
        self._given = list(to_double([tensor.clone() for tensor in drawn.tensors]))
        self._incoming = self._given[len(self._given) - len(gradients.incoming):]

    def first_wrong(self) -> str:
        """Returns a sentence about the first wrong gradient, or ""."""
        if any(each.is_complex() for each in self._incoming):
            return ""
        output = Output.of(run(self._both, self._arguments(self._given), SEED, FORWARD_IN_FLOAT64))
        gradients = output.tensors[len(output.tensors) - len(self._gradients.names):]
        size = self._weighted(self._given, torch.Tensor.abs)
        for number, (name, gradient) in enumerate(zip(self._gradients.names, gradients, strict=True)):
            source = self._source(number)
            if not source.is_floating_point() or not source.numel():
                continue
            found = next(slopes(gradient, source, self._moving(number), size, number), None)
            if found is not None and found.differ and all(
                    each.differ for each in slopes(gradient, source, self._moving(number), size, number)):
                return found.describe(name)
        return ""

    def _source(self, number: int) -> torch.Tensor:
        inputs = self._gradients.inputs
        if number < len(inputs):
            return self._given[inputs[number]]
        return self._both.model.get_parameter(self._gradients.parameters[number - len(inputs)]).detach()

    def _moving(self, number: int) -> Callable[[torch.Tensor], float | None]:
        """Returns the function that replaces a source for a forward."""
        def weighted(moved: torch.Tensor) -> float | None:
            source = self._source(number)
            kept = source.clone()
            source.copy_(moved)
            try:
                return self._weighted(self._given)
            except torch.OutOfMemoryError:
                raise
            except Exception as error:  # the reference may refuse these values
                if is_sticky(error):
                    raise
                return None
            finally:
                source.copy_(kept)
        return weighted

    def _weighted(
        self, given: Sequence[torch.Tensor], of: Callable[[torch.Tensor], torch.Tensor] = torch.Tensor.clone
    ) -> float:
        """Returns the sum of the outputs, weighted by the incoming gradients, after `of` of each product."""
        arguments = self._arguments([tensor.clone() for tensor in given])[:-1]
        _, leaves = flatten(run(self._both.model, arguments, SEED, FORWARD_IN_FLOAT64))
        products = [leaves[position].double() * incoming
                    for position, incoming in zip(self._gradients.outputs, self._incoming, strict=True)]
        return sum(float(of(product).sum()) for product in products)

    def _arguments(self, tensors: Sequence[torch.Tensor]) -> list[object]:
        return self._form.arguments(tensors, self._drawn.non_tensors)
