"""Decides whether a reference in float64 can be the oracle."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial

import torch

from inlinebench.devices.registry import of
from inlinebench.messages import ProblemAt
from inlinebench.problem import problem_file
from inlinebench.problem.forward import InputForm, Output, is_sticky, run, to_double
from inlinebench.problem.inputs import Draw
from inlinebench.problem.probe import FORWARD_SEED

SAME_WORK, SAME_ROUNDED_WORK = 1e-6, 1e-2
"""How far two runs of the same work may differ through the order of additions alone, as a share of the largest value:
in float64, and in the reference's own dtype."""
SLOW_S = 2.0
"""A call in float64 that takes longer than this is not repeated. The reference is repeated in its own dtype instead."""
SUSPICIOUS_DIFFERENCE = 0.05
"""If the oracle differs from the reference by more than this share of the output's size, rounding must explain it."""
EXPLAINED = 100.0
"""Rounding explains a difference up to this many times the effect of the inputs' last bit. The factor accounts for
rounding within the reference."""
NOTHING = 1e-3
"""An output in float64 below this share of the reference's output is zero in theory, so a difference is rounding."""


def runs_in_float64(
    problem: ProblemAt, form: InputForm, drawn: Draw, output: Output, device: torch.device
) -> bool:
    """Whether the reference in float64 can be the oracle.

    It must run, give outputs of the same shapes, keep nothing but buffers from call to call, and differ from the
    reference in its own dtype by no more than rounding explains.
    """
    def call(model: torch.nn.Module, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        result = Output.of(run(model, form.arguments(tensors, drawn.non_tensors), FORWARD_SEED))
        buffers = {buffer.untyped_storage().data_ptr() for buffer in model.buffers()}
        of(device).synchronize()
        return [each.clone() if each.untyped_storage().data_ptr() in buffers else each for each in result.tensors]

    def call_twice(model: torch.nn.Module, tensors: Sequence[torch.Tensor], share: float) -> list[torch.Tensor] | None:
        """Returns the outputs, or None if a second call from the same buffers gives others: then the model keeps state
        outside of its buffers."""
        initial = {name: buffer.clone() for name, buffer in model.named_buffers()}
        begin, first = time.monotonic(), call(model, tensors)
        if share == SAME_WORK and time.monotonic() - begin > SLOW_S:  # float64 is very slow on some GPUs
            own = problem_file.construct(module).to(device)
            return None if call_twice(own, drawn.tensors, SAME_ROUNDED_WORK) is None else first
        _restore(model, initial)
        return first if all(map(partial(_close, share=share), call(model, tensors), first)) else None

    try:
        module = problem_file.load_at(problem)
        wide = call_twice(problem_file.construct(module).double().to(device), to_double(drawn.tensors), SAME_WORK)
        if wide is None or [each.shape for each in wide] != [each.shape for each in output.tensors]:
            return False  # the oracle does not run in every call, so it would miss state outside of buffers
        far = [index for index, exact in enumerate(wide) if _far(output.tensors[index], exact)]
        perturbed = call(problem_file.construct(module).to(device), list(map(_perturb, drawn.tensors))) if far else []
        return all(_is_rounding(output.tensors[index], wide[index], perturbed[index]) for index in far)
    except (torch.OutOfMemoryError, MemoryError):
        return False
    except Exception as error:
        if is_sticky(error):
            raise
        return False


def _restore(model: torch.nn.Module, initial: Mapping[str, torch.Tensor]) -> None:
    """Restores the initial values of a model's buffers."""
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name in initial:
                buffer.copy_(initial[name])


def _close(one: torch.Tensor, other: torch.Tensor, share: float) -> bool:
    """Whether two results of the same work differ by at most a share of the largest value."""
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    size = float(torch.nan_to_num(other.abs(), posinf=0.0).amax()) if other.numel() else 0.0
    return torch.allclose(one, other, rtol=share, atol=share * size, equal_nan=True)


def _far(own: torch.Tensor, exact: torch.Tensor) -> bool:
    """Whether a floating-point output differs from the one in float64 so much that rounding must explain it.

    False if the output in float64 is almost zero, because then the reference's output is rounding error.
    """
    if not own.is_floating_point():
        return False
    size, own_size = (_rms(each.double()) for each in (exact, own))
    return size > NOTHING * own_size and _rms_difference(own, exact) > SUSPICIOUS_DIFFERENCE * size


def _rms_difference(one: torch.Tensor, other: torch.Tensor) -> float:
    return _rms(one.double() - other.double())


def _rms(values: torch.Tensor) -> float:
    """Returns the root mean square of the finite elements, or 0 if there are none."""
    finite = values[torch.isfinite(values)]
    return float(torch.linalg.vector_norm(finite)) / math.sqrt(finite.numel()) if finite.numel() else 0.0


def _perturb(tensor: torch.Tensor) -> torch.Tensor:
    """Returns an input with every floating-point element changed by about its last bit, up or down at random."""
    if not tensor.is_floating_point():
        return tensor
    generator = torch.Generator(tensor.device).manual_seed(FORWARD_SEED)
    signs = torch.randint(0, 2, tensor.shape, generator=generator, device=tensor.device) * 2 - 1
    return (tensor.double() * (1 + signs * torch.finfo(tensor.dtype).eps)).to(tensor.dtype)


def _is_rounding(own: torch.Tensor, exact: torch.Tensor, perturbed: torch.Tensor) -> bool:
    """Whether rounding explains the difference between an output and the one in float64.

    `perturbed` is the output for inputs that are off by their last bit. If rounding does not explain the difference,
    the reference is a different function in float64, such as `log(x + finfo(x.dtype).eps)`.
    """
    return _rms_difference(own, exact) <= EXPLAINED * _rms_difference(perturbed, own)
