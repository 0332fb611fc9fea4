"""A copy of the reference that computes a call again from given states, without any effect on the reference itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from inlinebench.problem import own_code
from inlinebench.problem.forward import InputForm, Output, Tensors, run, to_double
from inlinebench.problem.memory import free_bytes
from inlinebench.process.steps import FORWARD_IN_FLOAT64


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

    def run(
        self, states: Tensors, tensors: Sequence[torch.Tensor], non_tensors: Sequence[Any], seed: int
    ) -> Output | None:
        """Returns the output, or None if the call does not fit in memory. Afterwards `states` returns the new states.

        Args:
            states: the states before the call, in any dtype.
            tensors: the tensor inputs.
            non_tensors: the other arguments.
            seed: the seed that is set before `forward`.
        """
        needed = 2 * sum(tensor.numel() * 8 for tensor in tensors)
        if needed > free_bytes(self._device):
            return None

        def call() -> Output:
            given = to_double(tensors) if self._double else [tensor.clone() for tensor in tensors]
            return Output.of(run(self._model, self._form.arguments(given, non_tensors), seed, self._step))

        try:
            if not self.states().keys() <= states.keys():
                self._model = self._new()  # `forward` makes a buffer in its first call, which this call precedes
            if not states.keys() <= self.states().keys():
                call()  # makes the buffers of the first call
            with torch.no_grad():
                for name, buffer in self._model.named_buffers():
                    if name in states:
                        buffer.copy_(states[name])
            return call()
        except torch.OutOfMemoryError:
            return None

    def states(self) -> Tensors:
        """Returns the copy's buffers after the last run, by name."""
        return dict(self._model.named_buffers())

    def _new(self) -> torch.nn.Module:
        model = self._make()
        return (model.double() if self._double else model).to(self._device)
