"""Evaluates one solution at the workloads of a set, usually one, and decides which attempts count."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from inlinebench.evaluation.attempt import Attempt, Task
from inlinebench.evaluation.failures import Failed
from inlinebench.evaluation.one_process import in_one_process
from inlinebench.evaluation.repeats import PROCESSES, STATEFUL, Repeats
from inlinebench.problem.secret_random import SecretRandom
from inlinebench.results.result import Verdict

FIRST = "with the reference's weights in place of the solution's own, the solution was wrong: {}"
"""A remark on a solution that passed with its own weights."""
SECOND = ("with the solution's own weights instead of the reference's, the verdict was {}: {}; what is computed from "
          "weights, such as a packed copy, must be computed at the first call")
"""A remark on a solution that was wrong with both kinds of weights."""
RIGHT_ALONE = ("right in a process that had computed no other workload before, but not after others, so something of "
               "another size is kept")
"""How the reason begins if a solution fails at a workload only after others."""
FITS_ALONE = ("fits in a process that had computed no other workload before, but not after others, so too much of "
              "other sizes is kept, or the set is too large for the device")
"""How the reason begins if a solution runs out of memory at a workload only after others."""
FEW = 8
"""The number of workloads that are tried in the opposite order, if not all are."""
ANOTHER_PROCESS = "right at first, but not in the further processes of --determinism"
"""How the reason begins if a solution that has passed fails when its calls are repeated."""
OTHER_ORDER = "right in one order of the workloads, but not in the opposite one"
"""How the reason begins if a solution fails in the opposite order."""


def evaluate(tasks: Sequence[Task]) -> list[Attempt]:
    """Evaluates one solution at several workloads, usually one, and returns the attempts that count, in the same order.

    First, the reference's weights are copied into the solution. If its first call in a process is wrong and the
    reference has weights, all is repeated with those that the solution made itself under the public seed. A solution
    that folds or packs weights in its constructor needs this. Both kinds of weights are public, so those with which it
    passes more workloads count, for all of them. Weights that do not fit show in the first call of a process; a
    solution that is wrong by chance gets no second try.

    Raises ProblemError if the reference fails, and NoCandidate if no candidate process starts.
    """
    found = _evaluate(tasks, stops=False)
    return [found[place] for place in range(len(tasks))]


def evaluate_until_failure(tasks: Sequence[Task]) -> dict[int, Attempt]:
    """Evaluates one solution at several workloads as `evaluate` does, until it fails at one. Returns the attempts at
    those that it has come to, by their places among the tasks."""
    return _evaluate(tasks, stops=True)


def _evaluate(tasks: Sequence[Task], *, stops: bool) -> dict[int, Attempt]:
    job = tasks[0].job
    secret = SecretRandom(tasks[0].tools.settings.seed, f"{job.problem_name}/{job.solution_name}/order")
    order = secret.sample(range(len(tasks)), len(tasks))
    in_order = [tasks[place] for place in order]
    first = _Evaluation(in_order, secret, transfer=True, stops=stops)
    chosen: Sequence[Attempt] = first.attempts
    if first.may_need_own_weights:
        chosen = _better(chosen, _Evaluation(in_order, secret, transfer=False, stops=stops).attempts)
    if tasks[0].tools.settings.determinism:
        _repeat(in_order, chosen, secret, transfer=chosen is first.attempts)
    return dict(zip(order, chosen, strict=False))


def _repeat(tasks: Sequence[Task], attempts: Sequence[Attempt], secret: Random, *, transfer: bool) -> None:
    """Adds to those that passed whether they compute the same bits for the same inputs, also in other processes."""
    measured = list[tuple[Task, Attempt, Repeats]]()
    for task, attempt in zip(tasks, attempts, strict=False):
        if attempt.failure is not None:
            continue
        task.tools.progress("preparing calls on the same inputs")
        repeats = Repeats(task.workload, task.tools.settings.seed, f"{task.job.problem_name}/{task.job.shape_name}")
        if repeats.prepare():
            measured.append((task, attempt, repeats))
        else:
            attempt.add_note(STATEFUL)
        task.workload.release()
    for _ in range(PROCESSES if measured else 0):
        further = in_one_process([task for task, _, _ in measured], secret, transfer=transfer, brief=True,
                                 last_round=False, repeats=[repeats for _, _, repeats in measured])
        for (_, attempt, _), again in zip(measured, further, strict=False):
            if again.failure is not None:
                attempt.fail(ANOTHER_PROCESS, again.failure)
                return
    for _, attempt, repeats in measured:
        attempt.repeats = repeats.summary()


class _Evaluation:
    """The attempts at one solution with one kind of weights: the reference's if `transfer`, or else its own.

    One process computes all workloads, in order. If it fails at one, another process begins with the workload that
    failed, unless that was the first one, and goes on with those that are left. So a failure after other workloads is
    told from a failure by itself; both count. If all pass, another process makes a few calls in the opposite order:
    what is kept from the first workload may fit all others in one order only.

    If it `stops`, there are no attempts after the first failure, and the opposite order is tried for `FEW` workloads
    only: among many, what is kept of one rarely fits all later ones.
    """

    def __init__(self, tasks: Sequence[Task], secret: Random, *, transfer: bool, stops: bool) -> None:
        self._tasks, self._secret, self._transfer, self._stops = tasks, secret, transfer, stops
        self.may_need_own_weights = False
        """Whether the first call of a process was wrong with the reference's weights."""
        self.attempts: list[Attempt] = []
        """The attempts, in order."""
        self._run()
        if len(tasks) > 1 and all(attempt.failure is None for attempt in self.attempts):
            self._run_in_opposite_order()

    def _run(self) -> None:
        after_others: Attempt | None = None
        while len(self.attempts) < len(self._tasks) and not (self._stops and _failed(self.attempts)):
            left = self._tasks[len(self.attempts) :]
            if self._stops and after_others is not None:
                left = left[:1]
            attempts = in_one_process(left, self._secret, transfer=self._transfer, last_round=not self._stops)
            if after_others is not None and attempts[0].failure is None:
                assert after_others.failure is not None
                memory = after_others.failure.verdict is Verdict.OUT_OF_MEMORY
                after_others.fail(FITS_ALONE if memory else RIGHT_ALONE, after_others.failure)
                attempts[0] = after_others
            elif self._transfer and left[0].workload.has_weights:
                self.may_need_own_weights |= _is_wrong_at_once(attempts[0])
            after_others = None
            if attempts[-1].failure is not None and len(attempts) > 1:
                after_others = attempts.pop()
            self.attempts += attempts

    def _run_in_opposite_order(self) -> None:
        tasks = self._tasks[: -FEW - 1 : -1] if self._stops else self._tasks[::-1]
        again = in_one_process(
            tasks, self._secret, transfer=self._transfer, brief=True, last_round=not self._stops)
        for attempt, brief in zip(self.attempts[::-1], again, strict=False):
            if brief.failure is not None:
                attempt.fail(OTHER_ORDER, brief.failure)


def _is_wrong_at_once(attempt: Attempt) -> bool:
    check, failure = attempt.check, attempt.failure
    return failure is not None and failure.verdict is Verdict.WRONG and check is not None and check.calls <= 1


def _better(first: Sequence[Attempt], second: Sequence[Attempt]) -> Sequence[Attempt]:
    """Returns the attempts with the solution's own weights if more of them passed, or else those with the reference's,
    with remarks on what was wrong with the other weights."""
    own = _passed(second) > _passed(first)
    chosen, others = (second, first) if own else (first, second)
    for attempt, other in zip(chosen, others, strict=False):
        if other.failure is not None and (attempt.failure is None) is own:
            reason = _first_line(other.failure)
            attempt.add_note(FIRST.format(reason) if own else SECOND.format(other.failure.verdict, reason))
    return chosen


def _failed(attempts: Sequence[Attempt]) -> bool:
    return any(attempt.failure is not None for attempt in attempts)


def _passed(attempts: Sequence[Attempt]) -> int:
    return sum(attempt.failure is None for attempt in attempts)


def _first_line(failure: Failed) -> str:
    return failure.reason.partition("\n")[0]
