"""One evaluation: a candidate's calls, each checked against the reference on the same inputs, and the verdict."""

from __future__ import annotations

import base64
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from harness.build.request import BuildOutcome, Support
from harness.catalog import REFERENCE
from harness.judge import problem as problem_file
from harness.judge.candidate_process import (
    Build,
    CandidateCheated,
    CandidateDied,
    CandidateProcess,
    CandidateTimedOut,
)
from harness.judge.checking import CallCheck, Checker
from harness.judge.fingerprint import Fingerprint
from harness.judge.forward import Output
from harness.judge.frames import Called, read_called, read_ready
from harness.judge.launcher import Launcher
from harness.judge.messages import CONSTRUCTION_SEED, Evaluate, Settings
from harness.judge.problem import ProblemError, describe
from harness.judge.stage import Stage, snapshot
from harness.judge.timings import Timings
from harness.result import Build as BuildRecord
from harness.result import Check, Timing, Verdict
from harness.timing.call import Clock, Sample, timed_call
from harness.timing.hold import HoldPolicy
from harness.wire.arithmetic import seed_all

UNHELD_SHARE = 0.1
"""Of the calls, in secret: work that hides behind the hold, on a stream that nobody joins, is missing from these."""

FAILURES = {
    "import": Verdict.INVALID,
    "signature": Verdict.INVALID,
    "constructor": Verdict.CRASHED,
    "exception": Verdict.CRASHED,
    "out_of_memory": Verdict.OUT_OF_MEMORY,
}


CPU_FINDINGS = {
    "inlinebench: barrier divergence": Verdict.WRONG,
    "inlinebench: invalid warp mask": Verdict.WRONG,
    "inlinebench: too much static shared memory": Verdict.BUILD_FAILED,
    "inlinebench: unsupported": Verdict.SKIPPED,
}
"""What the library that runs kernels on the CPU says when it stops one. A solution could say so as well, and would
fail or be skipped for it."""
LAST_WORDS = "inlinebench: "
LONGEST_MESSAGE = 4000


