"""Runs of the reference and the oracle again for one call: on its values, and on perturbed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from inlinebench.evaluation.correctness.call_check import CallCheck
from inlinebench.problem.forward import Tensors, is_sticky
from inlinebench.problem.perturbation import Perturbation, Values
from inlinebench.problem.problem_file import raised
from inlinebench.problem.reference_copy import Effects, ReferenceCopy
from inlinebench.problem.workload import Workload


class Copies:
    """The models of further runs, each made when it is needed first."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload

    @cached_property
    def oracle(self) -> ReferenceCopy | None:
        """The reference in float64. None if it cannot be the oracle."""
        return self._workload.oracle()

    @cached_property
    def own(self) -> ReferenceCopy:
        """The reference in its own dtypes."""
        return self._workload.copy()

    @cached_property
    def weights(self) -> dict[str, Values]:
        """Its parameters, by name."""
        return {name: Values(tensor) for name, tensor in self.own.weights().items()}

    def compute(self, copy: ReferenceCopy, call: CallCheck, states: Tensors) -> Effects | None:
        """Returns the effects of a call on its own inputs, or None without device memory.

        Raises ProblemError if the reference raises, and MemoryError.
        """
        try:
            return copy.run(states, call.inputs, call.non_tensors, call.random_seed)
        except MemoryError:
            raise
        except Exception as error:
            raise raised(self._workload.problem, error) from error


class Runs:
    """Runs of the oracle and the reference for one call. Without an oracle, the reference takes its place."""

    def __init__(self, call: CallCheck, copies: Copies) -> None:
        self._call, self._copies = call, copies
        self._oracle, self._own, self._weights = copies.oracle, copies.own, copies.weights

    @cached_property
    def _inputs(self) -> list[Values]:
        return [Values(tensor) for tensor in self._call.inputs]

    @cached_property
    def _states(self) -> dict[str, Values]:
        return {name: Values(tensor) for name, tensor in self._call.states_before.items()}

    def have_room_for(self, outputs: Sequence[torch.Tensor]) -> bool:
        """Whether inputs in float64, and for each element the exact one, a perturbed one, a limit and sums fit."""
        results = 6 * sum(tensor.numel() for tensor in outputs)
        return (self._oracle or self._own).has_room([*self._call.inputs, *self._call.inputs], results)

    def exact(self) -> dict[str, torch.Tensor] | None:
        """Returns the results for the values as they are. Raises ProblemError if the reference raises."""
        return self._as_given(self._oracle or self._own)

    def own(self) -> dict[str, torch.Tensor] | None:
        """Returns what the reference computes in its own dtypes. Raises as `exact` does."""
        return self._as_given(self._own)

    def _as_given(self, copy: ReferenceCopy) -> dict[str, torch.Tensor] | None:
        found = self._copies.compute(copy, self._call, self._call.states_before)
        return None if found is None else tensors_of(found)

    def perturbed(self, by: Perturbation) -> dict[str, torch.Tensor] | None:
        """Returns the results for perturbed values, or None if the reference raises for them.

        Raises torch.OutOfMemoryError, since without these runs no element can be called wrong.
        """
        return self._run(self._oracle or self._own, self._changed(by))

    def pair(self, by: Perturbation) -> Pair | None:
        """Returns the results of the oracle and of the reference for the same perturbed values.

        The operators of the reference round at random: one rounding that happens to be exact tells nothing about
        another implementation's, and small changes of the values may all round alike.

        Returns None, or raises, as `perturbed` does.
        """
        changed = self._changed(by)
        exact = self._run(self._oracle or self._own, changed)
        own = exact if self._oracle is None else self._run(self._own, changed, noise=by.seed)
        return None if exact is None or own is None else (exact, own)

    def _changed(self, by: Perturbation) -> _Changed:
        """Returns perturbed values in float64."""
        changed = by.of([*self._inputs, *self._weights.values(), *self._states.values()])
        inputs, rest = changed[: len(self._inputs)], changed[len(self._inputs):]
        weights = dict(zip(self._weights, rest, strict=False))
        return _Changed(inputs, weights, dict(zip(self._states, rest[len(weights):], strict=True)))

    def _run(
        self, copy: ReferenceCopy, changed: _Changed, noise: int | None = None
    ) -> dict[str, torch.Tensor] | None:
        call, inputs = self._call, changed.inputs
        if copy is self._own:
            inputs = [new.to(old.dtype) for new, old in zip(inputs, call.inputs, strict=True)]
        try:
            found = copy.run(changed.states, inputs, call.non_tensors, call.random_seed, changed.weights, noise=noise)
        except Exception as error:  # the reference's own code, which may reject the perturbed values
            if is_sticky(error):
                raise
            return None
        if found is None:
            raise torch.OutOfMemoryError("no memory for a run of the reference on perturbed values")
        return tensors_of(found)


@dataclass(frozen=True)
class _Changed:
    """Perturbed values of a call. No run changes them."""

    inputs: list[torch.Tensor]
    """The inputs."""
    weights: Tensors
    """The parameters, by name."""
    states: Tensors
    """The states before the call, by name."""


Pair = tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]
"""The results of the oracle and of the reference for the same values, by name."""


def tensors_of(effects: Effects) -> dict[str, torch.Tensor]:
    """Returns all tensors that a call computes: "output N", "input N" and "buffer NAME".

    Buffers, and outputs that share memory with one, are copied, since the next run changes them.
    """
    buffers = {tensor.untyped_storage().data_ptr() for tensor in effects.states.values()}

    def kept(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone() if tensor.untyped_storage().data_ptr() in buffers else tensor

    return {**{f"output {index}": kept(tensor) for index, tensor in enumerate(effects.output.tensors)},
            **{f"input {index}": tensor for index, tensor in enumerate(effects.inputs)},
            **{f"buffer {name}": tensor.clone() for name, tensor in effects.states.items()}}
