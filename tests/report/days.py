"""Invented results of a suite that is evaluated daily on two GPUs of one model, for tests of histories."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from inlinebench.report.history.collected import ResultsOfRun
from inlinebench.results.result import Environment, Result, Verdict
from inlinebench.results.times import Spread, Timing

from .samples import result

H100 = Environment("2.11.0", "0.3.0", gpu="NVIDIA H100 80GB HBM3", driver="580.65.06", cuda="13.0")


def timed(name: str, solution_ms: float, reference_ms: float, environment: Environment = H100) -> Result:
    """Returns a passed result with these times."""
    speedup = reference_ms / solution_ms
    timing = Timing(Spread(reference_ms, reference_ms * 0.99, reference_ms * 1.01, 50),
                    Spread(solution_ms, solution_ms * 0.99, solution_ms * 1.01, 50),
                    Spread(speedup, speedup * 0.997, speedup * 1.003))
    return result(name, timing=timing, environment=environment, key="same")


def days(
    count: int = 30, problems: int = 12, *, changes: Mapping[str, tuple[int, float]] = {}, seed: int = 0,
    noise: float = 0.005, machine: float = 0.01, machines: Sequence[int] = (0, 1),
) -> list[ResultsOfRun]:
    """Returns a run for each day. Solution `fast` of problem `pN` takes 0.1 (N + 1) ms, and half as long as its
    reference.

    `changes` has the day from which the time of a row is multiplied, and the factor, by `problem/solution`. `machines`
    are the numbers of the GPUs of the days, repeated.
    """
    generator = random.Random(seed)
    factors = [1 + generator.gauss(0, machine) for _ in range(max(machines) + 1)]
    runs = []
    for day in range(count):
        found = []
        for number in range(problems):
            name, usual = f"p{number}/fast", 0.1 * (number + 1) * factors[machines[day % len(machines)]]
            since, factor = changes.get(name, (count, 1.0))
            solution, reference = (usual * (1 + generator.gauss(0, noise)) for _ in range(2))
            outlier = 1.1 if generator.random() < 0.01 else 1.0
            found.append(timed(name, solution * outlier * (factor if day >= since else 1.0), 2 * reference))
        runs.append(ResultsOfRun(f"day{day + 1:02}", found))
    return runs


def failing(run: ResultsOfRun, name: str, verdict: Verdict = Verdict.WRONG, reason: str = "because") -> ResultsOfRun:
    """Returns a run in which a row did not pass."""
    return replace(run, results=[
        result(name, verdict, reason=reason, environment=H100) if f"{each.problem}/{each.solution}" == name else each
        for each in run.results])
