"""One evaluation: a solution's attempts, and the verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from inlinebench.evaluation.attempt import Attempt, Tools
from inlinebench.evaluation.calls import Calls
from inlinebench.evaluation.failures import Failed, verdict_of
from inlinebench.messages import Evaluate, Settings
from inlinebench.problem.problem_file import ProblemError
from inlinebench.problem.workload import Workload
from inlinebench.process import sanitizer
from inlinebench.process.candidate_process import (
    CandidateCheated,
    CandidateDied,
    CandidateOverran,
    CandidateProcess,
    CandidateTimedOut,
)
from inlinebench.records.build_request import BuildOutcome
from inlinebench.records.result import Build as BuildRecord
from inlinebench.records.result import Verdict
from inlinebench.wire.arena import CpuArena
from inlinebench.wire.channel import FrameTooLarge

LAST_WORDS = "inlinebench: "


def evaluate(workload: Workload, job: Evaluate, tools: Tools) -> Attempt:
    """Evaluates one solution with the reference's weights, and where that fails and they differ, with its own.

    A solution may fold or pack weights in its constructor, and then the values that the public seed made are right
    and transferred ones are not. Both are public, so a solution that is right with either is right.

    Raises ProblemError if the reference fails, and NoCandidate.
    """
    attempt = _attempt(workload, job, tools, transfer=True)
    if attempt.failure and attempt.failure.verdict is Verdict.WRONG and attempt.weights_changed:
        own = _attempt(workload, job, tools, transfer=False)
        if own.failure is None:
            return own
    return attempt


def _attempt(workload: Workload, job: Evaluate, tools: Tools, transfer: bool) -> Attempt:
    attempt = Attempt()
    settings = tools.settings
    shared = {"arena": workload.arena.fd} if isinstance(workload.arena, CpuArena) else {}
    try:
        candidate = tools.candidates.take(job.solution, shared)
    except Failed as failure:
        attempt.failure = failure
        return attempt
    with candidate:
        if job.following is not None:
            tools.candidates.prepare(job.following.solution)
        calls = Calls(workload, job, tools, candidate, attempt, number=int(transfer))
        attempt.failure = _failure(lambda: calls.run(transfer), candidate, settings, workload.device)
        if settings.sanitize is not None:
            candidate.finish(sanitizer.PATIENCE_S if attempt.failure is None else sanitizer.SHORT_PATIENCE_S)
            finding = _finding(settings.sanitize, candidate)
            # A report explains a failure better than the failure itself; that there is none explains nothing.
            if finding is not None and (attempt.failure is None or finding.verdict is Verdict.WRONG):
                attempt.failure = finding
        if attempt.failure:
            attempt.failure = _blame_build(attempt.failure, candidate, job.solution)
        attempt.build = _build_record(candidate)
        logs = [*(outcome.log for outcome in candidate.builds), candidate.log(), sanitizer.report(candidate.scratch)]
        attempt.log = "\n".join(filter(None, logs))
    if attempt.failure is None:
        attempt.failure = _failure(calls.check_reference, candidate, settings, workload.device)
    return attempt


def _finding(tool: str, candidate: CandidateProcess) -> Failed | None:
    """What a sanitizer says against a solution; that it says nothing is the harness's fault."""
    try:
        finding = sanitizer.read(tool, candidate.scratch)
    except sanitizer.NoReport as error:
        return Failed(Verdict.INTERNAL_ERROR, str(error))
    return Failed(Verdict.WRONG, finding) if finding else None


def _failure(
    step: Callable[[], None], candidate: CandidateProcess, settings: Settings, device: torch.device
) -> Failed | None:
    """What a step of an evaluation says against the solution; None if nothing."""
    try:
        step()
    except Failed as failure:
        return failure
    except CandidateDied as error:
        words = _last_words(candidate)
        return Failed(verdict_of(words, Verdict.CRASHED, device), words or f"the candidate {error}")
    except CandidateCheated as error:
        return Failed(Verdict.REJECTED, str(error))
    except FrameTooLarge as error:
        reason = f"what the problem hands over beside its tensors is too large ({error}): make it a tensor"
        raise ProblemError(reason) from None
    except (CandidateTimedOut, CandidateOverran, torch.OutOfMemoryError) as error:
        return _overdone(error, settings)
    return None


def _overdone(error: CandidateTimedOut | CandidateOverran | torch.OutOfMemoryError, settings: Settings) -> Failed:
    """A candidate that took more time or memory than there is for it."""
    if isinstance(error, CandidateTimedOut):
        return Failed(Verdict.TIMED_OUT, f"no answer within {settings.timeout:g} s (--timeout raises the limit)")
    if isinstance(error, CandidateOverran):
        return Failed(Verdict.OUT_OF_MEMORY if error.breach.kind == "memory" else Verdict.REJECTED, str(error))
    # Without the candidate there was enough: the problem was rehearsed, and its buffers are there.
    return Failed(Verdict.OUT_OF_MEMORY, "it leaves the judge too little of the device's memory to check its outputs")


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
