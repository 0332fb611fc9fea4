"""Evaluates one solution at several workloads with one candidate process, and finds out why it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import zip_longest
from pathlib import Path
from random import Random

import torch

from inlinebench.builds.request import BuildOutcome
from inlinebench.evaluation.attempt import Attempt, Task, Tools
from inlinebench.evaluation.course import Course
from inlinebench.evaluation.failures import Failed, verdict_of
from inlinebench.evaluation.integrity.own_kernels import NONE_OF_ITS_OWN
from inlinebench.evaluation.repeats import Repeats
from inlinebench.messages import Evaluate, Settings
from inlinebench.problem.problem_file import ProblemError
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

LATER = "right at first, but not after calls at other workloads of the set"
"""How the reason begins if a solution fails when the judge comes back to a workload."""
BEFORE = "the same process had computed other workloads before: {}"
"""A remark on a solution that failed at a workload."""
CPU_RUNTIME_PREFIX = "inlinebench: "
"""How a message of the CPU runtime begins."""


def in_one_process(
    tasks: Sequence[Task], secret: Random, *, transfer: bool = True, brief: bool = False, last_round: bool = True,
    repeats: Sequence[Repeats] = (),
) -> list[Attempt]:
    """Evaluates workloads in order with one candidate, until it fails. Returns the attempts at those it has come to.

    With `transfer` the solution gets the reference's weights. With `brief` there are only a few calls, and no times.
    Without a `last_round`, there are no further calls at all workloads after the last one. `repeats` are made at the
    end, one after the other, for the workloads in order, if none has failed.
    Raises ProblemError if the reference fails, and NoCandidate if no candidate process starts.
    """
    job, tools = tasks[0].job, tasks[0].tools
    try:
        candidate = tools.candidates.take(job.given)
    except Failed as failure:
        return [Attempt(failure)]
    following = next((task.job.following for task in tasks if task.job.following is not None), None)
    with ExitStack() as stack:
        with candidate:
            if following is not None:
                tools.candidates.prepare(following.given)
            courses = []
            for task, each in zip_longest(tasks, repeats):
                courses.append(Course(
                    task, candidate, number=int(transfer), brief=brief, workloads=len(tasks), repeats=each))
                stack.callback(courses[-1].close)
            run = partial(_step, several=len(courses) > 1, candidate=candidate, tools=tools)
            begun = _run(courses, run, secret, transfer=transfer, last_round=last_round)
            if repeats:
                _repeat(begun, run)
            for course in begun:
                _conclude(course.attempt, candidate, job, tools.settings)
        for course in begun:
            if course.attempt.failure is None:
                course.attempt.failure = run(course, course.check_times)
    return [course.attempt for course in begun]


def _step(
    course: Course, step: Callable[[], None], *, several: bool, candidate: CandidateProcess, tools: Tools
) -> Failed | None:
    """Runs a step of a course, and returns the solution's failure, or None. Raises ProblemError.

    What the step allocated is freed if the process has `several` courses, so that their memory does not add up.
    """
    if not several:
        return _failure(step, candidate=candidate, tools=tools)
    try:
        return _failure(step, candidate=candidate, tools=tools)
    except ProblemError as error:
        raise ProblemError(f"{error} (at the workload {course.name})") from error
    finally:
        course.release()


def _run(
    courses: Sequence[Course], run: Callable[[Course, Callable[[], None]], Failed | None], secret: Random, *,
    transfer: bool, last_round: bool,
) -> list[Course]:
    """Runs courses one after the other, and comes back to earlier ones, until one fails. Returns those that have begun.

    After each workload, it comes back to one of the earlier ones; in a last round, to all. `run` runs a step and
    returns why it failed.
    """
    for course in courses:  # before the solution is imported
        courses[0].attempt.failure = run(course, course.open)
        if courses[0].attempt.failure is not None:
            return [courses[0]]
    begun = list[Course]()
    for course in courses:
        begun.append(course)
        course.attempt.failure = run(course, partial(course.run, transfer))
        earlier = [] if course.attempt.failure else secret.sample(begun[:-1], min(1, len(begun) - 1))
        if course is courses[-1] and last_round and not course.attempt.failure:
            earlier = secret.sample(begun, len(begun)) if len(begun) > 1 else []
        for each in earlier:
            if (failed := run(each, each.come_back)) is not None:
                each.attempt.fail(LATER, failed)
                return begun
        if course.attempt.failure is not None:
            if len(begun) > 1:
                course.attempt.add_note(BEFORE.format(", ".join(each.name for each in begun[:-1])))
            break
    return begun


def _repeat(courses: Sequence[Course], run: Callable[[Course, Callable[[], None]], Failed | None]) -> None:
    """Makes calls on the same inputs if all courses passed. Those on other rows come last and can't fail a solution."""
    for course in courses:
        if any(each.attempt.failure is not None for each in courses):
            return
        course.attempt.failure = run(course, course.repeat)
    for course in courses:
        if course.attempt.failure is None and run(course, course.repeat_rows) is not None:
            return  # the process may have ended


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


def _failure(step: Callable[[], None], *, candidate: CandidateProcess, tools: Tools) -> Failed | None:
    """Runs a step of an evaluation and returns the solution's failure, or None. Raises ProblemError."""
    try:
        step()
    except Failed as failure:
        return failure.with_traceback(None)  # whose frames would keep a batch's tensors
    except CandidateDied as error:
        message = _cpu_runtime_message(candidate)
        verdict = verdict_of(message, Verdict.CRASHED, tools.candidates.torch_device)
        return Failed(verdict, message or f"the solution's process {error}")
    except CandidateCheated as error:
        return Failed(Verdict.REJECTED, str(error))
    except FrameTooLarge as error:
        reason = (f"the problem's constructor arguments or non-tensor inputs are too large ({error}); pass large data "
                  "as tensors that get_inputs() returns")
        raise ProblemError(reason) from None
    except (CandidateTimedOut, CandidateOverran, torch.OutOfMemoryError, MemoryError) as error:
        return _exceeded_limit(error, candidate, tools.settings)
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
