"""The requests to one candidate, in order: load, map, calls; and what follows from each answer."""

from __future__ import annotations

import os
import pickle
import random
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

from inlinebench.compare.fingerprint import Fingerprint
from inlinebench.evaluation.attempt import Attempt, Failed, Tools
from inlinebench.evaluation.buffer_rotation import Visits
from inlinebench.evaluation.checks import CallCheck, Checker
from inlinebench.evaluation.failures import raise_failure
from inlinebench.evaluation.integrity.batches import Batch
from inlinebench.evaluation.integrity.checks import Scrutiny
from inlinebench.evaluation.timings import LEAST_MS, Timings, slowed_down
from inlinebench.messages import CONSTRUCTION_SEED, Evaluate
from inlinebench.problem import problem_file
from inlinebench.problem.forward import Output
from inlinebench.problem.problem_file import ProblemError, describe
from inlinebench.problem.workload import Stage, snapshot
from inlinebench.process.candidate_process import CandidateProcess
from inlinebench.process.packing import pack
from inlinebench.process.replies import Called, read_called, read_launches, read_ready
from inlinebench.records.catalog import REFERENCE
from inlinebench.records.result import Timing, Verdict
from inlinebench.sandbox.policy import readable_for
from inlinebench.timing.blocking_kernel import HoldPolicy
from inlinebench.timing.call import Sample, timed_call
from inlinebench.timing.gpu_state import GpuSample, GpuWatch, NoGpuState
from inlinebench.timing.output_rotation import KnownMemory, Places
from inlinebench.timing.overhead import overhead
from inlinebench.timing.profile import Activity
from inlinebench.timing.roofline import floor
from inlinebench.timing.stopping import Sampling
from inlinebench.wire.arithmetic import seed_all
from inlinebench.wire.processes import descendants

UNHELD_SHARE = 0.1
"""Of the calls, in secret: work that hides behind the hold, on a stream that nobody joins, is missing from these."""
LOOPS, LOOP_CALLS, LOOP_MS = 4, 16, 20.0
"""Loops that take the wall time, the first of them to warm up; the calls of each at most, and as many ms of calls."""
BELOW_FLOOR = 0.95
"""Pure reads are some percent faster than the copies that bandwidth is measured with."""
FEWEST_ALONE, MOST_ALONE, ALONE_S = 3, 15, 0.5
"""Reference calls without the candidate: at most the second number, no more than the first after so many seconds."""


