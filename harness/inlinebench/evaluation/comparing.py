"""Compares what a candidate made of a call with the reference's run on the same inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from inlinebench.evaluation.correctness.call_check import CallCheck
from inlinebench.evaluation.correctness.checks import Checker
from inlinebench.evaluation.draws import Drawn
from inlinebench.evaluation.reference import Reference
from inlinebench.problem.forward import Tensors
from inlinebench.problem.workload import Received, Workload
from inlinebench.results.result import Mismatch
from inlinebench.timing.call import Sample


@dataclass(frozen=True)
class Answer:
    """What a candidate made of a call, in the judge's private memory."""

    received: Received
    """The tensors that it wrote."""
    plain: tuple[str, ...]
    """Its non-tensor outputs, as Python literals."""
    outputs_written: bool = True
    """Whether the outputs are this call's. False if a later call of a loop has reused their memory."""
    states_written: bool = True
    """Whether the states are this call's. A later call of a loop overwrites them."""


class CompareCall(Protocol):
    """Compares a call, which `what` names, and raises Failed if it is wrong.

    With `thorough` all elements are judged by the rule.
    """

    def __call__(self, call: Drawn, answer: Answer, what: str, *, thorough: bool = False) -> None: ...


class Differs(Exception):
    """The values of a call differ. The message says how; `mismatch` says where, if it could be located."""

    def __init__(self, message: str, mismatch: Mismatch | None) -> None:
        super().__init__(message)
        self.mismatch = mismatch


class Comparing:
    """Runs the reference and compares, for the calls of one candidate.

    Args:
        workload: the problem at its shape, with the shared buffers.
        reference: the reference of this candidate's calls.
        checker: compares the values.
    """

    def __init__(self, workload: Workload, reference: Reference, checker: Checker) -> None:
        self._workload, self._reference, self._checker = workload, reference, checker

    def states(self) -> Tensors:
        """Returns copies of the reference's buffers, by name."""
        return self._reference.states()

    def inputs_changed(self, call: Drawn) -> bool:
        """Whether the candidate changed shared inputs that the reference does not change."""
        return not self._workload.inputs_equal(call.buffer_set, call.tensors)

    def compare(
        self, call: Drawn, answer: Answer, what: str, *, blocked: bool = False, thorough: bool = False
    ) -> tuple[Sample, list[torch.Tensor]]:
        """Runs the reference on the inputs of a call and compares.

        Returns the reference's time, and its inputs after the call. `what` names the call in the record. With `blocked`
        the reference is queued behind the blocking kernel; with `thorough` all elements are judged by the rule. Raises
        Differs and ProblemError.
        """
        tensors, mutated = self._workload.for_reference(call.tensors), self._workload.probed.mutated
        states_before = self._reference.states()
        output, sample = self._reference.run(tensors, call.non_tensors, call.random_seed, blocked=blocked)
        failure = self._checker.check(CallCheck(
            inputs=call.tensors, non_tensors=call.non_tensors, random_seed=call.random_seed,
            states_before=states_before, output=output, states_after=self._reference.states(),
            plain_outputs=answer.plain, changed_inputs={index: tensors[index] for index in mutated},
            received=answer.received, thorough=thorough,
            outputs_written=answer.outputs_written, states_written=answer.states_written,
        ))
        if failure:
            raise Differs(failure, self._checker.mismatch(what, call.variant))
        return sample, tensors
