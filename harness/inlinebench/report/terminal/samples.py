"""Summarizes a model's samples by level: pass@k and fast_p.

pass@k is the probability that at least one of k samples passes. They are drawn without replacement from the n samples
of a problem, of which c passed: 1 - C(n-c, k) / C(n, k), the unbiased estimator of Chen et al., "Evaluating Large
Language Models Trained on Code" (2021), section 2.1, averaged over the problems. fast_p is the same for k = 1, where a
sample counts if it passed with a speedup above p.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean

from inlinebench.report.terminal.summary import THRESHOLDS, attempt_of
from inlinebench.report.text import ABSENT, grid, percent
from inlinebench.results.result import Result

KS = (1, 5, 10, 50, 100)
"""The k of pass@k. A level has only those k for which all its problems have enough samples."""
_SAMPLE = re.compile(r"sample_[0-9]+")
_LEGEND = "pass@k: chance that one of k samples passes; fast_p: share of samples that passed with a speedup above p"


@dataclass(frozen=True)
class LevelSummary:
    """The summary of the samples of one level."""

    level: int | None
    """The level; None for problems without one."""
    problems: int
    """The number of problems."""
    samples: int
    """The number of samples that were tried."""
    passed: Mapping[int, float]
    """pass@k by k, from 0 to 1."""
    fast: Mapping[float, float | None]
    """fast_p by p, from 0 to 1; None if a passed sample has no speedup."""


def is_sample(result: Result) -> bool:
    """Whether a solution is one of a model's samples, judged by its name (`sample_3`)."""
    return _SAMPLE.fullmatch(result.solution) is not None


def pass_at(k: int, samples: int, passed: int) -> float:
    """Returns the estimate of pass@k for one problem.

    Raises ValueError if there are fewer samples than `k` or than `passed`.
    """
    if not (1 <= k <= samples and 0 <= passed <= samples):
        raise ValueError(f"pass@{k} of {samples} samples, of which {passed} passed")
    return 1.0 - comb(samples - passed, k) / comb(samples, k)


def summary(results: Iterable[Result]) -> tuple[LevelSummary, ...]:
    """Returns a summary for each level with samples. Verdicts count as tried as in
    `inlinebench.report.terminal.summary`."""
    levels: dict[int | None, dict[str, dict[str, list[Result]]]] = {}
    for result in filter(is_sample, results):
        if result.verdict.is_about_solution:
            problems = levels.setdefault(result.level, {})
            problems.setdefault(result.problem, {}).setdefault(result.solution, []).append(result)
    return tuple(_summarize(level, [list(samples.values()) for samples in levels[level].values()])
                 for level in sorted(levels, key=lambda level: -1 if level is None else level))


def render(summaries: Sequence[LevelSummary]) -> str:
    """Returns the summaries as a table with a legend; empty without summaries."""
    if not summaries:
        return ""
    ks = [k for k in KS if any(k in entry.passed for entry in summaries)]
    thresholds = [p for p in THRESHOLDS if p > 0]
    headers = ["level", "problems", "samples", *(f"pass@{k}" for k in ks), *(f"fast_{p:g}" for p in thresholds)]
    rows = [[ABSENT if entry.level is None else str(entry.level), str(entry.problems), str(entry.samples),
             *(percent(entry.passed.get(k)) for k in ks), *(percent(entry.fast[p]) for p in thresholds)]
            for entry in summaries]
    return grid(headers, rows, ["right"] * len(headers)) + "\n" + _LEGEND


def _summarize(level: int | None, problems: Sequence[Sequence[Sequence[Result]]]) -> LevelSummary:
    attempts = [[attempt for attempt in map(attempt_of, samples) if attempt is not None] for samples in problems]
    fewest = min(map(len, attempts))
    passed = {k: fmean(pass_at(k, len(each), sum(one.passed for one in each)) for each in attempts)
              for k in KS if k <= fewest}
    timed = all(one.speedup is not None for each in attempts for one in each if one.passed)
    fast = {p: fmean(fmean((one.speedup or 0.0) > p for one in each) for each in attempts) if timed else None
            for p in THRESHOLDS}
    return LevelSummary(level, len(attempts), sum(map(len, attempts)), passed, fast)
