"""Summarizes each solution name (`naive`, `fast`, …) over all problems: passed, mean speedup, fast_p.

fast_p is the share of tried problems that a solution passed with a speedup above p. Unlike the mean speedup over the
passed problems, it takes failures into account.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from inlinebench.foreign import one_line
from inlinebench.report.text import ABSENT, grid, percent, significant
from inlinebench.results.library import counted
from inlinebench.results.result import Result, Verdict

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
"""The p of fast_p."""

_LEGEND = ("mean speedup: geometric mean over passed problems; fast_p: share of tried problems passed with a speedup "
           "above p")


@dataclass(frozen=True)
class SolutionSummary:
    """The summary of one solution name over all problems, or over the problems of a level."""

    solution: str
    """The solution name."""
    tried: int
    """The number of problems that were tried."""
    passed: int
    """The number of problems that passed."""
    speedup: float | None
    """The geometric mean of the speedups of passed problems; None if unknown."""
    fast: Mapping[float, float | None]
    """fast_p by p, from 0 to 1; None if unknown."""
    level: int | None = None
    """The level; None for all problems."""
    derived: int = 0
    """The number of problems, out of those that did not pass, that failed only at a derived shape."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one solution of one problem over all shapes."""

    passed: bool
    """Whether it passed at every shape that was tried."""
    speedup: float | None
    """Its speedup; None if it did not pass or has no times."""
    derived: bool = False
    """Whether it failed only at a derived shape."""


def summary(results: Sequence[Result]) -> tuple[SolutionSummary, ...]:
    """Returns a summary for each solution name, sorted; if problems have several levels, also one for each level.

    Verdicts that say something about the solution count as tried. So does a missing compiler: it fails the whole run,
    and the summary must show that.

    Shapes that were not tried are left out. A problem is passed if at least one shape was tried and all tried shapes
    passed. Its speedup is that at shape `full`, or else the geometric mean over its shapes, weighted for a set of
    workloads. If a passed problem has no speedup (with `--check`, or on the CPU), the mean and every fast_p above 0 are
    unknown. If no problem passed, the mean is absent, and every fast_p is 0. Library solutions have a summary only if
    there are no other solutions.
    """
    solutions: dict[str, dict[str, list[Result]]] = {}
    for result in counted(results):
        solutions.setdefault(result.solution, {}).setdefault(result.problem, []).append(result)
    found = []
    for name, problems in sorted(solutions.items()):
        found.append(_summarize(name, problems.values()))
        levels = {each[0].level for each in problems.values()} - {None}
        for level in sorted(filter(None, levels)) if len(levels) > 1 else ():
            of_level = [each for each in problems.values() if each[0].level == level]
            found.append(replace(_summarize(name, of_level), level=level))
    return tuple(found)


_DROPPED_FIRST = (0.5, 0.8, 1.5, 0.0, 2.0)
"""The p of fast_p that are left out one by one, in this order, if the table is wider than the terminal."""


def render(summaries: Sequence[SolutionSummary], width: int | None = None) -> str:
    """Returns the summaries as a table with a legend; empty without summaries. Thresholds are left out to fit a width.
    """
    if not summaries:
        return ""
    for count in range(len(_DROPPED_FIRST) + 1):
        text = _rendered(summaries, [p for p in THRESHOLDS if p not in _DROPPED_FIRST[:count]])
        if width is None or max(map(len, text.splitlines())) <= width:
            break
    return text + "\n" + _LEGEND


def _rendered(summaries: Sequence[SolutionSummary], thresholds: Sequence[float]) -> str:
    derived = any(entry.derived for entry in summaries)
    headers = ["solution", "tried", "passed", *(["failed derived"] if derived else []), "mean speedup",
               *(f"fast_{p:g}" for p in thresholds)]
    rows = [
        [
            one_line(entry.solution) if entry.level is None else f"  level {entry.level}",
            str(entry.tried),
            str(entry.passed),
            *([str(entry.derived)] if derived else []),
            ABSENT if entry.speedup is None else significant(entry.speedup),
            *(percent(entry.fast[p]) for p in thresholds),
        ]
        for entry in summaries
    ]
    return grid(headers, rows, ["left", *["right"] * (len(headers) - 1)])


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
    derived = sum(attempt.derived for attempt in attempts)
    return SolutionSummary(solution, len(attempts), len(passed), mean, fast, derived=derived)


def attempt_of(shapes: Sequence[Result]) -> Outcome | None:
    """Returns the outcome of one problem over its shapes; None if no shape was tried."""
    tried = [result for result in shapes if result.verdict.is_about_solution]
    if not tried:
        return None
    passed = all(result.verdict is Verdict.PASSED for result in tried)
    measured = [result for result in tried if result.is_full] or tried
    weighted = [(speedup, each.weight or 1.0) for each in measured if (speedup := _speedup(each)) is not None]
    known = passed and len(weighted) == len(measured)
    derived = not passed and all(result.verdict is Verdict.PASSED or result.failed_derived for result in tried)
    return Outcome(passed, _mean(*zip(*weighted, strict=True)) if known else None, derived)


def _speedup(result: Result) -> float | None:
    if result.timing is None or not result.times_are_comparable:
        return None
    speedup = result.timing.speedup.median
    return speedup if 0 < speedup < math.inf else None


def _mean(speedups: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Returns the geometric mean. A single value is returned exactly: rounding must not move it over a threshold."""
    if len(speedups) == 1:
        return speedups[0]
    return math.exp(fmean(map(math.log, speedups), weights))
