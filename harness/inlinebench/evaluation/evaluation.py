"""Evaluates one solution and decides on the verdict."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from inlinebench.builds.request import BuildOutcome
from inlinebench.evaluation.attempt import Attempt, Tools
from inlinebench.evaluation.course import Course
from inlinebench.evaluation.failures import Failed, verdict_of
from inlinebench.evaluation.integrity.own_kernels import NONE_OF_ITS_OWN
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
from inlinebench.results.result import Build as BuildRecord
from inlinebench.results.result import Verdict
from inlinebench.wire.channel import FrameTooLarge

FIRST = "with the reference's weights in place of the solution's own, the solution was wrong: {}"
"""A remark on a solution that passed with its own weights."""
SECOND = ("with the solution's own weights instead of the reference's, the verdict was {}: {}; what is computed from "
          "weights, such as a packed copy, must be computed at the first call")
"""A remark on a solution that was wrong with both kinds of weights."""
CPU_RUNTIME_PREFIX = "inlinebench: "
"""How a message of the CPU runtime begins."""


def evaluate(workload: Workload, job: Evaluate, tools: Tools) -> Attempt:
    """Evaluates one solution, at most twice, and returns the attempt that counts.

    The first attempt copies the reference's weights into the solution. If its first call is wrong and the reference has
    weights, a second attempt uses those that the solution made itself under the public seed. A solution that folds or
    packs weights in its constructor needs this. Both kinds of weights are public, so passing with either is enough.
    Weights that do not fit show in the first call; a solution that is wrong by chance gets no second one.

    Raises ProblemError if the reference fails, and NoCandidate if no candidate process starts.
    """
    first = _attempt(workload, job, tools, transfer=True)
    check, failure = first.check, first.failure
    if failure is None or failure.verdict is not Verdict.WRONG or check is None or check.calls > 1:
        return first
    if not workload.has_weights:
        return first
    second = _attempt(workload, job, tools, transfer=False)
    if second.failure is None:
        second.add_note(FIRST.format(_first_line(failure)))
        return second
    first.add_note(SECOND.format(second.failure.verdict, _first_line(second.failure)))
    return first


def _first_line(failure: Failed) -> str:
    return failure.reason.partition("\n")[0]


def _attempt(workload: Workload, job: Evaluate, tools: Tools, transfer: bool) -> Attempt:
    attempt = Attempt()
    settings = tools.settings
    try:
        candidate = tools.candidates.take(job.given)
    except Failed as failure:
        attempt.failure = failure
        return attempt
    course: Course | None = None
    try:
        with candidate:
            if job.following is not None:
                tools.candidates.prepare(job.following.given)
            course = Course(workload, job, tools, candidate, attempt, number=int(transfer))
            attempt.failure = _failure(partial(course.run, transfer), candidate, settings, workload.device)
            _conclude(attempt, candidate, job, settings)
        if attempt.failure is None:
            attempt.failure = _failure(course.check_times, candidate, settings, workload.device)
    finally:
        if course is not None:
            course.close()
    return attempt


def _conclude(attempt: Attempt, candidate: CandidateProcess, job: Evaluate, settings: Settings) -> None:
    """Adds a sanitizer's finding, the builds and the logs to an attempt whose calls have ended."""
    if settings.sanitize is not None:
        candidate.finish(sanitizer.PATIENCE_S if attempt.failure is None else sanitizer.SHORT_PATIENCE_S)
        finding = _finding(settings.sanitize, candidate)
        # A sanitizer's finding explains a failure better than the failure itself. A missing report does not.
        if finding is not None and (attempt.failure is None or finding.verdict is Verdict.WRONG):
            attempt.failure = finding
    if attempt.failure:
        attempt.failure = _prefer_build_failure(attempt.failure, candidate, job.solution)
    attempt.build = _build_record(candidate)
    logs = [*(outcome.log for outcome in candidate.builds), candidate.log(), sanitizer.report(candidate.scratch)]
    attempt.log = "\n".join(filter(None, logs))


