"""Checks the states that a call leaves: the buffers of a model, such as running means."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from inlinebench.compare.tolerance import Scale, measure_scale
from inlinebench.evaluation.compared import Compared, compared
from inlinebench.evaluation.recomputing import FEW_ELEMENTS, CallCheck, Recomputing
from inlinebench.problem.forward import Tensors
from inlinebench.problem.workload import Workload

STRICTNESS = 0.1
"""The share of the tolerance that applies to states. A biased variance differs by only one part in the batch size."""
OPTIONAL = "num_batches_tracked"
"""A buffer of PyTorch's norm layers that a solution need not update."""


class StateChecks:
    """Checks the states of one candidate after each call.

    A state carries the rounding errors of earlier calls: a running mean near zero may have been rounded when it was
    large. So a state that differs is computed again from the states that the solution itself had before the call.

    Args:
        workload: the problem at its shape, with the shared buffers.
        own_names: the solution's names of its buffers, by the reference's names.
        recomputing: computes calls again.
    """

    def __init__(self, workload: Workload, own_names: Mapping[str, str], recomputing: Recomputing) -> None:
        self._workload, self._own_names, self._recomputing = workload, own_names, recomputing
        self._before: Tensors | None = None
        self._since: list[CallCheck] = []

    def check(self, call: CallCheck, tolerance: float | None) -> Compared | str | None:
        """Returns how the states after a call are wrong: a comparison, or a sentence. None if they are not.

        `tolerance` replaces the default tolerance of each dtype, unless None.
        """
        if self._before is None:
            self._before = call.states_before
        self._since.append(call)
        if not call.states_written:
            return None
        for name, expected in call.states_after.items():
            if name not in self._workload.states or name.endswith(OPTIONAL):
                continue  # a buffer that the reference creates in forward, or need not be updated
            if name not in self._own_names:
                if not torch.equal(expected, call.states_before[name]):
                    return f"the reference updates its buffer {name}; the solution has no buffer that matches it"
                continue
            found = self._check(name, expected, call, tolerance)
            if not found.passed:
                return found
        self._before = {name: self._workload.state(name).clone() for name in self._own_names}
        self._since = []
        return None

    def _check(self, name: str, expected: torch.Tensor, call: CallCheck, tolerance: float | None) -> Compared:
        got = self._workload.state(name)

        def compare(reference: torch.Tensor, oracle: torch.Tensor | None, scale: Scale | None) -> Compared:
            return compared(
                f"buffer {name}", got, reference, oracle, tolerance=tolerance, scale=scale, strictness=STRICTNESS)

        first = compare(expected, None, None)
        exact = None if first.passed or not expected.is_floating_point() else self._recomputing.exact(call)
        if exact is None or name not in exact[1]:
            return first
        scale = measure_scale(exact[1][name], expected)
        if expected.numel() <= FEW_ELEMENTS:
            scale = self._recomputing.typical_scale(call, lambda _, states: states[name]) or scale
        second = compare(expected, None, scale)
        own = None if second.passed else self._from_own_states(name)
        return second if own is None else compare(own.to(expected.dtype), own, scale)

    def _from_own_states(self, name: str) -> torch.Tensor | None:
        """Returns a state in float64, computed from the states that the solution had when they were last checked."""
        states = self._before
        assert states is not None
        for call in self._since:
            found = self._recomputing.exact(call, {**call.states_before, **states})
            if found is None:
                return None
            states = {each: tensor.clone() for each, tensor in found[1].items()}
        return states[name]
