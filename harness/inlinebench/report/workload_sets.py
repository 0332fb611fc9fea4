"""Answers for sets of workloads: how many passed, the mean speedup with its interval, and the worst workload.

The mean is the weighted geometric mean of the speedups. It is over the declared workloads, which are not a sample: the
interval says how well this mean is known, and nothing about other sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inlinebench.catalog.natural_sort import natural
from inlinebench.foreign import one_line
from inlinebench.report.comparison import Change, by_interval, latest
from inlinebench.report.text import ABSENT, interval
from inlinebench.results.library import LIBRARY
from inlinebench.results.result import Result, Verdict
from inlinebench.results.times import Spread, mean_speedup, ratio_of

HEADERS = ("problem", "solution", "passed", "mean speedup", "worst workload", "its speedup")
LEGEND = "mean speedup of a set: weighted geometric mean over its workloads, with a 95% interval; only if all pass"


@dataclass(frozen=True)
class SetAnswer:
    """The answer for one solution at the set of its problem."""

    problem: str
    """The problem."""
    solution: str
    """The solution."""
    workloads: int
    """The number of workloads."""
    passed: int
    """The number of those that it passed."""
    speedup: Spread | None
    """The mean speedup; None if a workload did not pass or has no comparable times."""
    worst: Result | None
    """The result of a workload that did not pass, or else that with the lowest speedup; None if there are no times."""

    @property
    def name(self) -> str:
        """Problem and solution."""
        return f"{one_line(self.problem)}/{one_line(self.solution)}"

    @property
    def share(self) -> str:
        """How many workloads passed, in words."""
        return f"{self.passed} of {self.workloads}"

    @property
    def cells(self) -> list[str]:
        """The texts of its row, one for each of `HEADERS`."""
        worst, timing = self.worst, self.worst.timing if self.worst else None
        its = ABSENT if worst is None else interval(timing.speedup) if timing else str(worst.verdict)
        return [one_line(self.problem), one_line(self.solution), self.share,
                ABSENT if self.speedup is None else interval(self.speedup),
                ABSENT if worst is None else one_line(worst.shape), its]


def answers(results: Iterable[Result]) -> tuple[SetAnswer, ...]:
    """Returns the answers for all sets among the latest results, in natural order of problem and solution.

    A workload that was skipped, or at which the problem or the harness failed, is not passed: a mean without it would
    be that of another set.
    """
    sets: dict[tuple[str, str, bool], list[Result]] = {}
    for result in latest(results):
        if result.weight is not None:
            sets.setdefault((result.problem, result.solution, result.times_are_comparable), []).append(result)
    found = [_answer(each) for each in sets.values()]
    return tuple(sorted(found, key=lambda each: (natural(each.problem), natural(each.solution))))


def _answer(results: Sequence[Result]) -> SetAnswer:
    failed = sorted((each for each in results if each.verdict is not Verdict.PASSED),
                    key=lambda each: not each.verdict.is_about_solution)
    timed = [(each.timing.speedup, each) for each in results if each.timing is not None and each.times_are_comparable]
    complete = len(timed) == len(results)
    mean = mean_speedup([(speedup, each.weight or 1.0) for speedup, each in timed]) if complete else None
    slowest = min(timed, key=lambda pair: pair[0].median)[1] if timed else None
    return SetAnswer(results[0].problem, results[0].solution, len(results), len(results) - len(failed), mean,
                     failed[0] if failed else slowest)


def compared(before: Iterable[Result], after: Iterable[Result]) -> list[tuple[Change, str]]:
    """Returns how each set in both of two runs has changed, in a line. Those of library solutions are left out.

    The mean may be slower although no workload is, because its interval is narrower.
    """
    old = {each.name: each for each in answers(before)}
    lines: list[tuple[Change, str]] = []
    for new in answers(after):
        if (was := old.get(new.name)) is None or new.solution == LIBRARY:
            continue
        ratio = ratio_of(was.speedup, new.speedup)
        change = by_interval(ratio)
        if ratio is not None and change is not Change.SAME:
            lines.append((change, f"set of {new.name}: {change}, mean speedup {interval(ratio)} times as high"))
        elif was.share != new.share:
            change = Change.NOW_PASSING if new.passed == new.workloads else Change.NOW_FAILING
            lines.append((change, f"set of {new.name}: {was.share} workloads passed before, {new.share} now"))
    return lines
