"""Makes the calls of one candidate: warm-up calls, counted calls, loops and batches.

Every call is checked. The judge writes fresh inputs; the candidate runs `forward` and copies its outputs to the judge;
the judge stops the candidate, runs the reference on the same inputs, and compares.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import torch

from inlinebench.evaluation.attempt import Attempt, Tools
from inlinebench.evaluation.buffer_rotation import BufferRotation
from inlinebench.evaluation.correctness.call_check import CallCheck
from inlinebench.evaluation.correctness.checks import Checker
from inlinebench.evaluation.correctness.thorough import ThoroughCalls
from inlinebench.evaluation.failures import UNINITIALISED, Failed
from inlinebench.evaluation.integrity.checks import IntegrityChecks
from inlinebench.evaluation.integrity.held_calls import HeldCalls
from inlinebench.evaluation.loops import Drawn, time_loop
from inlinebench.evaluation.reference import Reference
from inlinebench.evaluation.requests import Requests
from inlinebench.evaluation.timings import LEAST_MS, Timings
from inlinebench.messages import Evaluate
from inlinebench.problem.secret_random import SecretRandom
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Received, Workload
from inlinebench.process.candidate_process import CandidateProcess
from inlinebench.process.replies import Called
from inlinebench.records.result import Mismatch, Verdict
from inlinebench.records.times import Timing
from inlinebench.timing.gpu_state import GpuSample, GpuWatch, NoGpuState
from inlinebench.timing.overhead import overhead
from inlinebench.timing.profile import Activity, Traced
from inlinebench.timing.roofline import roofline
from inlinebench.timing.stopping import Sampling
from inlinebench.wire.launch_errors import CUDA_REPORTS
from inlinebench.wire.processes import descendants

UNBLOCKED_SHARE = 0.1
"""The share of calls, drawn in secret, that run without the blocking kernel. Work on a stream that `forward` does not
join can finish behind the blocking kernel unnoticed; without it, this work is missing from the outputs."""
LOOPS, LOOP_CALLS, LOOP_MS = 4, 16, 20.0
"""Loops that measure the wall time (the first one warms up), the most calls in each, and the target time of each in ms.
"""
RACE_CALLS = 2
"""How many calls look for data races on the CPU: one in each order of the blocks."""
BELOW_ROOFLINE = 0.95
"""Pure reads are a few percent faster than the copies that bandwidth is measured with."""
DRAWS = ("the reference's outputs depend on random numbers that it draws in forward: a solution must draw the same "
         "numbers from torch's generator, in the same order (both start each call with the same seed)")
"""A remark on a solution that differs from such a reference."""
AS_DRAWN = ("matches on inputs as drawn: if changed inputs are not meaningful here, set INPUT_VARIANTS = False in "
            "the problem")
"""A remark on a solution that differs only on changed inputs."""
FEWEST_ALONE, MOST_ALONE, ALONE_S = 3, 15, 0.5
"""Reference calls after the candidate has ended: the fewest, the most, and the seconds after which the fewest suffice.
"""


class Calls:
    """All calls of one candidate. `number` distinguishes the attempts at one solution."""

    def __init__(
        self, workload: Workload, job: Evaluate, tools: Tools, candidate: CandidateProcess, attempt: Attempt, *,
        number: int,
    ) -> None:
        self._workload, self._job, self._tools = workload, job, tools
        self._candidate, self._attempt = candidate, attempt
        # A second attempt gets other inputs, because the first one may have left results behind.
        name = f"{job.problem_name}/{job.solution_name}/{job.shape_name}/{number}"
        self._secret_random = SecretRandom(tools.settings.seed, name)
        # The candidate gets values from a separate random source, so that it can infer nothing about the inputs.
        self._public = SecretRandom(tools.settings.seed, f"{name}/public")
        self._variants = workload.source.variants(self._secret_random)
        certain = tools.settings.warmup + tools.settings.sampling.least
        self._thorough = ThoroughCalls(len(workload.source.kinds), certain, self._secret_random)
        self._buffer_rotation = BufferRotation(len(workload.sets), self._secret_random)
        workload.clear()
        self._reference = Reference(workload, job.problem.path, tools.clock)
        self._requests = Requests(workload, job, candidate)
        self._timings = _timings(workload, tools, candidate)
        self._checker: Checker
        self._held: HeldCalls | None = None
        self._matched_as_drawn = False

    def run(self, transfer: bool) -> None:
        """Loads the solution, makes all calls, runs the integrity checks, and fills in the attempt.

        With `transfer` the solution gets the reference's weights. Raises Failed, ProblemError, and the exceptions of
        `CandidateProcess.ask`.
        """
        settings, on_gpu = self._tools.settings, self._workload.device.type == "cuda"
        timed = settings.timing and on_gpu
        if settings.holds_calls and on_gpu:
            self._tools.progress("preparing the judge's clock")
            self._held = HeldCalls(self._workload, self._tools, self._candidate, draw=self._draw,
                                   next_set=self._buffer_rotation.next, check=self._check_drawn)
        self._tools.progress("loading")
        loaded = self._requests.load(transfer, self._tools.runtime_libraries)
        if settings.timing:
            self._tools.candidates.settle()
        self._checker = Checker(self._workload, loaded.own_names, settings.tolerance)
        try:
            if timed:
                self._timings.kinds = tuple(map(str, self._workload.source.kinds))
            self._sample(settings.sampling if timed else settings.sampling.fixed)
            if self._tools.baselines is not None:
                self._attempt.notes.update(self._tools.baselines.notes.values())
            if timed:
                self._time_loops()
            reported = self._timings.solution_ms()
            if self._held is not None and reported is not None:
                self._attempt.notes |= self._held.measure(reported, tuple(loaded.own_names))
            if not settings.trust and settings.sanitize is None:
                self._check_integrity()
            self._candidate.verify_stopped()
        finally:
            self._attempt.check = self._checker.summary(loaded.weights, sorted(self._attempt.notes))
        if settings.timing:
            self._attempt.timing = self.timing()

    def close(self) -> None:
        """Closes the memory of the candidate. It must have ended."""
        if self._held is not None:
            self._held.close()

    def timing(self) -> Timing | None:
        """Returns the record of the counted calls' times, or None without a usable time."""
        return self._timings.summary(self._reference.synchronises, self._requests.synchronises)

    def check_times(self) -> None:
        """Compares the times with those from after the candidate has ended, when no work of its own can run.

        A solution could slow down the reference, and so raise its own speedup, or the stand-in, by work in the
        background. Raises Failed if no disturbance explains a difference.
        """
        settings = self._tools.settings
        if self._attempt.timing is None or settings.trust or self._workload.device.type != "cuda":
            return
        self._tools.progress("timing the reference alone")
        begin, alone = time.monotonic(), list[float]()
        while len(alone) < FEWEST_ALONE or (len(alone) < MOST_ALONE and time.monotonic() - begin < ALONE_S):
            alone.append(self._timings.of_reference(self._reference.run_again()))
        reason = self._timings.compare_alone(alone, self._reference.synchronises) or self._compare_held()
        self._attempt.timing = None if reason else self.timing()
        if reason:
            raise Failed(Verdict.REJECTED, reason)

    def _compare_held(self) -> str:
        """Replaces the reported time if the judge's is longer. Returns the reason to reject the solution if they
        contradict each other, or "". The host's time is a solution's own, and nothing is rejected for it."""
        times = None if self._held is None else self._held.decide()
        if times is None or self._held is None:
            return ""
        self._timings.outside_ms = judged = times.judged_ms
        if judged is None or not times.contradicted or self._held.on_host:
            return ""
        return self._timings.in_doubt(f"its times don't add up: a call takes {judged:.4g} ms by the judge's clock, but "
                                      f"{times.reported_ms:.4g} ms were reported")

    def _sample(self, sampling: Sampling) -> None:
        """Makes warm-up calls, then counted ones until a criterion is met and no kind of inputs lacks times."""
        warmup = self._tools.settings.warmup
        for number in range(1, warmup + 1):
            self._tools.progress(f"warm-up call {number}")
            self._call(number, counted=False)
        begin, counted, stop = time.monotonic(), 0, None
        while stop is None:
            counted += 1
            self._tools.progress(f"call {counted}")
            self._call(warmup + counted, counted=True)
            stop = sampling.stop(counted, time.monotonic() - begin, self._timings.ratios)
        self._timings.stopped_by = stop
        for variant in self._timings.missing(self._variants):
            counted += 1
            self._tools.progress(f"call {counted} ({variant})")
            self._call(warmup + counted, counted=True, variant=variant)
        if isinstance(watch := self._tools.watch, GpuWatch):
            self._timings.other_processes = watch.other_processes(descendants(os.getpid(), unburied=True))

    def _call(
        self, number: int, *, counted: bool, trace: Traced = "nothing", variant: Variant | None = None,
        ordered_as: int | None = None, thorough: bool = False,
    ) -> Called:
        """Makes one call of the solution and one of the reference on the same inputs, and compares them.

        `variant` is drawn if it is None. Blocks run in the order of the call with the number `ordered_as`. Some calls
        are thorough even if that is not asked for. Raises Failed if the solution changed inputs that the reference does
        not change, or if values differ.
        """
        workload, secret_random, profiled = self._workload, self._secret_random, trace != "nothing"
        variant = next(self._variants) if variant is None else variant
        thorough = thorough or (not profiled and self._thorough.next(variant))
        input_seed, random_seed = secret_random.getrandbits(62), self._public.getrandbits(62)
        buffer_set = self._buffer_rotation.next()
        private, non_tensors = workload.draw(buffer_set, input_seed, variant)
        workload.hand_over(buffer_set)
        order = self._choose_block_order(number if ordered_as is None else ordered_as)
        called = self._requests.call(
            buffer_set, non_tensors, random_seed, blocked=self._choose_blocked(number, profiled), trace=trace,
            block_order=order, races=0 < number <= RACE_CALLS,
        )
        # A kernel may read what nothing wrote and discard it, so that alone says nothing about a result.
        self._attempt.notes.update(note for note in called.notes if not note.startswith(UNINITIALISED))
        state = self._gpu_state()
        self._candidate.stop()
        what = "a profiled call" if profiled else f"call {number}"
        change = workload.source.describe(variant, input_seed)
        label = f"{what} ({change}{', blocks in shuffled order' if order else ''})"
        self._check_inputs(buffer_set, private, label)
        # From here on, nothing is read that the candidate, or work that it left on the GPU, could still write.
        received, tensors = workload.receive(buffer_set), self._to_change(private)
        states_before = self._reference.states()
        output, sample = self._reference.run(tensors, non_tensors, random_seed, blocked=self._timings.warm)
        failure = self._checker.check(CallCheck(
            inputs=private, non_tensors=non_tensors, random_seed=random_seed, states_before=states_before,
            output=output, states_after=self._reference.states(), plain_outputs=called.non_tensors,
            changed_inputs={index: tensors[index] for index in workload.probed.mutated}, received=received,
            thorough=thorough,
        ))
        if failure:
            what += ", blocks in shuffled order" if order else ""
            mismatch = self._checker.mismatch(what, variant)
            errors = [note for note in called.notes if note.startswith((CUDA_REPORTS, UNINITIALISED))]
            raise self._wrong(f"{label}: {failure}", errors or self._remarks(variant, number), mismatch)
        self._matched_as_drawn = self._matched_as_drawn or (variant is Variant.PLAIN and thorough)
        if not profiled:
            self._timings.add_reference(sample, counted)
            if self._tools.baselines is not None:
                self._timings.add_baselines(self._tools.baselines.time(tensors, non_tensors, random_seed))
        if counted:
            self._timings.add_solution(called.sample, self._requests.synchronises, str(variant), state)
        return called

    def _wrong(self, failure: str, remarks: Sequence[str], mismatch: Mismatch | None) -> Failed:
        """Returns the exception for a call that differs, with remarks on the cause."""
        self._attempt.notes.update(remarks)
        return Failed(Verdict.WRONG, "; ".join([failure, *remarks]), mismatch)

    def _remarks(self, variant: Variant, number: int) -> list[str]:
        """Returns remarks on a call that differs: whether random numbers or only changed inputs may be to blame.

        Makes another thorough call on inputs as drawn if there was none yet. Raises Failed if that call fails, too.
        """
        draws = [DRAWS] if self._workload.probed.random else []
        if variant is Variant.PLAIN:
            return draws
        if not self._matched_as_drawn:
            self._call(number + 1, counted=False, variant=Variant.PLAIN, ordered_as=number, thorough=True)
        return [*draws, AS_DRAWN]

    def _time_loops(self) -> None:
        """Measures the wall time of calls in a Python loop. Their outputs are compared as well. Raises Failed."""
        longest = int(LOOP_MS / (self._timings.solution_ms() or LEAST_MS)) + 1
        calls = min(LOOP_CALLS, longest, len(self._workload.sets))
        for number in range(LOOPS):
            self._tools.progress(f"timing loop {number + 1} of {LOOPS}")
            drawn = [self._draw(buffer_set) for buffer_set in range(calls)]
            loop = time_loop(self._workload, self._candidate, drawn)
            for index, call in enumerate(drawn):
                # A solution may reuse one buffer for its outputs, which then holds a later call's output.
                self._check_drawn(call, f"call {index + 1} of a loop", self._workload.receive(index), loop.plain[index],
                                  outputs_written=not loop.written_over[index], states_written=index == calls - 1)
            if number > 0:  # the first loop allocates memory for all of its outputs
                self._timings.add_wall(loop.wall_ms)

    def _check_integrity(self) -> None:
        IntegrityChecks(
            workload=self._workload, tools=self._tools, attempt=self._attempt,
            requests=self._requests, reference=self._reference, trace=self._trace,
            allow_library=self._tools.settings.allow_library or self._job.is_library,
        ).run()

    def _trace(self, what: Traced) -> tuple[Activity, ...]:
        """Makes, traces and compares one call. Returns the GPU's activities if it is traced for them. Raises Failed."""
        return self._call(0, counted=False, trace=what).activities

    def _draw(self, buffer_set: int) -> Drawn:
        """Draws the inputs of a call that is not timed by the candidate, in the judge's private memory."""
        source, variant, seed = self._workload.source, next(self._variants), self._secret_random.getrandbits(62)
        tensors, non_tensors = self._workload.draw(buffer_set, seed, variant)
        return Drawn(buffer_set, tensors, non_tensors, variant, source.describe(variant, seed),
                     self._public.getrandbits(62))

    def _check_drawn(
        self, call: Drawn, what: str, received: Received, plain: tuple[str, ...], *, outputs_written: bool = True,
        states_written: bool = True,
    ) -> None:
        """Runs the reference on the inputs of a call, and compares. Raises Failed."""
        label = f"{what} ({call.change})"
        self._check_inputs(call.buffer_set, call.tensors, label)
        tensors = self._to_change(call.tensors)
        states_before = self._reference.states()
        output, _ = self._reference.run(tensors, call.non_tensors, call.random_seed, blocked=False)
        failure = self._checker.check(CallCheck(
            inputs=call.tensors, non_tensors=call.non_tensors, random_seed=call.random_seed,
            states_before=states_before, output=output, states_after=self._reference.states(),
            plain_outputs=plain, changed_inputs={index: tensors[index] for index in self._workload.probed.mutated},
            received=received, outputs_written=outputs_written, states_written=states_written,
        ))
        if failure:
            mismatch = self._checker.mismatch(what, call.variant)
            raise self._wrong(f"{label}: {failure}", self._remarks(call.variant, 0), mismatch)

    def _to_change(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """Returns the inputs for the reference, with copies of those that it changes."""
        mutated = self._workload.probed.mutated
        return [tensor.clone() if index in mutated else tensor for index, tensor in enumerate(tensors)]

    def _choose_blocked(self, number: int, profile: bool) -> bool:
        """Whether to queue a call behind the blocking kernel."""
        # The first call loads kernels and allocates, which waits for the device, so the blocking kernel would time out.
        blocked = profile or (number > 1 and self._secret_random.random() >= UNBLOCKED_SHARE)
        return blocked and self._tools.settings.sanitize is None  # a sanitizer waits for each kernel

    def _choose_block_order(self, number: int) -> int:
        """Returns the seed that shuffles the order of thread blocks on the CPU, or 0 for the usual order.

        Every second call is shuffled, so that a race between blocks shows in the outputs. Always 0 on a GPU.
        """
        if self._workload.device.type == "cuda" or number % 2:
            return 0
        return self._public.randrange(1, 1 << 31)

    def _gpu_state(self) -> GpuSample | None:
        """Returns the GPU's clocks, temperature and power right after a call, or None if they cannot be read."""
        watch = self._tools.watch
        if not isinstance(watch, GpuWatch):
            return None
        try:
            return watch.sample()
        except NoGpuState as error:
            self._timings.gpu_unknown = str(error)
            return None

    def _check_inputs(self, buffer_set: int, private: Sequence[torch.Tensor], label: str) -> None:
        if not self._workload.inputs_equal(buffer_set, private):
            raise Failed(Verdict.WRONG, f"{label}: the solution changed its inputs; the reference does not")


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

