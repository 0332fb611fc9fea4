"""Rivals: solutions that `--baseline solution:NAME` uses as baselines of other solutions in the same run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inlinebench.messages import Evaluate
from inlinebench.records.options import SOLUTION_BASELINE
from inlinebench.records.result import Result
from inlinebench.records.times import Baseline, Spread

Key = tuple[str, str, str]
"""Problem, shape, solution."""


class Rivals:
    """Holds results back until those of their rivals are known, and adds the speedups over these.

    `past` are results of an earlier run.
    """

    def __init__(self, baselines: Sequence[str], jobs: Sequence[Evaluate], past: Sequence[Result] = ()) -> None:
        self._names = rival_names(baselines)
        self._missing = {_key(job.problem_name, job.shape_name, job.solution_name) for job in jobs
                         if job.solution_name in self._names}
        self._found = {_key(result.problem, result.shape, result.solution): result for result in past}
        self._waiting: list[Result] = []

    def release(self, result: Result) -> list[Result]:
        """Takes a new result, and returns the results that are complete now, with their speedups over rivals."""
        self._waiting.append(result)
        key = _key(result.problem, result.shape, result.solution)
        if key in self._missing:
            self._missing.remove(key)
            self._found[key] = result
        ready = [each for each in self._waiting if not self._missing.intersection(self._keys(each))]
        self._waiting = [each for each in self._waiting if each not in ready]
        return [self._compared(each) for each in ready]

    def _compared(self, result: Result) -> Result:
        if result.timing is None:
            return result
        rivals = [self._found[key] for key in self._keys(result) if key in self._found]
        more = tuple(over(result, rival) for rival in rivals if rival.timing is not None)
        return replace(result, timing=replace(result.timing, baselines=(*result.timing.baselines, *more)))

    def _keys(self, result: Result) -> list[Key]:
        return [_key(result.problem, result.shape, name) for name in self._names if name != result.solution]


def rival_names(baselines: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of the solutions among the baselines."""
    return tuple(name.removeprefix(SOLUTION_BASELINE) for name in baselines if name.startswith(SOLUTION_BASELINE))


def over(result: Result, rival: Result) -> Baseline:
    """Returns a rival as a baseline of a result: the speedup is the ratio of their speedups over the reference.

    Both results need times. Each was paired with the reference in its own evaluation, so drift between the evaluations
    cancels. The interval divides opposite ends of both intervals, so it is conservative: too wide, never too narrow.
    """
    assert result.timing is not None and rival.timing is not None
    mine, theirs = result.timing.speedup, rival.timing.speedup
    speedup = Spread(mine.median / theirs.median, mine.low / theirs.high, mine.high / theirs.low)
    return Baseline(f"{SOLUTION_BASELINE}{rival.solution}", rival.timing.solution_ms, speedup)


def _key(problem: str, shape: str, solution: str) -> Key:
    return problem, shape, solution
