"""Measures by simulation what `--at-least` saves, and how often its answer is wrong.

    python benchmarks/at_least.py                  500 evaluations of each kind of noise; some minutes
    python benchmarks/at_least.py --cases 100      fewer
    python benchmarks/at_least.py --real FULL.jsonl EARLY.jsonl      results of two runs on one GPU instead, the second
                                                                     one with `--at-least 1`

The simulation needs no GPU. Times are lognormal around those of a reference of 1 ms and of a solution whose speedup is
drawn from 0.5 to 2, on a scale of logarithms; in every fifth evaluation, it is at most 3 % from the value of
`--at-least`, 1. A drift moves reference and solution alike. 1 of 10 calls of the solution has no usable time, and 1 of
100 times is 2 to 30 % longer. What samples, decides and makes the intervals is the harness's own code. The answer is
`yes` or `no` if the interval is above or below 1, and none if it contains 1. An answer is wrong if the speedup as
drawn says the opposite; of real results, if the first run's answer is the opposite. Exits with status 1 if 2 % of the
answers or more are wrong.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "harness"))

from inlinebench.options.judge import JudgeOptions  # noqa: E402
from inlinebench.results.jsonl import read  # noqa: E402
from inlinebench.results.result import Result  # noqa: E402
from inlinebench.timing.statistics import clock_share, median_interval, paired_ratios, widen_by_clock  # noqa: E402
from inlinebench.timing.stopping import Sampling  # noqa: E402

AT_LEAST = 1.0
DEFAULTS = JudgeOptions()
FULL = Sampling(DEFAULTS.min_calls, DEFAULTS.max_calls, DEFAULTS.time_budget, DEFAULTS.half_width)
NEAR, NEAR_SHARE = 0.03, 0.2
UNUSABLE, DISTURBED = 0.1, 0.01
MOST_WRONG = 0.02
"""The bar: the share of wrong answers."""
CALL_S = 0.005
"""How much of the time budget each counted call takes."""


@dataclass(frozen=True)
class Noise:
    """Noise of times. Standard deviations are those of logarithms."""

    each: float
    """That of each time, independent of all others."""
    drift: float = 0.0
    """That of the drift of reference and solution alike."""
    own: float = 0.0
    """That of the solution's own drift, which pairing with the reference does not remove."""
    lasting: float = 0.9
    """The correlation of a drift at successive calls."""


KINDS = {
    "0.3 %": Noise(0.003),
    "1 %": Noise(0.01),
    "2 %": Noise(0.02),
    "3 %": Noise(0.03),
    "5 %": Noise(0.05),
    "2 %, and a drift of 5 %": Noise(0.02, drift=0.05),
    "2 %, and a drift of the solution of 0.5 %": Noise(0.02, own=0.005),
    "2 %, and a drift of the solution of 1 %": Noise(0.02, own=0.01),
    "the same, correlated by 0.98": Noise(0.02, own=0.01, lasting=0.98),
}


@dataclass(frozen=True)
class Outcome:
    """How an evaluation ended."""

    calls: int
    """How many calls were counted."""
    above: bool | None
    """The answer, or None."""
    stopped_by: str
    """What ended sampling."""


