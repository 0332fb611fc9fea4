"""Rivals: the solutions that others are compared with in the same run.

These are the library solution of each problem, and those that `--baseline solution:NAME` names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inlinebench.messages import Evaluate
from inlinebench.options.kinds import SOLUTION_BASELINE
from inlinebench.results.library import LIBRARY
from inlinebench.results.result import Result
from inlinebench.results.times import Baseline, ratio_of

Key = tuple[str, str, str]
"""Problem, shape, solution."""


class Rivals:
    """Holds results back until those of their rivals are known, and adds the speedups over these.

    `past` are results of an earlier run. Results on the CPU, where no speedup is measured, get none.
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
        if result.timing is None or not result.times_are_comparable:
            return result
        rivals = [self._found[key] for key in self._keys(result) if key in self._found]
        more = filter(None, (over(result, rival) for rival in rivals))
        return replace(result, timing=replace(result.timing, baselines=(*more, *result.timing.baselines)))

    def _keys(self, result: Result) -> list[Key]:
        return [_key(result.problem, result.shape, name) for name in self._names if name != result.solution]


def rival_names(baselines: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of rivals: that of library solutions first, then the solutions among the baselines."""
    named = (name.removeprefix(SOLUTION_BASELINE) for name in baselines if name.startswith(SOLUTION_BASELINE))
    return tuple(dict.fromkeys((LIBRARY, *named)))


def over(result: Result, rival: Result) -> Baseline | None:
    """Returns a rival as a baseline of a result: the speedup is the ratio of their speedups over the reference.

    Returns None if one of them has no times, or the rival's are too uncertain to divide by. Each result was paired with
    the reference in its own evaluation, so drift between the evaluations cancels. The interval divides opposite ends of
    both intervals, so it is conservative: too wide, never too narrow.
    """
    if result.timing is None or rival.timing is None:
        return None
    speedup = ratio_of(rival.timing.speedup, result.timing.speedup)
    if speedup is None:
        return None
    name = LIBRARY if rival.solution == LIBRARY else f"{SOLUTION_BASELINE}{rival.solution}"
    return Baseline(name, rival.timing.solution_ms, speedup)


def _key(problem: str, shape: str, solution: str) -> Key:
    return problem, shape, solution
