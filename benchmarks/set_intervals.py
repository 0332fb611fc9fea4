"""Measures how often the interval of a set's mean speedup contains the true mean.

Calls are simulated: each workload has a true speedup, and the ratio of a call differs from it by noise of the
calls, with some disturbed calls, by the error of the clock, and by an error that all workloads of a process share.
The intervals are those of the harness. An interval of 95 % should contain the truth in 93 to 97 % of the trials; in
more where the error of the clock is as large as the noise, because its bound is added in full.

    python benchmarks/set_intervals.py [--trials N]
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from inlinebench.results.times import REPEATABILITY, Spread, mean_speedup
from inlinebench.timing.statistics import RESOLUTION_MS, median_interval, widen_by_clock

DISTURBED = 0.05
"""The share of calls that something else slows down."""


@dataclass(frozen=True)
class Case:
    """What is simulated."""

    workloads: int
    """The number of workloads of the set."""
    calls: int
    """The number of counted calls of each."""
    noise: float
    """The relative standard deviation of the ratio of one call."""
    ms: float
    """The time of a call in ms, against which the clock's error counts."""


CASES = (
    Case(8, 20, 0.03, 1.0), Case(16, 20, 0.03, 1.0), Case(16, 20, 0.1, 1.0), Case(8, 60, 0.03, 1.0),
    Case(16, 60, 0.1, 1.0), Case(4, 20, 0.1, 1.0), Case(1, 40, 0.1, 1.0), Case(16, 20, 0.003, 1.0),
    Case(16, 20, 0.01, 0.02),
)


def contains(case: Case, secret: random.Random) -> bool:
    """Simulates one evaluation of a set. Returns whether the interval contains the true mean."""
    shared = secret.uniform(-REPEATABILITY, REPEATABILITY) / 2
    truth, speedups = 0.0, []
    weights = [secret.choice((1.0, 1.0, 2.0)) for _ in range(case.workloads)]
    for weight in weights:
        true = math.exp(secret.gauss(0.3, 0.5))
        truth += weight * math.log(true)
        clock = secret.uniform(-RESOLUTION_MS, RESOLUTION_MS) / 2 / case.ms
        speedups.append((_measured(case, true * (1 + shared) * (1 + clock), secret), weight))
    mean = mean_speedup(speedups)
    assert mean is not None
    return mean.low <= math.exp(truth / math.fsum(weights)) <= mean.high


def _measured(case: Case, true: float, secret: random.Random) -> Spread:
    """Returns the speedup of a workload as the harness reports it."""
    ratios = []
    for _ in range(case.calls):
        disturbed = secret.choice((1.3, 1 / 1.3)) if secret.random() < DISTURBED else 1.0
        ratios.append(true * disturbed * math.exp(secret.gauss(0.0, case.noise)))
    interval = median_interval(ratios, secret.randrange(1 << 30))
    low, middle, high = widen_by_clock(interval, case.ms, case.ms)
    return Spread(middle, low, high)


def coverage(case: Case, trials: int, seed: int = 0) -> float:
    """Returns the share of trials whose interval contains the truth."""
    secret = random.Random(f"{seed} {case}")
    return sum(contains(case, secret) for _ in range(trials)) / trials


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the coverage of each case."""
    parser = argparse.ArgumentParser(description="coverage of the interval of a set's mean speedup")
    parser.add_argument("--trials", type=int, default=400)
    trials = parser.parse_args(arguments).trials
    print("workloads  calls  noise  ms    coverage")
    for case in CASES:
        found = coverage(case, trials)
        error = math.sqrt(found * (1 - found) / trials)
        print(f"{case.workloads:9}  {case.calls:5}  {case.noise:5.1%}  {case.ms:<4g}  {found:.1%} ± {error:.1%}",
              flush=True)


if __name__ == "__main__":
    main()