def main() -> int:
    """Prints the table, and returns the exit status: 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500, help="evaluations of each kind of noise")
    parser.add_argument("--real", type=Path, nargs=2, metavar="FILE", help="results of two runs")
    options = parser.parse_args()
    cases = options.cases
    if options.real:
        return real(*(list(read(path)) for path in options.real))
    print("Medians and means are of counted calls. Each pair is without and with `--at-least 1`.\n\n"
          "| noise of a time | median | | mean | | answered | | wrong | |\n| --- |" + " ---: |" * 8)
    missed = False
    for name, noise in KINDS.items():
        speedups, full, early = zip(*(simulated(noise, seed) for seed in range(cases)), strict=True)
        wrong = [share_wrong(speedups, each) for each in (full, early)]
        missed |= wrong[1] >= MOST_WRONG
        calls = [[outcome.calls for outcome in each] for each in (full, early)]
        answered = [fmean(outcome.above is not None for outcome in each) for each in (full, early)]
        print(f"| {name} | {median(calls[0]):.0f} | {median(calls[1]):.0f} | {fmean(calls[0]):.0f} | "
              f"{fmean(calls[1]):.0f} | {answered[0]:.1%} | {answered[1]:.1%} | {wrong[0]:.2%} | {wrong[1]:.2%} |",
              flush=True)
    return int(missed)


def real(full: Sequence[Result], early: Sequence[Result]) -> int:
    """Prints a table for results of two runs, and returns the exit status: 1 if the bar is missed."""
    times = {(each.problem, each.solution, each.shape): (each.timing, each.seconds) for each in early if each.timing}
    pairs = [((each.timing, each.seconds), times[key]) for each in full
             if each.timing and (key := (each.problem, each.solution, each.shape)) in times]
    answers = [[above(timing.speedup.low, timing.speedup.high) for timing, _ in pair] for pair in pairs]
    opposite = sum(None not in pair and pair[0] != pair[1] for pair in answers)
    calls, seconds, answered = (list(zip(*rows, strict=True)) for rows in (
        [[timing.solution_ms.calls for timing, _ in pair] for pair in pairs],
        [[took for _, took in pair] for pair in pairs], answers))
    print(f"{len(pairs)} evaluations, without and with `--at-least 1`\n\n| | without | with |\n| --- | ---: | ---: |\n"
          f"| counted calls, median | {median(calls[0]):.0f} | {median(calls[1]):.0f} |\n"
          f"| seconds, median | {median(seconds[0]):.2f} | {median(seconds[1]):.2f} |\n"
          f"| answered | {len(pairs) - answered[0].count(None)} | {len(pairs) - answered[1].count(None)} |\n"
          f"| opposite answers | | {opposite} |")
    return int(opposite >= MOST_WRONG * len(pairs))


def above(low: float, high: float) -> bool | None:
    """Returns the answer that a speedup's interval gives, or None."""
    return None if low <= AT_LEAST <= high else low > AT_LEAST


def share_wrong(speedups: Sequence[float], outcomes: Sequence[Outcome]) -> float:
    """Returns the share of all evaluations whose answer is wrong."""
    return fmean(outcome.above is not None and outcome.above != (speedup > AT_LEAST)
                 for speedup, outcome in zip(speedups, outcomes, strict=True))


def simulated(noise: Noise, seed: int) -> tuple[float, Outcome, Outcome]:
    """Returns the speedup of an evaluation, and how it ends by full sampling and with `--at-least`, on equal times."""
    generator = random.Random(seed)
    reach = NEAR if generator.random() < NEAR_SHARE else math.log(2)
    speedup = AT_LEAST * math.exp(generator.uniform(-reach, reach))
    times = list(drawn(noise, speedup, generator))
    return speedup, sampled(times, FULL), sampled(times, replace(FULL, at_least=AT_LEAST))


def drawn(noise: Noise, speedup: float, generator: random.Random) -> Iterator[tuple[float, float | None]]:
    """Yields the times in ms of the reference and of the solution's call before it; None if that has no usable time."""
    fresh = math.sqrt(1 - noise.lasting**2)
    shared, own = generator.gauss(0, noise.drift), generator.gauss(0, noise.own)
    for _ in range(FULL.most + 1):
        shared = noise.lasting * shared + fresh * generator.gauss(0, noise.drift)
        own = noise.lasting * own + fresh * generator.gauss(0, noise.own)
        reference, solution = (math.exp(generator.gauss(0, noise.each) + disturbance(generator)) for _ in range(2))
        usable = generator.random() >= UNUSABLE
        yield math.exp(shared) * reference, math.exp(shared + own) * solution / speedup if usable else None


def disturbance(generator: random.Random) -> float:
    """Returns the logarithm of the factor by which something disturbs a call."""
    return math.log(1 + generator.uniform(0.02, 0.3)) if generator.random() < DISTURBED else 0.0


def sampled(times: list[tuple[float, float | None]], sampling: Sampling) -> Outcome:
    """Returns how sampling of these times ends."""
    references = [reference for reference, _ in times]
    solutions = [solution for _, solution in times[1:]]
    counted, stop = 0, None
    while stop is None:
        counted += 1
        ratios = paired_ratios(references[: counted + 1], solutions[:counted])
        share = partial(clock_share, median(references[: counted + 1]),
                        median([time for time in solutions[:counted] if time is not None] or [1.0]))
        stop = sampling.stop(counted, counted * CALL_S, lambda found=ratios: found, share)  # type: ignore[misc]
    used = [time for time in solutions[:counted] if time is not None]
    low, _, high = widen_by_clock(median_interval(ratios), median(references[: counted + 1]), median(used))
    return Outcome(counted, above(low, high), stop)


if __name__ == "__main__":
    sys.exit(main())
