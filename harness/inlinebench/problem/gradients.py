"""Finds out what a call with a backward differentiates, by one forward of the reference."""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import replace

import torch

from inlinebench.messages import ProblemAt
from inlinebench.problem import own_code, problem_file
from inlinebench.problem.finite_differences import defines_gradients
from inlinebench.problem.forward import InputForm
from inlinebench.problem.inputs import draw
from inlinebench.problem.problem_file import ProblemError, describe
from inlinebench.wire.arena import TensorMeta
from inlinebench.wire.arithmetic import seed_all
from inlinebench.wire.backward import GradientForm, can_have_gradient, record
from inlinebench.wire.tree import flatten

SEED = 5
"""The seed of the inputs, and of the forward."""


class NothingToDifferentiate(ProblemError):
    """No output of the reference depends on an input or a parameter in a way that autograd records."""


def with_gradients(problem: ProblemAt, device: torch.device) -> ProblemAt:
    """Returns the problem with what a call differentiates, if its calls have a backward.

    Raises ProblemError if the reference fails, or if there is nothing to differentiate.
    """
    if not problem.backward:
        return problem
    module = problem_file.load_at(problem)
    return replace(problem, gradients=_form_of(module, problem_file.construct(module).to(device), device))


def _form_of(module: types.ModuleType, model: torch.nn.Module, device: torch.device) -> GradientForm:
    drawn = draw(module, SEED, device)
    arguments = InputForm(drawn.skeleton, drawn.is_tensor).arguments(
        [tensor.clone() for tensor in drawn.tensors], drawn.non_tensors)
    seed_all(SEED)
    try:
        with own_code.step(own_code.FORWARD):
            recorded = record(model, arguments)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise ProblemError(f"{module.__file__}: the reference's forward on inputs that require gradients raises "
                           f"{describe(error)}") from error
    skeleton, leaves = flatten(recorded.value)
    outputs = {index: leaf for index, leaf in enumerate(leaves)
               if isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.numel()}
    parameters = [name for name, parameter in model.named_parameters()
                  if parameter.requires_grad and can_have_gradient(parameter)]
    form = GradientForm(skeleton, tuple(outputs), tuple(TensorMeta.of(leaf.detach()) for leaf in outputs.values()),
                        recorded.inputs, tuple(parameters))
    sources = [*recorded.sources, *map(model.get_parameter, parameters)]
    unused = _unused(form, list(outputs.values()), sources) if outputs and sources else ()
    if not outputs or len(unused) == len(sources):
        raise NothingToDifferentiate(f"{module.__file__}: there is no backward: no output depends on a floating-point "
                                     "input or parameter by operators with gradients")
    return replace(form, unused=unused, own=defines_gradients(list(outputs.values())))


def _unused(
    form: GradientForm, outputs: Sequence[torch.Tensor], sources: Sequence[torch.Tensor]
) -> tuple[tuple[str, TensorMeta], ...]:
    """Returns the gradients of which the reference has none in this call. None of them if its backward raises."""
    try:
        with own_code.step(own_code.FORWARD):
            gradients = torch.autograd.grad(
                outputs, sources, list(map(torch.zeros_like, outputs)), allow_unused=True)
    except torch.OutOfMemoryError:
        raise
    except Exception:  # noqa: BLE001
        # The first call of the reference, after this, raises the same and reports it.
        return ()
    return tuple((name, TensorMeta.of(source.detach()))
                 for name, source, gradient in zip(form.names, sources, gradients, strict=True) if gradient is None)
