"""Evaluates a solution at sizes that are drawn, and finds the smallest size at which it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch

from inlinebench.evaluation.attempt import Attempt, Task
from inlinebench.evaluation.evaluation import evaluate_until_failure
from inlinebench.messages import Evaluate, ProblemAt
from inlinebench.problem import problem_file
from inlinebench.problem.probe.records import CannotRun
from inlinebench.problem.problem_file import ProblemError
from inlinebench.problem.secret_random import SecretRandom
from inlinebench.problem.shapes import constants
from inlinebench.problem.shapes.cost import Cost
from inlinebench.problem.shapes.drawing import Drawing, Size, shrunk
from inlinebench.problem.shapes.ranges import constants_of
from inlinebench.results.result import Fuzzed, Verdict

TRIES, SLOW_TRIES = 24, 3
"""The most sizes that are tried to find a smaller one that fails; fewer if the solution exceeds its time limit."""
DRAWN_PER_SIZE, DRAWN = 4, 32
"""Drawing ends after so many sizes for each wanted one, and so many more, if the reference refuses most of them."""
SMALL_LIMITS = Cost(elements=1 << 13, size=1 << 14, work=5 << 19, threads=9 << 19, rows=136)
"""What a size may cost where CUDA is emulated: some milliseconds a call."""
LARGE_LIMITS = Cost(elements=1 << 24, size=1 << 24, work=1 << 36, threads=1 << 40, rows=1 << 24)
"""What a size may cost on a GPU."""
MORE_FLOPS = 16
"""Counted operations of a call may exceed the estimated ones by this factor."""

Prepare = Callable[[Evaluate, Sequence[ProblemAt]], Task | CannotRun]
"""Prepares a job, with the problems whose workloads stay prepared. Raises ProblemError and out-of-memory errors."""


@dataclass(frozen=True)
class FuzzOutcome:
    """What came of the drawn sizes."""

    record: Fuzzed
    """The numbers of sizes, and where the solution fails."""
    attempt: Attempt
    """The attempt at the smallest size that fails, or else that with the largest error."""


class Fuzzing:
    """The evaluation of one solution at drawn sizes, in one process as for a set of workloads.

    The reference decides which sizes count, before the solution sees any of them. The first size at which the solution
    fails ends the evaluation. Then smaller sizes are tried one by one, each in a process of its own.

    Args:
        job: the evaluation.
        seed: the seed of the run, which decides the sizes.
        large: whether the device runs sizes for a GPU.
        prepare: prepares a job at one size.
    """

    def __init__(self, job: Evaluate, seed: int, large: bool, prepare: Prepare) -> None:
        assert job.fuzz is not None
        self._job, self._fuzz, self._seed, self._prepare = job, job.fuzz, seed, prepare
        self._limits = LARGE_LIMITS if large else SMALL_LIMITS
        self._tree = problem_file.tree_of(job.problem.path)
        self._known = constants.read(self._tree)
        self._tasks: list[Task] = []
        self._sizes: list[Size] = []
        self._refused = 0

    def run(self) -> FuzzOutcome | CannotRun:
        """Returns what came of it, or why the reference runs at no drawn size. Raises ProblemError and NoCandidate."""
        if not self._fuzz.ranges:
            return CannotRun(f"{self._job.problem.path}: --fuzz finds no sizes to draw in this file; declare their "
                             "ranges with RANGES", own_fault=False)
        if (cannot := self._draw()) is not None:
            return cannot
        attempts = evaluate_until_failure(self._tasks)
        failed = next((place for place, attempt in attempts.items() if attempt.failure is not None), None)
        record = Fuzzed(self._fuzz.count, len(self._tasks), self._refused, len(attempts) - (failed is not None))
        if failed is None:
            return FuzzOutcome(record, max(attempts.values(), key=_worst_error))
        if not _depends_on_size(attempts[failed]):
            return FuzzOutcome(record, attempts[failed])
        drawn = self._sizes[failed]
        record = replace(record, failed_at=self._named(drawn), drawn=self._named(drawn), alone=False)
        if (found := self._shrink(drawn, attempts[failed])) is None:
            return FuzzOutcome(record, attempts[failed])
        size, attempt = found
        return FuzzOutcome(replace(record, failed_at=self._named(size), alone=True), attempt)

    def _draw(self) -> CannotRun | None:
        """Draws the sizes and prepares their workloads. Returns why the reference cannot run, if it never does."""
        last: CannotRun | None = None
        for size in islice(self._drawing(), DRAWN + DRAWN_PER_SIZE * self._fuzz.count):
            found = self._prepared(size)
            if isinstance(found, Task):
                self._tasks.append(found)
                self._sizes.append(size)
            elif found is not None:
                self._refused, last = self._refused + 1, found
            if last is not None and (last.lacks_package or not (last.own_fault or last.beyond_limits)):
                return last
            if len(self._tasks) == self._fuzz.count:
                break
        return None if self._tasks else last or CannotRun(
            f"{self._job.problem.path}: no size in these ranges is small enough for this device", own_fault=False)

    def _drawing(self) -> Iterator[Size]:
        random = SecretRandom(self._seed, f"{self._job.problem_name}/sizes")
        return iter(Drawing(self._tree, self._fuzz.ranges, self._limits, random, self._fuzz.problem.constants))

    def _prepared(self, size: Size) -> Task | CannotRun | None:
        """Returns a size ready to be evaluated, or why the reference refuses it. None if it costs too much."""
        job = self._at(size)
        try:
            task = self._prepare(job, [each.job.problem for each in self._tasks] + [job.problem])
        except ProblemError as error:
            return CannotRun(str(error))
        except (torch.OutOfMemoryError, MemoryError):
            return CannotRun(f"{job.problem.path}: too large for the device", own_fault=False, beyond_limits=True)
        if isinstance(task, CannotRun):
            return task
        probed = task.workload.probed
        if task.workload.computes_nothing or probed.has_nan:
            what = "NaN" if probed.has_nan else "outputs without elements"
            return CannotRun(f"{job.problem.path}: the reference returns {what} at {job.shape_name}")
        return None if probed.work.flops > MORE_FLOPS * self._limits.work else task

    def _at(self, size: Size) -> Evaluate:
        """Returns the evaluation at one size, as one of a set."""
        whole = self._fuzz.problem
        problem = replace(whole, constants={**whole.constants, **constants_of(size, self._known)},
                          oracle=self._job.problem.oracle)
        return replace(self._job, problem=problem, shape_name=",".join(self._named(size)), fuzz=None, weight=1.0)

    def _named(self, size: Size) -> tuple[str, ...]:
        return tuple(f"{name}={value}" for name, value in constants_of(size, self._known).items())

    def _shrink(self, size: Size, attempt: Attempt) -> tuple[Size, Attempt] | None:
        """Returns the smallest size that was found to fail by itself, with its attempt. None if the solution fails at
        this size only after others."""
        found = dict[tuple[int, ...], Attempt]()

        def fails(smaller: Size) -> bool:
            alone = self._alone(smaller)
            if alone is None or alone.failure is None:
                return False
            found[tuple(smaller.values())] = alone
            return True

        if not fails(size):
            return None
        slow = attempt.failure is not None and attempt.failure.verdict is Verdict.TIMED_OUT
        smallest = shrunk(size, self._fuzz.ranges, fails, SLOW_TRIES if slow else TRIES)
        if smallest == size:
            return size, attempt
        explained = self._alone(smallest, explains=self._job.explains)
        if explained is not None and explained.failure is not None:
            return smallest, explained
        return smallest, found[tuple(smallest.values())]

    def _alone(self, size: Size, *, explains: bool = False) -> Attempt | None:
        """Returns the attempt at one size in a process of its own; None if the reference refuses it."""
        found = self._prepared(size)
        if not isinstance(found, Task):
            return None
        alone = replace(found, job=replace(found.job, following=None, explains=explains))
        return evaluate_until_failure([alone])[0]


def _depends_on_size(attempt: Attempt) -> bool:
    return attempt.failure is not None and attempt.failure.verdict.depends_on_shape


def _worst_error(attempt: Attempt) -> float:
    error = attempt.check.worst_error if attempt.check is not None else None
    return -1.0 if error is None else error
