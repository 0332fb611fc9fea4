"""Evaluates one solution at the workloads of a set, usually one, and decides which attempts count."""

from __future__ import annotations

from collections.abc import Sequence

from inlinebench.evaluation.attempt import Attempt, Task
from inlinebench.evaluation.failures import Failed
from inlinebench.evaluation.one_process import in_one_process
from inlinebench.problem.secret_random import SecretRandom
from inlinebench.results.result import Verdict

FIRST = "with the reference's weights in place of the solution's own, the solution was wrong: {}"
"""A remark on a solution that passed with its own weights."""
SECOND = ("with the solution's own weights instead of the reference's, the verdict was {}: {}; what is computed from "
          "weights, such as a packed copy, must be computed at the first call")
"""A remark on a solution that was wrong with both kinds of weights."""
RIGHT_ALONE = "passed in a process that had computed no other workload before: something of another size is kept"
"""A remark on a solution that failed at a workload only after others."""
OTHER_ORDER = "right in one order of the workloads, but not in the opposite one"
"""How the reason begins if a solution fails in the opposite order."""


def evaluate(tasks: Sequence[Task]) -> list[Attempt]:
    """Evaluates one solution at several workloads, usually one, and returns the attempts that count, in the same order.

    One process computes all workloads, in secret order. If it fails at one, another process begins with the workload
    that failed, unless that was the first one, and goes on with those that are left. So a failure after other workloads
    is told from a failure by itself; both count. If all pass, another process makes a few calls in the opposite order:
    what is kept from the first workload may fit all others in one order only.

    Raises ProblemError if the reference fails, and NoCandidate if no candidate process starts.
    """
    job = tasks[0].job
    secret = SecretRandom(tasks[0].tools.settings.seed, f"{job.problem_name}/{job.solution_name}/order")
    order = secret.sample(tasks, len(tasks))
    evaluation = _Evaluation(secret)
    evaluation.run(order)
    if len(tasks) > 1:
        evaluation.repeat(order[::-1])
    return [evaluation.found[task.workload.name] for task in tasks]


class _Evaluation:
    """The attempts at one solution so far, by the names of the workloads."""

    def __init__(self, secret: SecretRandom) -> None:
        self._secret = secret
        self.found: dict[str, Attempt] = {}
        self._own_weights: set[str] = set()

    def run(self, tasks: Sequence[Task]) -> None:
        """Finds the attempt that counts at each workload."""
        left, after_others = list(tasks), dict[str, Attempt]()
        while left:
            attempts = in_one_process(left, self._secret)
            last, attempt = left[len(attempts) - 1], attempts[-1]
            self.found |= {task.workload.name: each for task, each in zip(left, attempts, strict=False)}
            left = left[len(attempts) :]
            if attempt.failure is not None and len(attempts) > 1:
                after_others[last.workload.name] = attempt
                left = [last, *left]
            elif _may_need_own_weights(last, attempt):
                left = self._with_own_weights(last, left)
        for name, attempt in after_others.items():
            if self.found[name].failure is None:
                attempt.add_note(RIGHT_ALONE)
                self.found[name] = attempt

    def repeat(self, tasks: Sequence[Task]) -> None:
        """Makes a few calls at the workloads in another order. Nothing to do if the solution has failed already."""
        if any(attempt.failure is not None for attempt in self.found.values()):
            return
        for own in (False, True):
            some = [task for task in tasks if (task.workload.name in self._own_weights) is own]
            if len(some) < 2:
                continue
            attempts = in_one_process(some, self._secret, transfer=not own, brief=True)
            for task, attempt in zip(some, attempts, strict=False):
                if attempt.failure is not None:
                    self.found[task.workload.name].fail(OTHER_ORDER, attempt.failure)

    def _with_own_weights(self, task: Task, left: Sequence[Task]) -> list[Task]:
        """Tries a solution again, with the weights that it made itself under the public seed, and if that helps, goes
        on with the other workloads. Returns those that are left.

        A solution that folds or packs weights in its constructor needs this. Both kinds of weights are public, so
        passing with either is enough. Weights that do not fit show in the first call of a process; a solution that is
        wrong by chance gets no second attempt.
        """
        own, *others = in_one_process([task, *left], self._secret, transfer=False)
        self.found[task.workload.name] = _better(self.found[task.workload.name], own)
        passed = [each for each, attempt in zip(left, others, strict=False) if attempt.failure is None]
        self.found |= {each.workload.name: attempt for each, attempt in zip(left, others, strict=False)
                       if attempt.failure is None}
        if own.failure is None:
            self._own_weights |= {each.workload.name for each in (task, *passed)}
        return [each for each in left if each not in passed]


def _may_need_own_weights(task: Task, attempt: Attempt) -> bool:
    """Whether a solution that got the reference's weights may pass with its own. It was the first of its process."""
    check, failure = attempt.check, attempt.failure
    wrong_at_once = failure is not None and failure.verdict is Verdict.WRONG and check is not None and check.calls <= 1
    return wrong_at_once and task.workload.has_weights


def _better(first: Attempt, second: Attempt) -> Attempt:
    """Returns the attempt with the solution's own weights if it passed, or else the failed first one, with a remark."""
    assert first.failure is not None
    if second.failure is None:
        second.add_note(FIRST.format(_first_line(first.failure)))
        return second
    first.add_note(SECOND.format(second.failure.verdict, _first_line(second.failure)))
    return first


def _first_line(failure: Failed) -> str:
    return failure.reason.partition("\n")[0]
