"""A copy of the reference that computes a call again from given states, without any effect on the reference itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from inlinebench.devices.registry import of
from inlinebench.problem import own_code
from inlinebench.problem.forward import InputForm, Output, Tensors, run, to_double
from inlinebench.problem.rounding_noise import RoundingNoise
from inlinebench.process.steps import FORWARD_IN_FLOAT64


@dataclass(frozen=True)
class Effects:
    """Everything that a call computes."""

    output: Output
    """The output of `forward`."""
    inputs: tuple[torch.Tensor, ...]
    """The tensor inputs after the call. It may have changed them."""
    states: Tensors
    """The model's buffers after the call, by name. The next call changes them in place."""


class ReferenceCopy:
    """Computes calls again with a reference of its own. In float64 (`double`), it is the oracle.

    `make` returns a new reference on the CPU, in its initial state.
    """

    def __init__(
        self, make: Callable[[], torch.nn.Module], form: InputForm, device: torch.device, *, double: bool
    ) -> None:
        self._make, self._double, self._device, self._form = make, double, device, form
        self._step = FORWARD_IN_FLOAT64 if double else own_code.FORWARD
        self._model = self._new()

    def has_room(self, tensors: Sequence[torch.Tensor], results: int = 0) -> bool:
        """Whether a call with these inputs fits in memory: them, in float64, twice, and `results` more elements."""
        return 8 * (2 * sum(tensor.numel() for tensor in tensors) + results) <= of(self._device).allocatable_bytes()

    def run(
        self, states: Tensors, tensors: Sequence[torch.Tensor], non_tensors: Sequence[Any], seed: int,
        weights: Mapping[str, torch.Tensor] | None = None, *, step: str | None = None, noise: int | None = None,
    ) -> Effects | None:
        """Returns the effects of a call, or None if it does not fit in memory.

        Args:
            states: the states before the call, in any dtype.
            tensors: the tensor inputs, in any dtype.
            non_tensors: the other arguments.
            seed: the seed that is set before `forward`.
            weights: values that replace parameters for this call, by name.
            step: the name of the step, if it is not that of every call.
            noise: the seed of the operators' rounding, if it is not PyTorch's own.
        """
        def call() -> Effects:
            given = [_double(tensor) if self._double else tensor.clone() for tensor in tensors]
            arguments = self._form.arguments(given, non_tensors)
            with nullcontext() if noise is None else RoundingNoise(noise):
                output = Output.of(run(self._model, arguments, seed, step or self._step))
            return Effects(output, tuple(given), self._buffers())

        try:
            if not self._buffers().keys() <= states.keys():
                self._model = self._new()  # `forward` makes a buffer in its first call, which this call precedes
            if not states.keys() <= self._buffers().keys():
                call()  # makes the buffers of the first call
            with torch.no_grad(), self._with(weights or {}):
                for name, buffer in self._model.named_buffers():
                    if name in states:
                        buffer.copy_(states[name])
                return call()
        except torch.OutOfMemoryError:
            return None

    def weights(self) -> Tensors:
        """Returns the parameters, by name, in the dtypes that they have outside of the oracle."""
        return {name: parameter.detach() for name, parameter in self._make().to(self._device).named_parameters()}

    @contextmanager
    def _with(self, weights: Mapping[str, torch.Tensor]) -> Iterator[None]:
        """Replaces the values of parameters in place, since modules may hold further references to them."""
        parameters = dict(self._model.named_parameters()) if weights else {}
        kept = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        for name, value in weights.items():
            parameters[name].copy_(value)
        try:
            yield
        finally:
            for name, value in kept.items():
                parameters[name].copy_(value)

    def _buffers(self) -> Tensors:
        return dict(self._model.named_buffers())

    def _new(self) -> torch.nn.Module:
        model = self._make()
        return (model.double() if self._double else model).to(self._device)


def _double(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a copy in float64 or complex128, or in its own dtype if it has integers."""
    return to_double([tensor.clone() if tensor.dtype in (torch.float64, torch.complex128) else tensor])[0]