def _finding(tool: str, candidate: CandidateProcess) -> Failed | None:
    """Returns a sanitizer's finding as a failure, or None if it is clean. A missing report is an internal error."""
    try:
        finding = sanitizer.read(tool, candidate.scratch)
    except sanitizer.NoReport as error:
        return Failed(Verdict.INTERNAL_ERROR, str(error))
    return Failed(Verdict.WRONG, finding) if finding else None


def _failure(
    step: Callable[[], None], candidate: CandidateProcess, settings: Settings, device: torch.device
) -> Failed | None:
    """Runs a step of an evaluation and returns the solution's failure, or None. Raises ProblemError."""
    try:
        step()
    except Failed as failure:
        return failure.with_traceback(None)  # whose frames would keep a batch's tensors
    except CandidateDied as error:
        message = _cpu_runtime_message(candidate)
        return Failed(verdict_of(message, Verdict.CRASHED, device), message or f"the solution's process {error}")
    except CandidateCheated as error:
        return Failed(Verdict.REJECTED, str(error))
    except FrameTooLarge as error:
        reason = (f"the problem's constructor arguments or non-tensor inputs are too large ({error}); pass large data "
                  "as tensors that get_inputs() returns")
        raise ProblemError(reason) from None
    except (CandidateTimedOut, CandidateOverran, torch.OutOfMemoryError, MemoryError) as error:
        return _exceeded_limit(error, candidate, settings)
    return None


def _exceeded_limit(
    error: CandidateTimedOut | CandidateOverran | torch.OutOfMemoryError | MemoryError, candidate: CandidateProcess,
    settings: Settings,
) -> Failed:
    """Returns the failure of a candidate that took too much time or memory."""
    if isinstance(error, CandidateTimedOut):
        found = candidate.running_kernel()
        limit = f"no answer within {settings.timeout:g} s (--timeout raises the limit)"
        return Failed(Verdict.TIMED_OUT, f"{limit}; {found}" if found else limit)
    if isinstance(error, CandidateOverran):
        return Failed(Verdict.OUT_OF_MEMORY if error.breach.kind == "memory" else Verdict.REJECTED, str(error))
    # The judge ran out of memory. The solution is at fault, because the probe fitted and the buffers are allocated.
    return Failed(Verdict.OUT_OF_MEMORY, "the solution does not leave the judge enough memory to check its outputs")


def _prefer_build_failure(failure: Failed, candidate: CandidateProcess, solution: Path | None) -> Failed:
    """Replaces a failure that follows a failed build by the compiler's error, which explains it better.

    A solution may catch the exception of a failed build and leave the work to PyTorch. Then it was not its own kernel
    that was judged. That says nothing if the source cannot run on the CPU, if its build took too long, or if the
    machine is at fault.
    """
    broken = [outcome for outcome in candidate.builds if outcome.library is None]
    if broken and failure.reason == NONE_OF_ITS_OWN:
        reason = _with_line_in_file(broken[0], solution)
        if broken[0].verdict is not Verdict.BUILD_FAILED:
            return Failed(broken[0].verdict, reason)
        cause = reason.partition("\n")[0]
        return Failed(failure.verdict, f"{failure.reason}; one of its builds failed: {cause}")
    if not broken or failure.verdict not in (Verdict.INVALID, Verdict.CRASHED):
        return failure
    return Failed(broken[0].verdict, _with_line_in_file(broken[0], solution))


def _cpu_runtime_message(candidate: CandidateProcess) -> str:
    """Returns the last message of the CPU runtime in the candidate's log, such as an illegal access, or ""."""
    lines = [line for line in candidate.log().splitlines() if line.startswith(CPU_RUNTIME_PREFIX)]
    return lines[-1] if lines else ""


def _with_line_in_file(outcome: BuildOutcome, solution: Path | None) -> str:
    """Returns the reason with the line number in the solution file instead of the one in the source string.

    Returns it unchanged if the file does not contain the source string literally.
    """
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
