"""Solutions as baselines of others: speedups of one over the other, from evaluations of the same run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inlinebench.messages import Evaluate
from inlinebench.records.options import SOLUTION_BASELINE
from inlinebench.records.result import Baseline, Result, Spread

Key = tuple[str, str, str]
"""Problem, shape, solution."""


class Rivals:
    """The solutions that `--baseline solution:NAME` names, their results so far, and those that wait for them."""

    def __init__(self, baselines: Sequence[str], jobs: Sequence[Evaluate], past: Sequence[Result] = ()) -> None:
        self._names = rival_names(baselines)
        self._missing = {_key(job.problem_name, job.shape_name, job.solution_name) for job in jobs
                         if job.solution_name in self._names}
        self._found = {_key(result.problem, result.shape, result.solution): result for result in past}
        self._waiting: list[Result] = []

    def release(self, result: Result) -> list[Result]:
        """The results that are complete now that this one is there, with their speedups over the named solutions."""
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
    """The solutions among baselines."""
    return tuple(name.removeprefix(SOLUTION_BASELINE) for name in baselines if name.startswith(SOLUTION_BASELINE))


def over(result: Result, rival: Result) -> Baseline:
    """The speedup of one solution over another, both with times, as the ratio of their speedups over the reference.

    Each was paired with the reference of its own time, so that a drift between the two cancels. The ends of the
    interval are those of the one over the other ends of the other, which is wider than need be, never narrower.
    """
    assert result.timing is not None and rival.timing is not None
    mine, theirs = result.timing.speedup, rival.timing.speedup
    speedup = Spread(mine.median / theirs.median, mine.low / theirs.high, mine.high / theirs.low)
    return Baseline(f"{SOLUTION_BASELINE}{rival.solution}", rival.timing.solution_ms, speedup)


def _key(problem: str, shape: str, solution: str) -> Key:
    return problem, shape, solution