class Failed(Exception):
    """The solution did not pass."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        super().__init__(reason)
        self.verdict, self.reason = verdict, reason


@dataclass
class Tools:
    """What an evaluation borrows from its judge."""

    settings: Settings
    clock: Clock
    support: Support
    build: Build
    progress: Callable[[str], None]
    launcher: Launcher
    keep: tuple[int, ...]


@dataclass
class Attempt:
    """What became of one candidate; the failure is None if it passed."""

    failure: Failed | None = None
    check: Check | None = None
    timing: Timing | None = None
    build: BuildRecord | None = None
    log: str = ""
    weights_changed: bool = False
    notes: set[str] = field(default_factory=set)


def evaluate(stage: Stage, job: Evaluate, tools: Tools) -> Attempt:
    """Evaluates one solution with the reference's weights, and where that fails and they differ, with its own.

    A solution may fold or pack weights in its constructor, and then the values that the public seed made are right
    and transferred ones are not. Both are public, so a solution that is right with either is right.

    Raises ProblemError if the reference fails, torch.OutOfMemoryError if the judge's own memory doesn't suffice.
    """
    attempt = _attempt(stage, job, tools, transfer=True)
    if attempt.failure and attempt.failure.verdict is Verdict.WRONG and attempt.weights_changed:
        own = _attempt(stage, job, tools, transfer=False)
        if own.failure is None:
            return own
    return attempt


def _attempt(stage: Stage, job: Evaluate, tools: Tools, transfer: bool) -> Attempt:
    attempt = Attempt()
    descriptor = getattr(stage.arena, "fd", None)
    with CandidateProcess(
        tools.launcher, tools.settings.timeout, tools.build, arena_fd=descriptor, keep=tools.keep
    ) as candidate:
        try:
            _Calls(stage, job, tools, candidate, attempt).run(transfer)
        except Failed as failure:
            attempt.failure = failure
        except CandidateTimedOut:
            attempt.failure = Failed(
                Verdict.TIMED_OUT, f"no answer within {tools.settings.timeout:g} s (--timeout raises the limit)"
            )
        except CandidateDied as error:
            words = _last_words(candidate)
            verdict = _verdict_of(words, Verdict.CRASHED, stage.device)
            attempt.failure = Failed(verdict, words or f"the candidate {error}")
        except CandidateCheated as error:
            attempt.failure = Failed(Verdict.REJECTED, str(error))
        if attempt.failure:
            attempt.failure = _blame_build(attempt.failure, candidate, job.solution)
        attempt.build = _build_record(candidate)
        attempt.log = "\n".join(filter(None, [*(outcome.log for outcome in candidate.builds), candidate.log()]))
    return attempt


class _Calls:
    """The requests to one candidate, in order."""

    def __init__(
        self, stage: Stage, job: Evaluate, tools: Tools, candidate: CandidateProcess, attempt: Attempt
    ) -> None:
        self._stage, self._job, self._tools = stage, job, tools
        self._candidate, self._attempt = candidate, attempt
        settings = tools.settings
        name = f"{job.problem_name}/{job.solution_name}/{job.shape_name}"
        self._chance = random.Random(f"{settings.seed}/{name}")
        self._fingerprint = Fingerprint(stage.device, self._chance.getrandbits(62))
        self._model = stage.reference()
        self._reference_hold, self._candidate_hold = HoldPolicy(), HoldPolicy()
        self._timings = Timings()
        self._checker: Checker

    def run(self, transfer: bool) -> None:
        """Loads, maps, and makes all calls; fills the attempt. Raises Failed and what the candidate process raises."""
        settings = self._tools.settings
        buffers = self._load(transfer)
        self._checker = Checker(self._stage, buffers, settings.tolerance, self._chance)
        total = settings.warmup + settings.calls
        try:
            for number in range(1, total + 1):
                self._tools.progress(f"call {number} of {total}")
                self._call(number, counted=number > settings.warmup)
        finally:
            self._attempt.check = self._checker.summary(self._weights, sorted(self._attempt.notes))
        if settings.timing:
            self._attempt.timing = self._timings.summary(
                self._reference_hold.synchronises, self._candidate_hold.synchronises
            )

    def _load(self, transfer: bool) -> dict[str, str]:
        """Has the candidate load the solution and map the buffers; gives its names of the reference's buffers."""
        stage, tools = self._stage, self._tools
        self._tools.progress("loading")
        path, class_name = self._solution_file()
        answer = self._candidate.ask(
            "load", solution=str(path), device=str(stage.device), tf32=tools.settings.tf32, transfer=transfer,
            support=tools.support.to_json(), init=self._init_arguments(),
            seed=CONSTRUCTION_SEED, weights=str(stage.weights), **{"class": class_name},
        )
        _raise_failure(answer, self._stage.device)
        ready = read_ready(answer)
        self._weights, self._attempt.weights_changed = ready.weights, ready.changed
        own_names = {theirs: own for own, theirs in ready.buffers.items() if theirs in stage.state_specs}
        rehearsed = stage.rehearsed
        answer = self._candidate.ask(
            "map", arena=stage.arena.export(), inputs=[spec.to_json() for spec in stage.input_specs],
            outputs=[spec.to_json() for spec in stage.output_specs], may_alias=rehearsed.may_alias,
            states={own: stage.state_specs[theirs].to_json() for theirs, own in own_names.items()},
            skeletons=_pack((rehearsed.input_form.skeleton, rehearsed.input_form.is_tensor,
                             rehearsed.output_skeleton, rehearsed.output_is_tensor)),
        )
        _raise_failure(answer, self._stage.device)
        return own_names

    def _init_arguments(self) -> str:
        try:
            return _pack(problem_file.init_inputs(self._stage.module))
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

    def _call(self, number: int, counted: bool) -> None:
        chance, stage = self._chance, self._stage
        variant = stage.source.choose_variant(chance)
        input_seed, random_seed = chance.getrandbits(62), chance.getrandbits(62)
        others = stage.write_inputs(input_seed, variant)
        originals = {index: stage.inputs()[index].clone() for index in stage.rehearsed.mutated}
        before = self._input_sums()
        order = self._choose_block_order(number)
        called, sample = self._ask_for_call(number, others, random_seed, order)
        self._candidate.stop()
        label = f"call {number} ({variant} inputs{', blocks in shuffled order' if order else ''})"
        if not torch.equal(before, self._input_sums()):
            raise Failed(Verdict.WRONG, f"{label}: the solution changed its inputs; the reference doesn't")
        tensors = [originals.get(index, tensor) for index, tensor in enumerate(stage.inputs())]
        states = snapshot(self._model)
        output, reference_sample = self._run_reference(tensors, others, random_seed)
        failure = self._checker.check(
            CallCheck(tensors, others, random_seed, states, output, snapshot(self._model), called.others, originals)
        )
        if failure:
            raise Failed(Verdict.WRONG, f"{label}: {failure}")
        self._timings.add_reference(reference_sample, counted)
        if counted:
            self._timings.add_solution(sample, self._candidate_hold.synchronises, str(variant))
        self._candidate.resume()

    def _choose_block_order(self, number: int) -> int:
        """On the CPU half of the calls run their blocks in another order, so that a race between blocks shows."""
        if self._stage.device.type == "cuda" or number % 2:
            return 0
        return self._chance.randrange(1, 1 << 31)

    def _ask_for_call(
        self, number: int, others: tuple[Any, ...], random_seed: int, block_order: int
    ) -> tuple[Called, Sample]:
        # The first call loads kernels and allocates, which waits for the device: behind a hold it would only run out.
        held = number > 1 and self._chance.random() >= UNHELD_SHARE
        limit = self._candidate_hold.limit_ms if held else 0.0
        answer = self._candidate.ask(
            "call", others=_pack(others), random_seed=random_seed, hold_ms=limit, block_order=block_order
        )
        _raise_failure(answer, self._stage.device)
        called = read_called(answer)
        self._attempt.notes.update(called.notes)
        if held and not called.sample.held:
            self._candidate_hold.ran_out()
        return called, called.sample

    def _run_reference(
        self, tensors: list[torch.Tensor], others: tuple[Any, ...], random_seed: int
    ) -> tuple[Output, Sample]:
        arguments = self._stage.rehearsed.input_form.arguments(tensors, others)
        limit = self._reference_hold.limit_ms if self._timings.warm else 0.0
        seed_all(random_seed)
        try:
            with torch.no_grad():
                value, sample = timed_call(
                    self._tools.clock, lambda: self._model(*arguments), lambda _: None, limit
                )
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            raise ProblemError(f"{self._job.problem.path}: the reference's forward raises {describe(error)}") from error
        if limit and not sample.held:
            self._reference_hold.ran_out()
        return Output.of(value), sample

    def _input_sums(self) -> torch.Tensor:
        stage = self._stage
        kept = [spec for index, spec in enumerate(stage.input_specs) if index not in stage.rehearsed.mutated]
        sums = [self._fingerprint.of(stage.memory(spec)) for spec in kept]
        return torch.cat(sums) if sums else torch.zeros(0)


