"""Computes a call again, exactly and on slightly changed inputs, to find out how large rounding errors may be.

Nothing is carried from one call to another: what an error is compared with follows from the call's own inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from inlinebench.compare.tolerance import Scale
from inlinebench.problem.forward import Output, Tensors
from inlinebench.problem.reference_copy import ReferenceCopy
from inlinebench.problem.workload import Workload

FEW_ELEMENTS = 8
"""Tensors with at most this many elements say too little about their typical size and rounding error."""
SAMPLES = 8
"""How often a call is computed again for these."""
CHANGE, LEAST_CHANGE_EPS = 2.0**-10, 4
"""The relative change of the inputs for this, at least this many times the precision of their dtypes."""


@dataclass(frozen=True)
class CallCheck:
    """Everything that is needed to check one call."""

    inputs: Sequence[torch.Tensor]
    """The tensor inputs of the reference's call, for the oracle."""
    non_tensors: tuple[Any, ...]
    """The non-tensor arguments of the call."""
    random_seed: int
    """The seed that was set before `forward`."""
    states_before: Tensors
    """The reference's buffers before its call."""
    output: Output
    """The reference's output."""
    states_after: Tensors
    """The reference's buffers after its call."""
    plain_outputs: tuple[str, ...]
    """The candidate's non-tensor outputs, as Python literals."""
    changed_inputs: Mapping[int, torch.Tensor]
    """The inputs that the reference changes in place, by index, with the values that it left there."""
    buffers: int = 0
    """The index of the set of buffers that holds the candidate's inputs and outputs."""
    few_are_large: bool = False
    """Whether a few values of the inputs are much larger than the others."""
    outputs_written: bool = True
    """Whether the outputs are this call's. False if a later call of a loop has reused their memory."""
    states_written: bool = True
    """Whether the shared state buffers hold this call's states. A later call of a batch overwrites them."""
    handed_in: Sequence[torch.Tensor] | None = None
    """Copies of the candidate's outputs, in case work that it left on the GPU changes the buffers. None: read these."""


Pick = Callable[[Output, Tensors], torch.Tensor]
"""Chooses a tensor from the output and the states of a call."""


class Recomputing:
    """Computes the calls of one workload again, in float64 and in the reference's own dtypes."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._oracle = workload.oracle()
        self._own: ReferenceCopy | None = None
        self.asked = False
        """Whether the oracle has given an output."""

    def exact(self, call: CallCheck, states: Tensors | None = None) -> tuple[Output, Tensors] | None:
        """Returns the oracle's output and states, or None without an oracle or without memory for it.

        `states` replaces the states before the call.
        """
        if self._oracle is None:
            return None
        output = self._oracle.run(
            call.states_before if states is None else states, call.inputs, call.non_tensors, call.random_seed)
        self.asked = self.asked or output is not None
        return None if output is None else (output, self._oracle.states())

    def typical_scale(self, call: CallCheck, pick: Pick) -> Scale | None:
        """Returns the scale of a tensor of few elements, or None without an oracle or memory for it.

        A single sum can happen to be near zero, or to be rounded correctly, which says nothing about its summands. So
        the call is computed again on inputs that are changed by about a thousandth. The reference's error is that of
        all samples. The size is at least the change of the result divided by the relative change of the inputs, which
        is `sqrt(sum(x**2))` for a sum over `x`.
        """
        if self._oracle is None:
            return None
        if self._own is None:
            self._own = self._workload.copy()
        generator, change = torch.Generator(self._workload.device).manual_seed(0), _relative_change(call.inputs)
        exact = self.exact(call)
        if exact is None:
            return None
        middle = _real(pick(*exact))
        errors, changes = [], []
        for _ in range(SAMPLES):
            inputs = [_changed(tensor, change, generator) for tensor in call.inputs]
            found = []
            for copy in (self._oracle, self._own):
                output = copy.run(call.states_before, inputs, call.non_tensors, call.random_seed)
                if output is None:
                    return None
                found.append(_real(pick(output, copy.states())))
            errors.append(found[1] - found[0])
            changes.append((found[0] - middle) / change)
        return Scale(max(_rms([middle]), _rms(changes)), _rms(errors))


def _changed(tensor: torch.Tensor, change: float, generator: torch.Generator) -> torch.Tensor:
    """Returns a floating-point input with each element changed by its own random factor; another one as it is."""
    if not tensor.is_floating_point():
        return tensor
    noise = torch.randn(tensor.shape, generator=generator, device=tensor.device, dtype=torch.float64)
    return (tensor.double() * (1 + change * noise)).to(tensor.dtype)


def _relative_change(tensors: Sequence[torch.Tensor]) -> float:
    """Returns a relative change of these inputs that all of their dtypes can represent."""
    steps = [torch.finfo(tensor.dtype).eps for tensor in tensors if tensor.is_floating_point()]
    return max(CHANGE, LEAST_CHANGE_EPS * max(steps, default=0.0))


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a flat copy in float64. Complex elements become two."""
    return (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).double().flatten().clone()


def _rms(tensors: Sequence[torch.Tensor]) -> float:
    """Returns the root mean square over the finite elements."""
    values = torch.cat(list(tensors))
    values = values[torch.isfinite(values)]
    return math.sqrt(float(values.square().mean())) if values.numel() else 0.0