class Calls:
    """One candidate's calls. `number` counts a solution's attempts."""

    def __init__(
        self, stage: Stage, job: Evaluate, tools: Tools, candidate: CandidateProcess, attempt: Attempt, *, number: int,
    ) -> None:
        self._stage, self._job, self._tools = stage, job, tools
        self._candidate, self._attempt = candidate, attempt
        settings = tools.settings
        # Another attempt must not meet the same inputs: an earlier one may have left something behind.
        name = f"{job.problem_name}/{job.solution_name}/{job.shape_name}/{number}"
        self._chance = random.Random(f"{settings.seed}/{name}")
        # A stream of its own for what is sent to the candidate, so that nothing follows from it about the inputs.
        self._public = random.Random(f"{settings.seed}/{name}/public")
        self._visits = Visits(len(stage.sets), self._chance)
        stage.clear()
        self._fingerprint = Fingerprint(stage.arena.bytes.device, self._chance.getrandbits(62))
        self._model = stage.reference()
        self._places = Places([spec.bytes for spec in stage.sets[0].outputs], stage.device)
        self._memory = KnownMemory(tools.clock, stage.device)
        self._reference_hold, self._candidate_hold = HoldPolicy(), HoldPolicy()
        costs, shown = stage.costs, candidate.shown_ms
        self._timings = Timings(
            None if costs is None or shown is None else overhead(costs.empty_ms, costs.null_ms, costs.shown_ms, shown)
        )
        if tools.peaks is not None:
            work, peaks = stage.rehearsed.work, tools.peaks
            self._timings.floor = floor(work, peaks)
            cached = torch.cuda.get_device_properties(stage.device).L2_cache_size
            self._timings.least_ms = BELOW_FLOOR * max(0, work.bytes - cached) / peaks.copy_bytes_s * 1e3
        if isinstance(tools.watch, NoGpuState):
            self._timings.gpu_unknown = str(tools.watch)
        self._checker: Checker

    def run(self, transfer: bool) -> None:
        """Loads, maps, makes all calls, and looks closer at what passed; fills the attempt.

        Raises Failed and what the candidate process raises.
        """
        settings = self._tools.settings
        buffers = self._load(transfer)
        if settings.timing:
            self._tools.candidates.settle()
        self._checker = Checker(self._stage, buffers, settings.tolerance, self._chance)
        on_gpu = self._stage.device.type == "cuda"
        try:
            self._make_calls(settings.sampling if settings.timing and on_gpu else settings.sampling.fixed)
            if self._tools.baselines is not None:
                self._attempt.notes.update(self._tools.baselines.notes.values())
            if settings.timing and on_gpu:
                self._time_loops()
            if settings.defended and settings.sanitize is None:
                Scrutiny(self._stage, self._job, self._tools, self._attempt, self).look()
        finally:
            self._attempt.check = self._checker.summary(self._weights, sorted(self._attempt.notes))
        if settings.timing:
            self._attempt.timing = self.timing()

    def _make_calls(self, sampling: Sampling) -> None:
        """Warm-up calls, then counted ones until enough is known."""
        for number in range(1, self._tools.settings.warmup + 1):
            self._tools.progress(f"warm-up call {number}")
            self._call(number, counted=False)
        begin, counted, stop = time.monotonic(), 0, None
        while stop is None:
            counted += 1
            self._tools.progress(f"call {counted}")
            self._call(self._tools.settings.warmup + counted, counted=True)
            stop = sampling.stop(counted, time.monotonic() - begin, self._timings.ratios)
        self._timings.stopped_by = stop
        if isinstance(watch := self._tools.watch, GpuWatch):
            self._timings.other_processes = watch.other_processes(descendants(os.getpid(), unburied=True))

    def timing(self) -> Timing | None:
        """The record of the counted calls' times."""
        return self._timings.summary(self._reference_hold.synchronises, self._candidate_hold.synchronises)

    def solution_ms(self) -> float | None:
        """The median of the counted calls' times so far; None where none was usable."""
        return self._timings.solution_ms()

    def in_doubt(self, reason: str) -> str:
        """A reason that rests on times, with what may have made them longer than the solution did."""
        return self._timings.in_doubt(reason)

    def take_outside_time(self, ms: float) -> None:
        """Has times count as the judge's clock saw them, where the solution's own are shorter."""
        self._timings.outside_ms = ms

    @property
    def synchronises(self) -> bool:
        """Whether the solution waits for the device, so that its calls can't be held."""
        return self._candidate_hold.synchronises

    @property
    def libraries(self) -> list[Path]:
        """The libraries that the solution had built."""
        return [outcome.library for outcome in self._candidate.builds if outcome.library is not None]

    def check_reference(self) -> None:
        """With the candidate gone, is the reference as fast as it was beside it? Raises Failed."""
        settings = self._tools.settings
        if self._attempt.timing is None or not settings.defended or self._stage.device.type != "cuda":
            return
        begin, alone = time.monotonic(), list[float]()
        while len(alone) < FEWEST_ALONE or (len(alone) < MOST_ALONE and time.monotonic() - begin < ALONE_S):
            alone.append(self._timings.of_reference(self._reference_again()[1]))
        beside = self._attempt.timing.reference_ms.median
        if slowed_down(beside, median(alone)):
            self._attempt.timing = None
            raise Failed(Verdict.REJECTED, self.in_doubt(
                f"the reference was slowed down: {beside:.4g} ms beside this solution, {median(alone):.4g} ms without "
                "it"))

    def profile(self) -> tuple[Activity, ...]:
        """One more call, under the profiler, checked as any other; what the GPU did meanwhile. Raises Failed."""
        return self._call(0, counted=False, profile=True).activities

    def profile_reference(self) -> list[Activity]:
        """What the GPU does in a call of the reference, on the inputs of the last call."""
        return self._tools.tracer(self._reference_again)[1]

    def launches(self) -> int:
        """How many kernels the candidate has run on the CPU."""
        self._candidate.resume()
        answer = self._candidate.ask("report")
        raise_failure(answer, self._stage.device)
        return read_launches(answer)

    def batch(self, calls: int) -> tuple[Batch, bool]:
        """A batch of calls with its time by the judge's own clock, and whether its hold lasted until it was released.

        Each of its calls is checked as any other, if it is known on which inputs. Raises Failed.
        """
        page = None if self.synchronises else self._candidate.page
        batch = Batch(self._stage, self._candidate, self._chance, self._public, page)
        held, said = batch.run(calls)
        if batch.known:
            self._check_batch(batch, said)
        return batch, held

    def _time_loops(self) -> None:
        """What a call takes in a loop in Python. Outputs are compared as those of a batch are. Raises Failed."""
        longest = int(LOOP_MS / (self.solution_ms() or LEAST_MS)) + 1
        calls = min(LOOP_CALLS, longest, len(self._stage.sets))
        for number in range(LOOPS):
            self._tools.progress(f"timing loop {number + 1} of {LOOPS}")
            batch = Batch(self._stage, self._candidate, self._chance, self._public, None)
            said = batch.loop(calls)
            self._check_batch(batch, said)
            if number > 0:  # the first one allocates what that many outputs take at once
                self._timings.add_wall(batch.wall_ms)

    def _check_batch(self, batch: Batch, said: tuple[tuple[str, ...], ...]) -> None:
        mutated = self._stage.rehearsed.mutated
        for number, call in enumerate(batch.calls):
            what = f"call {number + 1} of several"
            label = f"{what} ({call.variant} inputs)"
            kept = [index for index in range(len(call.tensors)) if index not in mutated]
            shared = self._stage.inputs(number)
            if not all(_same_bytes(shared[index], call.tensors[index]) for index in kept):
                raise Failed(Verdict.WRONG, f"{label}: the solution changed its inputs; the reference doesn't")
            states = snapshot(self._model)
            output, _ = self._run_reference(call.tensors, call.others, call.random_seed, 0.0)
            if batch.written_over[number]:
                continue  # the solution uses one buffer for its outputs, and only the last is still there
            failure = self._checker.check(CallCheck(
                call.tensors, call.others, call.random_seed, states, output, snapshot(self._model), said[number],
                {index: call.tensors[index] for index in mutated}, number, number == len(batch.calls) - 1,
                batch.outputs[number],
            ))
            if failure:
                raise Failed(Verdict.WRONG, f"{label}: {failure}", self._checker.mismatch(what, call.variant))

    def _load(self, transfer: bool) -> dict[str, str]:
        """Has the candidate load the solution and map the buffers; gives its names of the reference's buffers."""
        stage, tools = self._stage, self._tools
        self._tools.progress("loading")
        path, class_name = self._solution_file()
        answer = self._candidate.ask(
            "load", solution=str(path), readable=list(map(str, readable_for(path))), transfer=transfer,
            support=tools.support.to_json(), init=self._init_arguments(), seed=CONSTRUCTION_SEED,
            weights=str(stage.weights), class_name=class_name, precision=stage.problem.precision,
        )
        raise_failure(answer, self._stage.device)
        ready = read_ready(answer)
        self._weights, self._attempt.weights_changed = ready.weights, ready.changed
        own_names = {theirs: own for own, theirs in ready.buffers.items() if theirs in stage.state_specs}
        rehearsed = stage.rehearsed
        answer = self._candidate.ask(
            "map", arena=stage.arena.export(), sets=[buffers.to_json() for buffers in stage.sets],
            may_alias=rehearsed.may_alias,
            states={own: stage.state_specs[theirs].to_json() for theirs, own in own_names.items()},
            skeletons=pack((rehearsed.input_form.skeleton, rehearsed.input_form.is_tensor,
                            rehearsed.output_skeleton, rehearsed.output_is_tensor)),
        )
        raise_failure(answer, self._stage.device)
        self._candidate.stop()  # until it is asked for a call: its inputs are nothing to watch as they are written
        return own_names

    def _init_arguments(self) -> str:
        try:
            return pack(problem_file.init_inputs(self._stage.module))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            reason = f"{self._job.problem.path}: get_init_inputs() gives what can't be sent to a process: {error}"
            raise ProblemError(reason) from error

    def _solution_file(self) -> tuple[Path, str]:
        if self._job.solution is not None:
            return self._job.solution.resolve(), "ModelNew"
        problem = self._job.problem
        path = self._candidate.scratch / f"{problem.path.stem}{REFERENCE}.py"
        path.write_text(problem_file.source_at(problem.path, problem.shape, problem.constants))
        return path, "Model"

    def _call(self, number: int, counted: bool, profile: bool = False) -> Called:
        chance, stage = self._chance, self._stage
        variant = stage.source.choose_variant(chance)
        input_seed, random_seed = chance.getrandbits(62), self._public.getrandbits(62)
        place = self._visits.next()
        others = stage.write_inputs(place, input_seed, variant)
        originals = {index: stage.inputs(place)[index].clone() for index in stage.rehearsed.mutated}
        before = self._input_sums(place)
        order = self._choose_block_order(number)
        # The first call loads kernels and allocates, which waits for the device: behind a hold it would only run out.
        held = profile or (number > 1 and chance.random() >= UNHELD_SHARE)
        if self._tools.settings.sanitize is not None:
            held = False  # the tool waits for each kernel
        self._candidate.resume()
        called = self._ask_for_call(place, others, random_seed, held=held, profile=profile, block_order=order)
        state = self._gpu_state()
        self._candidate.stop()
        what = "a profiled call" if profile else f"call {number}"
        label = f"{what} ({variant} inputs{', blocks in shuffled order' if order else ''})"
        self._check_inputs(place, before, label)
        shared = stage.inputs(place)
        tensors = [originals.get(index, tensor).to(stage.device) for index, tensor in enumerate(shared)]
        states = snapshot(self._model)
        limit = self._reference_hold.limit_ms if self._timings.warm else 0.0
        output, sample = self._run_reference(tensors, others, random_seed, limit)
        self._check_inputs(place, before, label)  # again: what was left on the GPU goes on while the process is stopped
        self._last = (tensors, others, random_seed)
        failure = self._checker.check(
            CallCheck(tensors, others, random_seed, states, output, snapshot(self._model), called.others,
                      {index: tensors[index] for index in originals}, place)
        )
        if failure:
            what += ", blocks in shuffled order" if order else ""
            raise Failed(Verdict.WRONG, f"{label}: {failure}", self._checker.mismatch(what, variant))
        if not profile:
            self._timings.add_reference(sample, counted)
            if self._tools.baselines is not None:
                self._timings.add_baselines(self._tools.baselines.time(tensors, others, random_seed))
        if counted:
            self._timings.add_solution(called.sample, self._candidate_hold.synchronises, str(variant), state)
        return called

    def _gpu_state(self) -> GpuSample | None:
        """What clocks, heat and power are right after a call; None where nothing tells."""
        watch = self._tools.watch
        if not isinstance(watch, GpuWatch):
            return None
        try:
            return watch.sample()
        except NoGpuState as error:
            self._timings.gpu_unknown = str(error)
            return None

    def _check_inputs(self, place: int, before: torch.Tensor, label: str) -> None:
        if not torch.equal(before, self._input_sums(place)):
            raise Failed(Verdict.WRONG, f"{label}: the solution changed its inputs; the reference doesn't")

    def _choose_block_order(self, number: int) -> int:
        """On the CPU half of the calls run their blocks in another order, so that a race between blocks shows."""
        if self._stage.device.type == "cuda" or number % 2:
            return 0
        return self._public.randrange(1, 1 << 31)

    def _ask_for_call(
        self, place: int, others: tuple[Any, ...], random_seed: int, *, held: bool, profile: bool, block_order: int
    ) -> Called:
        limit = self._candidate_hold.limit_ms if held else 0.0
        answer = self._candidate.ask(
            "call", set=place, others=pack(others), random_seed=random_seed, hold_ms=limit, block_order=block_order,
            profile=profile,
        )
        raise_failure(answer, self._stage.device)
        called = read_called(answer)
        self._attempt.notes.update(called.notes)
        if held and not called.sample.held:
            self._candidate_hold.ran_out()
        return called

    def _reference_again(self) -> tuple[Output, Sample]:
        return self._run_reference(*self._last, self._reference_hold.limit_ms)

    def _run_reference(
        self, tensors: list[torch.Tensor], others: tuple[Any, ...], random_seed: int, limit: float
    ) -> tuple[Output, Sample]:
        arguments = self._stage.rehearsed.input_form.arguments(tensors, others)
        self._touch(tensors)
        seed_all(random_seed)
        try:
            with torch.no_grad():
                output, sample = timed_call(
                    self._tools.clock, lambda: Output.of(self._model(*arguments)).dense(), lambda _: None, limit
                )
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            raise ProblemError(f"{self._job.problem.path}: the reference's forward raises {describe(error)}") from error
        if limit and not sample.held:
            self._reference_hold.ran_out()
        return output, sample

    def _touch(self, tensors: list[torch.Tensor]) -> None:
        """As the candidate does: the GPU is to know where inputs and outputs lie when the clock starts."""
        if self._stage.device.type == "cpu":
            return
        for tensor in tensors:
            self._tools.clock.touch(tensor.data_ptr(), tensor.numel() * tensor.element_size())
        self._places.move_on()
        blocks = [torch.empty(spec.bytes, dtype=torch.uint8, device=self._stage.device)
                  for spec in self._stage.sets[0].outputs]
        for block in blocks:
            block.zero_()
        del blocks
        self._memory.look_up()

    def _input_sums(self, place: int) -> torch.Tensor:
        stage = self._stage
        kept = [spec for index, spec in enumerate(stage.sets[place].inputs) if index not in stage.rehearsed.mutated]
        sums = [self._fingerprint.of(stage.memory(spec)) for spec in kept]
        return torch.cat(sums) if sums else torch.zeros(0)


def _same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one form hold the same bits, NaN included."""
    return torch.equal(_bits(one), _bits(other))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    flat = torch.as_strided(tensor, (tensor.numel(),), (1,))
    return flat.view(torch.uint8) if flat.numel() else flat