def _raise_failure(answer: dict[str, Any], device: torch.device) -> None:
    if answer["op"] == "failed":
        message = str(answer.get("message"))[:LONGEST_MESSAGE] or "the solution raised an exception"
        otherwise = FAILURES.get(str(answer.get("kind")), Verdict.CRASHED)
        raise Failed(_verdict_of(message, otherwise, device), message)
    if answer["op"] == "mismatch":
        raise Failed(Verdict.WRONG, str(answer.get("message"))[:LONGEST_MESSAGE] or "the output has another form")


def _verdict_of(message: str, otherwise: Verdict, device: torch.device) -> Verdict:
    """The verdict of what the library that runs kernels on the CPU found, if that is what a message is about.

    On a GPU there is no such library: a solution that claims to be unsupported there must not be skipped for it.
    """
    if device.type != "cpu":
        return otherwise
    return next((verdict for sign, verdict in CPU_FINDINGS.items() if sign in message), otherwise)


def _blame_build(failure: Failed, candidate: CandidateProcess, solution: Path | None) -> Failed:
    """A candidate that fails after a build failed says so in its own words; the compiler's are better."""
    broken = [outcome for outcome in candidate.builds if outcome.library is None]
    if not broken or failure.verdict not in (Verdict.INVALID, Verdict.CRASHED):
        return failure
    if broken[0].unsupported:
        return Failed(Verdict.SKIPPED, _with_place(broken[0], solution))
    return Failed(Verdict.TIMED_OUT if broken[0].timed_out else Verdict.BUILD_FAILED, broken[0].reason)


def _last_words(candidate: CandidateProcess) -> str:
    """What the library that runs kernels on the CPU wrote when memory protection stopped one; empty elsewhere."""
    lines = [line for line in candidate.log().splitlines() if line.startswith(LAST_WORDS)]
    return lines[-1] if lines else ""


def _with_place(outcome: BuildOutcome, solution: Path | None) -> str:
    """The reason with the line of the solution's file, not of its source, where the source stands in it as built."""
    if outcome.at is None or solution is None:
        return outcome.reason
    source, line = outcome.at
    before, found, _ = solution.read_text(encoding="utf-8", errors="replace").partition(source)
    if not found:
        return outcome.reason
    return outcome.reason.replace(f"(line {line})", f"({solution.name}, line {before.count(chr(10)) + line})", 1)


def _build_record(candidate: CandidateProcess) -> BuildRecord | None:
    built = [outcome for outcome in candidate.builds if outcome.library is not None]
    if not built:
        return None
    headers = next((outcome.headers for outcome in built if outcome.headers != "slim"), "slim")
    return BuildRecord(sum(outcome.seconds for outcome in built), all(outcome.cached for outcome in built), headers)


def _pack(value: Any) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()
