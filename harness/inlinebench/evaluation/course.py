"""The course of one attempt at one workload: load the solution, make its calls, time them by the judge's clock, check
its integrity."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import torch

from inlinebench.devices.cuda.state import NoGpuState
from inlinebench.devices.registry import of
from inlinebench.evaluation.attempt import Attempt, Task, Tools
from inlinebench.evaluation.calls import Calls
from inlinebench.evaluation.candidates import open_arena
from inlinebench.evaluation.comparing import Comparing
from inlinebench.evaluation.correctness.checks import Checker
from inlinebench.evaluation.draws import Draws
from inlinebench.evaluation.failures import Failed
from inlinebench.evaluation.integrity.context import Context
from inlinebench.evaluation.integrity.held_calls import HeldCalls
from inlinebench.evaluation.integrity.own_kernels import CHECKS
from inlinebench.evaluation.loops import time_loops
from inlinebench.evaluation.memory import CandidateMemory, measured_call
from inlinebench.evaluation.reference import Reference
from inlinebench.evaluation.repeats import Repeats
from inlinebench.evaluation.requests import Requests
from inlinebench.evaluation.sampling import sample
from inlinebench.evaluation.timings import Timings
from inlinebench.problem.secret_random import SecretRandom
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload
from inlinebench.process.candidate_process import CandidateProcess
from inlinebench.results.result import Check, Verdict
from inlinebench.results.times import Timing
from inlinebench.timing.overhead import overhead
from inlinebench.timing.roofline import roofline

BELOW_ROOFLINE = 0.95
"""Pure reads are a few percent faster than the copies that bandwidth is measured with."""
CALLS_BACK = 2
"""Calls when the judge comes back to a workload. What the first one finds in caches is of other sizes; the second one
meets what the first one has cached."""
FEWEST_ALONE, MOST_ALONE, ALONE_S = 3, 15, 0.5
"""Reference calls after the candidate has ended: the fewest, the most, and the seconds after which the fewest suffice.
"""


class Course:
    """The course of one attempt at a solution, at one workload. A candidate may have several, one for each workload.

    `number` distinguishes the attempts, which get different inputs, because an earlier one may have left results
    behind. A `brief` one makes only a few calls, without times. The limits of sampling are shared by `workloads`.
    `repeats` are the calls of `repeat`.
    """

    def __init__(
        self, task: Task, candidate: CandidateProcess, *, number: int, brief: bool = False, workloads: int = 1,
        repeats: Repeats | None = None,
    ) -> None:
        workload, job, tools = task.workload, task.job, task.tools
        self._task, self._workload, self._job, self._tools = task, workload, job, tools
        self._candidate, self.attempt = candidate, Attempt()
        """What the attempt has yielded so far."""
        self._brief, self._repeats = brief, repeats
        self._sampling = tools.settings.sampling.shared_by(workloads)
        name = f"{job.problem_name}/{job.solution_name}/{job.shape_name}/{number}{'/brief' * brief}"
        self._draws = Draws(workload, tools.settings.seed, name)
        workload.clear()
        self._reference = Reference(workload, tools.clock)
        call = measured_call(tools.settings.warmup, SecretRandom(tools.settings.seed, f"{name}/memory"))
        # What a process keeps of other workloads would count as this one's.
        self._memory = CandidateMemory(of(workload.device), call if self._timed and workloads == 1 else None)
        self._requests = Requests(workload, job, candidate, memory=self._memory,
                                  more_sets=() if repeats is None else repeats.more_sets)
        self._timings = _timings(workload, tools, candidate)
        self._held: HeldCalls | None = None
        self._calls: Calls | None = None
        self._checker: Checker | None = None
        self._summarize: Callable[[], Check | None] = lambda: None

    @property
    def _timed(self) -> bool:
        """Whether times are taken that say how fast the solution is."""
        return (self._tools.settings.timing and not self._brief
                and of(self._workload.device).kind.times_are_comparable)

    @property
    def name(self) -> str:
        """The name of the workload in results."""
        return self._job.shape_name

    def open(self) -> None:
        """Prepares the judge's clock, and shares the memory. No solution is loaded yet. Raises as `run` does."""
        tools = self._tools
        self._candidate.workload = self._workload.name
        if tools.settings.holds_calls and not self._brief and of(self._workload.device).holds_calls:
            tools.progress("preparing the judge's clock")
            self._held = HeldCalls(self._workload, tools, self._candidate, self._draws)
        open_arena(self._candidate, self._workload.arena)

    def run(self, transfer: bool) -> None:
        """Loads the solution, makes all calls, runs the integrity checks, and fills in the attempt.

        With `transfer` the solution gets the reference's weights. Raises Failed, ProblemError, and the exceptions of
        `CandidateProcess.ask`.
        """
        workload, tools, settings = self._workload, self._tools, self._tools.settings
        self._candidate.workload, self._candidate.budget = workload.name, settings.timeout
        if settings.timing:
            tools.candidates.wait_for_starts()  # which take time and memory
        tools.progress("loading")
        with self._memory.growing():
            loaded = self._requests.load(transfer, tools.runtime_libraries)
        self._checker = checker = Checker(workload, loaded.own_names, self._task.tolerance)
        self._calls = calls = Calls(
            workload, tools, self._candidate, requests=self._requests, draws=self._draws,
            comparing=Comparing(workload, self._reference, checker), timings=self._timings)
        # What matters of a further attempt, with the solution's own weights, is whether it passes.
        calls.remarks, calls.explains = transfer, calls.explains and transfer and self._job.explains
        self._summarize = lambda: checker.summary(loaded.weights, sorted(calls.notes))
        if self._brief:
            self.come_back()
            return
        try:
            self._make(calls, timed=self._timed, states=tuple(loaded.own_names))
        finally:
            self.attempt.check = self._summarize()
        if settings.timing:
            self.attempt.timing = self.timing()
        if self._timed:
            self.attempt.memory = self._memory.record(self._reference)

    def come_back(self) -> None:
        """Makes further calls, after those at other workloads. They are compared, and not timed. Raises as `run` does.
        """
        assert self._calls is not None  # it has run
        self._candidate.workload, self._candidate.budget = self._workload.name, self._tools.settings.timeout
        self._tools.progress("coming back to a workload")
        try:
            for _ in range(CALLS_BACK):
                self._calls.make_again()
        finally:
            self.attempt.check = self._summarize()
        self._candidate.verify_stopped()

    def repeat(self) -> None:
        """Makes calls on the same inputs after those of `run`. Raises as `run` does."""
        assert self._calls is not None and self._repeats is not None  # it has run, for them
        self._candidate.workload, self._candidate.budget = self._workload.name, self._tools.settings.timeout
        self._tools.progress("repeating calls on the same inputs")
        self._calls.repeat(self._repeats)
        self._candidate.verify_stopped()

    def repeat_rows(self) -> None:
        """Makes calls on other rows after those of `repeat`. Raises as `run` does, which says nothing of the solution:
        these rows may be no inputs of the problem."""
        assert self._calls is not None and self._repeats is not None  # it has run, for them
        self._candidate.workload = self._workload.name
        self._calls.repeat_rows(self._repeats)

    def release(self) -> None:
        """Frees what calls at this workload make again, so that the workloads of a set do not add up in memory."""
        self._workload.release()
        if self._checker is not None:
            self._checker.release()

    def _make(self, calls: Calls, *, timed: bool, states: tuple[str, ...]) -> None:
        """Makes all calls, and runs the integrity checks. Raises as `run` does."""
        workload, tools, settings = self._workload, self._tools, self._tools.settings
        if timed:
            self._timings.kinds = tuple(map(str, workload.source.kinds))
        sample(calls, self._draws, self._timings, tools, self._sampling if timed else self._sampling.fixed)
        if tools.baselines is not None:
            calls.notes.update(tools.baselines.notes.values())
        if timed:
            time_loops(workload, self._candidate, tools=tools, draws=self._draws, timings=self._timings,
                       check=calls.check)
        if self._held is not None and (allowed_ms := self._timings.allowed_ms(map(str, workload.source.kinds), {})):
            calls.notes |= self._held.measure(allowed_ms, states, calls.check)
        if not settings.trust and settings.sanitize is None:
            self._check_integrity(calls)
        self._candidate.verify_stopped()

    def close(self) -> None:
        """Closes the memory of the candidate. It must have ended."""
        if self._held is not None:
            self._held.close()

    def timing(self) -> Timing | None:
        """Returns the record of the counted calls' times, or None without a usable time."""
        found = self._timings.summary(self._reference.synchronises, self._requests.synchronises)
        return found and replace(found, first_call_ms=self._requests.first_call_ms, load_ms=self._requests.load_ms)

    def check_times(self) -> None:
        """Compares the times with those from after the candidate has ended, when no work of its own can run.

        A solution could slow down the reference, and so raise its own speedup, or the stand-in, by work in the
        background. Raises Failed if no disturbance explains a difference.
        """
        comparable = of(self._workload.device).kind.times_are_comparable
        if self.attempt.timing is None or self._tools.settings.trust or not comparable:
            return
        self._tools.progress("timing the reference alone")
        kinds, reason = self._workload.source.kinds, ""
        kind = self._draws.secret.choice(kinds)  # the times may depend on the inputs
        if self._timings.seems_slowed_down(str(kind), self._times_alone(kind, ALONE_S)):
            alone = {str(each): self._times_alone(each, ALONE_S / len(kinds)) for each in kinds}
            reason = self._timings.compare_alone(alone, self._reference.synchronises)
        reason = reason or self._compare_held()
        self.attempt.timing = None if reason else self.timing()
        if reason:
            raise Failed(Verdict.REJECTED, reason)

    def _times_alone(self, kind: Variant, seconds: float) -> list[float]:
        """Returns times of the reference in ms on new inputs of a kind."""
        call = self._draws.next(variant=kind)
        tensors = self._workload.for_reference(call.tensors)
        self._reference.run(tensors, call.non_tensors, call.random_seed, blocked=True)
        begin, alone = time.monotonic(), list[float]()
        while len(alone) < FEWEST_ALONE or (len(alone) < MOST_ALONE and time.monotonic() - begin < seconds):
            alone.append(self._timings.of_reference(self._reference.run_again()))
        return alone

    def _compare_held(self) -> str:
        """Replaces the reported time if the judge's is longer. Returns the reason to reject the solution if they
        contradict each other, or "". The host's time is a solution's own, and nothing is rejected for it."""
        times = None if self._held is None else self._held.decide()
        if times is None or self._held is None:
            return ""
        # A solution may take longer where the reference does, too, but could have slowed it down there.
        alone = {str(kind): self._times_alone(kind, ALONE_S) for kind in self._workload.source.kinds
                 if str(kind) in times.doubtful}
        times.allowed_ms |= self._timings.allowed_ms(alone, alone)
        judged, self._timings.measured = times.judged, times.measured
        if judged is None:
            return ""
        self._timings.outside_factor = judged.factor
        if not times.contradicted or self._held.on_host:
            return ""
        return self._timings.in_doubt(f"its times don't add up: a call takes {judged.ms:.4g} ms by the judge's clock, "
                                      f"and {judged.allowed_ms:.4g} ms by those that were reported")

    def _check_integrity(self, calls: Calls) -> None:
        tools = self._tools
        context = Context(
            workload=self._workload, requests=self._requests, reference=self._reference, tracer=tools.tracer,
            trace=calls.trace, allow_library=tools.settings.allow_library or self._job.is_library,
            progress=tools.progress)
        for check in CHECKS:
            finding = check(context)
            self.attempt.kernels = finding.kernels or self.attempt.kernels
            calls.notes.update(filter(None, [finding.note]))
            if finding.verdict is not None:
                raise Failed(finding.verdict, finding.reason)


def _timings(workload: Workload, tools: Tools, candidate: CandidateProcess) -> Timings:
    """Builds the times with everything that is known before the first call: overheads, roofline, lower bound."""
    costs, shown = workload.costs, candidate.shown_ms
    timings = Timings(
        None if costs is None or shown is None else overhead(costs.empty_ms, costs.null_ms, costs.shown_ms, shown)
    )
    if tools.peaks is not None:
        work, peaks = workload.probed.work, tools.peaks
        timings.roofline = roofline(work, peaks)
        cached = torch.cuda.get_device_properties(workload.device).L2_cache_size
        timings.least_ms = BELOW_ROOFLINE * max(0, work.bytes - cached) / peaks.copy_bytes_s * 1e3
    if isinstance(tools.watch, NoGpuState):
        timings.gpu_unknown = str(tools.watch)
    return timings
