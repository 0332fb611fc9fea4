"""Sends requests to one candidate: load a solution, map the judge's buffers, make calls."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from inlinebench.builds.request import RuntimeLibraries
from inlinebench.catalog import FULL
from inlinebench.catalog.traces.layout import is_definition
from inlinebench.evaluation.draws import Drawn
from inlinebench.evaluation.failures import raise_failure
from inlinebench.evaluation.memory import CandidateMemory
from inlinebench.messages import CONSTRUCTION_SEED, Evaluate
from inlinebench.problem import problem_file
from inlinebench.problem.problem_file import ProblemError
from inlinebench.problem.workload import Workload
from inlinebench.process.candidate_process import CandidateProcess
from inlinebench.process.packing import pack
from inlinebench.process.replies import (
    Called,
    ProvenanceReply,
    read_called,
    read_holding,
    read_launches,
    read_provenance,
    read_ready,
)
from inlinebench.timing.blocking_kernel import BlockingLimit
from inlinebench.timing.trace import Traced
from inlinebench.wire.arena import BufferSet


@dataclass(frozen=True)
class Loaded:
    """The outcome of loading a solution."""

    own_names: Mapping[str, str]
    """The solution's names of its buffers, by the names of the reference's buffers that they match."""
    weights: str
    """How the reference's weights were matched, in words."""


class Requests:
    """Sends requests to one candidate and reads its replies.

    All methods raise Failed if the candidate reports a failure, and the exceptions of `CandidateProcess.ask`.
    `memory` measures the candidate's memory, and `more_sets` are sets of buffers whose numbers follow those of the
    workload.
    """

    def __init__(
        self, workload: Workload, job: Evaluate, candidate: CandidateProcess, *, memory: CandidateMemory,
        more_sets: Sequence[BufferSet] = (),
    ) -> None:
        self._workload, self._job, self._candidate = workload, job, candidate
        self.memory = memory
        """Measures the candidate's memory."""
        self.load_ms: float | None = None
        """The host's time in ms to load the solution, without builds. None before."""
        self.first_call_ms: float | None = None
        """The host's time in ms of the first call, without builds. None before."""
        self._sets = [*workload.sets, *more_sets]
        self._blocking = BlockingLimit()

    @property
    def synchronises(self) -> bool:
        """Whether the solution waits for the device, so that its calls cannot run behind the blocking kernel."""
        return self._blocking.synchronises

    @property
    def libraries(self) -> list[Path]:
        """The paths of the libraries that were built for the solution."""
        return [outcome.library for outcome in self._candidate.builds if outcome.library is not None]

    def load(self, transfer: bool, runtime_libraries: RuntimeLibraries) -> Loaded:
        """Loads the solution and maps its buffers. With `transfer` it gets the reference's weights.

        The candidate is stopped afterwards until the next call, so that it cannot watch the judge write inputs. Raises
        ProblemError if the constructor's arguments cannot be pickled.
        """
        workload = self._workload
        path, is_reference = self._job.file.resolve(), self._job.solution is None
        init = self._init_arguments()
        self._candidate.resume()  # after calls at another workload
        budget = self._candidate.budget
        reply = self._candidate.ask(
            "load", solution=str(path), readable=list(map(str, self._job.given)), transfer=transfer,
            text=self._replaced_text() if is_reference else None, class_name="Model" if is_reference else "ModelNew",
            runtime_libraries=runtime_libraries.to_json(), init=init, seed=CONSTRUCTION_SEED,
            weights=str(workload.weights), precision=workload.problem.precision, model=workload.model_key(init),
        )
        raise_failure(reply, workload.device)
        ready = read_ready(reply)
        self.load_ms = self._waited_ms(budget)
        own_names = {theirs: own for own, theirs in ready.buffers.items() if theirs in workload.state_specs}
        self._map(own_names)
        self._candidate.stop()
        return Loaded(own_names, ready.weights)

    def call(
        self, call: Drawn, *, blocked: bool, trace: Traced, block_order: int, races: bool, late: bool,
        memory: bool = False,
    ) -> Called:
        """Makes one call on its set of buffers. The candidate keeps running afterwards.

        Args:
            call: the call, whose inputs are handed over.
            blocked: whether to queue the call behind the blocking kernel.
            trace: what to trace the call for.
            block_order: the seed that shuffles the order of thread blocks on the CPU, or 0 for the usual order.
            races: whether to look for data races, on the CPU.
            late: whether the gradients of the outputs are handed over between forward and backward.
            memory: whether to measure its memory. Not with `blocked`, because it allocates.
        """
        limit = self._blocking.limit_ms if blocked else 0.0
        self._candidate.resume()
        budget = self._candidate.budget
        reply = self._candidate.ask(
            "call", partial(self._hand_over_gradients, call) if late else None, **call.facts(), blocking_ms=limit,
            block_order=block_order, races=races, trace=trace, late=late, memory=memory,
        )
        raise_failure(reply, self._workload.device)
        if self.first_call_ms is None:
            self.first_call_ms = self._waited_ms(budget)
        called = read_called(reply, two_passes=self._workload.gradients_given > 0)
        if blocked and not called.sample.blocked:
            self._blocking.ran_out()
        return called

    def _waited_ms(self, budget: float) -> float:
        """Returns the time that the judge has waited for the candidate since its budget was `budget` seconds, in ms."""
        return (budget - self._candidate.budget) * 1e3

    def _hand_over_gradients(self, call: Drawn, message: Mapping[str, Any]) -> None:
        read_holding(message)
        self._workload.hand_over_gradients(call.buffer_set)
        self._candidate.proceed()

    def launches(self) -> int:
        """Returns how many kernels the candidate has run on the CPU."""
        self._candidate.resume()
        reply = self._candidate.ask("report")
        raise_failure(reply, self._workload.device)
        return read_launches(reply)

    def provenance(self) -> ProvenanceReply:
        """Returns where the candidate's kernels come from. The candidate is stopped afterwards."""
        self._candidate.resume()
        reply = self._candidate.ask("provenance")
        self._candidate.stop()
        raise_failure(reply, self._workload.device)
        return read_provenance(reply)

    def _map(self, own_names: Mapping[str, str]) -> None:
        workload = self._workload
        probed = workload.probed
        reply = self._candidate.ask(
            "map", sets=[buffers.to_json() for buffers in self._sets], may_alias=probed.may_alias,
            states={own: workload.state_specs[theirs].to_json() for theirs, own in own_names.items()},
            gradients=pack(probed.gradients),
            skeletons=pack((probed.input_form.skeleton, probed.input_form.is_tensor,
                            probed.output_skeleton, probed.output_is_tensor)),
        )
        raise_failure(reply, workload.device)

    def _init_arguments(self) -> str:
        try:
            return pack(problem_file.init_inputs(self._workload.module))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            reason = f"{self._job.problem.path}: get_init_inputs() returns a value that cannot be pickled: {error}"
            raise ProblemError(reason) from error

    def _replaced_text(self) -> str | None:
        """Returns the problem's text with its constants replaced. None if the file is evaluated as it is."""
        problem = self._workload.problem
        if problem.shape == FULL and not problem.constants and not is_definition(problem.path):
            return None
        return problem_file.source_at(problem.path, problem.shape, problem.constants)
