"""Checks the states that a call leaves: the buffers of a model, such as running means."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from inlinebench.evaluation.correctness.call_check import CallCheck
from inlinebench.evaluation.correctness.compared import Compared, compared
from inlinebench.evaluation.correctness.sensitivity import Sensitivity
from inlinebench.problem.forward import Tensors
from inlinebench.problem.workload import Workload

STRICTNESS = 0.1
"""The share of the tolerance that applies to states. A biased variance differs by only one part in the batch size."""
OPTIONAL = "num_batches_tracked"
"""A buffer of PyTorch's norm layers that a solution need not update."""


class StateChecks:
    """The states of one candidate after each call.

    A state carries the rounding errors of earlier calls: a running mean near zero may have been rounded when it was
    large. So a state that differs is computed again from the states that the solution itself had before the call.

    Args:
        workload: the problem at its shape, with the shared buffers.
        own_names: the solution's names of its buffers, by the reference's names.
        sensitivity: computes calls again.
    """

    def __init__(self, workload: Workload, own_names: Mapping[str, str], sensitivity: Sensitivity) -> None:
        self._workload, self._own_names, self._sensitivity = workload, own_names, sensitivity
        self._before: Tensors | None = None
        self._since: list[CallCheck] = []

    def add(self, call: CallCheck) -> None:
        """Adds a call, before its states are compared."""
        if self._before is None:
            self._before = call.states_before
        self._since.append(call)

    def accept(self, call: CallCheck) -> None:
        """Takes the states after a call as those that the next call begins with."""
        self._before = {name: call.received.states[name] for name in self._own_names}
        self._since = []

    def missing(self, call: CallCheck) -> str:
        """Returns which updated buffer of the reference the solution lacks, or ""."""
        for name, expected in self._compared(call).items():
            if name not in self._own_names and not torch.equal(expected, call.states_before[name]):
                return f"the reference updates its buffer {name}; the solution has no buffer that matches it"
        return ""

    def expected(self, call: CallCheck) -> Tensors:
        """Returns the states after a call that are compared with the solution's, by name."""
        return {name: tensor for name, tensor in self._compared(call).items() if name in self._own_names}

    def from_own_states(self, name: str, found: Compared) -> Compared:
        """Compares a state that failed with what the oracle computes from the solution's own earlier states."""
        states = self._before
        assert states is not None
        for call in self._since:
            effects = self._sensitivity.exact(call, {**call.states_before, **states})
            if effects is None:
                return found
            states = {each: tensor.clone() for each, tensor in effects.states.items()}
        exact = states[name]
        limit = None if found.oracle is None else found.limit
        return compared(found.what, found.got, exact.to(found.expected.dtype), exact,
                        tolerance=found.limit.tolerance, limit=limit)

    def _compared(self, call: CallCheck) -> Tensors:
        """Returns the reference's states, but for those that it creates in `forward` and those that are optional."""
        if not call.states_written:
            return {}
        return {name: tensor for name, tensor in call.states_after.items()
                if name in self._workload.states and not name.endswith(OPTIONAL)}
