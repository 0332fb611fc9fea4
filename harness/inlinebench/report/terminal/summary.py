"""How each set of solutions (`naive`, `fast`, …) did over all problems: passed, mean speedup, fast_p.

fast_p is the share of the problems tried that a solution passed with a speedup above p; it answers "how often would I
be better off with this one?", where a mean over the passed ones alone hides what failed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean

from inlinebench.records.result import Result, Verdict
from inlinebench.report.text import ABSENT, grid, one_line, percent, significant

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
"""The p of fast_p."""

NOT_TRIED = frozenset({Verdict.SKIPPED, Verdict.PROBLEM_ERROR, Verdict.INTERNAL_ERROR})
"""Verdicts that say nothing of the solution."""

_LEGEND = "mean speedup: geometric, over the passed; fast_p: share of the tried that passed with a speedup above p"


@dataclass(frozen=True)
class SolutionSummary:
    """One solution name over all problems, or over those of a level. `speedup` and the shares in `fast` (by p, 0 to 1)
    are None if unknown."""

    solution: str
    tried: int
    passed: int
    speedup: float | None
    fast: Mapping[float, float | None]
    level: int | None = None


@dataclass(frozen=True)
class Attempt:
    """One solution of one problem, over its shapes; the speedup is None where it didn't pass or has no time."""

    passed: bool
    speedup: float | None


def summary(results: Iterable[Result]) -> tuple[SolutionSummary, ...]:
    """One summary for each solution name, by name; with several levels of problems, one more for each of them.

    Which verdicts count as tried, and why:
    - `passed`: yes.
    - `wrong`, `rejected`, `crashed`, `timed_out`, `out_of_memory`, `invalid`, `build_failed`: yes, and as not passed.
      Whoever picks this solution gets no right answer from it. That holds for a missing compiler, too: it fails the
      whole run, which must not read as if nothing had been wrong.
    - `skipped`: no, this machine couldn't run it. `problem_error`: no, there was nothing to compare with.
      `internal_error`: no, that is the harness's fault. None of them says anything of the solution.

    Shapes that weren't tried are left out; a problem is passed if it was tried at one shape or more and passed at all
    of those. Its speedup is the one at shape `full`, otherwise the geometric mean over its shapes. Where a passed
    problem has no speedup (`--check`, or the CPU, where it would mean nothing), the mean and every fast_p above 0 are
    unknown; where no problem passed there is no mean, and each fast_p is 0.
    """
    solutions: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        solutions.setdefault(result.solution, {}).setdefault(result.problem, []).append(result)
    found = []
    for name, problems in sorted(solutions.items()):
        found.append(_summarize(name, problems.values()))
        levels = {each[0].level for each in problems.values()} - {None}
        for level in sorted(filter(None, levels)) if len(levels) > 1 else ():
            of_level = [each for each in problems.values() if each[0].level == level]
            found.append(replace(_summarize(name, of_level), level=level))
    return tuple(found)


def render(summaries: Sequence[SolutionSummary]) -> str:
    """The summaries as a table, and what its columns mean; empty if there are none."""
    if not summaries:
        return ""
    headers = ["solution", "tried", "passed", "mean speedup", *(f"fast_{p:g}" for p in THRESHOLDS)]
    rows = [
        [
            one_line(entry.solution) if entry.level is None else f"  level {entry.level}",
            str(entry.tried),
            str(entry.passed),
            ABSENT if entry.speedup is None else significant(entry.speedup),
            *(percent(entry.fast[p]) for p in THRESHOLDS),
        ]
        for entry in summaries
    ]
    return grid(headers, rows, ["left", *["right"] * (len(headers) - 1)]) + "\n" + _LEGEND


def _summarize(solution: str, problems: Iterable[Sequence[Result]]) -> SolutionSummary:
    attempts = [attempt for attempt in map(attempt_of, problems) if attempt is not None]
    passed = [attempt for attempt in attempts if attempt.passed]
    speedups = [attempt.speedup for attempt in passed if attempt.speedup is not None]
    timed = len(speedups) == len(passed)
    fast: dict[float, float | None] = dict.fromkeys(THRESHOLDS)
    if attempts:
        fast[0.0] = len(passed) / len(attempts)
    if attempts and timed:
        fast |= {p: sum(speedup > p for speedup in speedups) / len(attempts) for p in THRESHOLDS}
    mean = _mean(speedups) if speedups and timed else None
    return SolutionSummary(solution, len(attempts), len(passed), mean, fast)


def attempt_of(shapes: Sequence[Result]) -> Attempt | None:
    """One problem's outcome; None if no shape of it was tried."""
    tried = [result for result in shapes if result.verdict not in NOT_TRIED]
    if not tried:
        return None
    passed = all(result.verdict is Verdict.PASSED for result in tried)
    measured = [result for result in tried if result.shape == "full"] or tried
    speedups = [speedup for speedup in map(_speedup, measured) if speedup is not None]
    known = passed and len(speedups) == len(measured)
    return Attempt(passed, _mean(speedups) if known else None)


def _speedup(result: Result) -> float | None:
    if result.timing is None or result.device == "cpu":
        return None
    speedup = result.timing.speedup.median
    return speedup if 0 < speedup < math.inf else None


def _mean(speedups: Sequence[float]) -> float:
    """The geometric mean; a single value exactly as it is, so that it compares with a threshold as it was measured."""
    return speedups[0] if len(speedups) == 1 else geometric_mean(speedups)
