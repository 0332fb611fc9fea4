"""Statistics of samples: medians, quartiles, paired ratios, bootstrap intervals. All functions are pure."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from inlinebench.results.times import REPEATABILITY

RESAMPLES = 2000
CONFIDENCE = 0.95

RESOLUTION_MS = 0.0005
"""Error of one pair of time stamps in ms, which repetition does not reduce. CUDA's documentation of
cudaEventElapsedTime gives events a resolution of about half a microsecond. A reference timed against itself differed by
0.4 µs in another process."""

CLEAR_DIFFERENCE = 0.05
"""The share by which the speedups on one kind of inputs must lie below those on another to be clearly lower."""
FEWEST = 3
"""The fewest calls on a kind of inputs to compare it. One disturbed call of three does not move the median."""
ENOUGH = 16
"""The fewest calls on the slowest and on the fastest kind of inputs if their speedups seem to differ. The intervals of
fewer calls reach to the least and the largest value, or nearly, so one disturbed call hides a difference."""


def quantile(samples: Sequence[float], share: float) -> float:
    """Returns the quantile with linear interpolation between the two nearest ranks (Hyndman and Fan 1996, type 7).

    Raises ValueError if there are no samples or `share` is not within 0 to 1.
    """
    if not samples or not 0 <= share <= 1:
        raise ValueError(f"cannot take quantile {share} of {len(samples)} samples")
    ordered = sorted(samples)
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def quartiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """Returns the lower quartile, the median and the upper quartile."""
    return quantile(samples, 0.25), quantile(samples, 0.5), quantile(samples, 0.75)


def midmean(samples: Sequence[float]) -> float:
    """Returns the mean of the middle half of the samples, rounded up (Tukey's interquartile mean).

    It is as robust as the median against a few outliers, and finer than the clock's resolution. Raises ValueError
    without samples.
    """
    if not samples:
        raise ValueError("no samples")
    cut = len(samples) // 4
    return fmean(sorted(samples)[cut : len(samples) - cut])


def paired_ratios(references: Sequence[float], solutions: Sequence[float | None]) -> list[float]:
    """Returns the speedup of each solution call over the mean of its two neighbouring reference calls.

    `references` has one time more than `solutions`: the reference runs before the first solution call and after each.
    A drift that is linear over three calls cancels out. None stands for a call without a usable time.

    Raises ValueError if the lengths do not match.
    """
    if len(references) != len(solutions) + 1:
        raise ValueError(f"{len(references)} reference times cannot pair with {len(solutions)} solution times")
    neighbours = zip(references, references[1:], solutions, strict=False)
    return [(before + after) / 2 / time for before, after, time in neighbours if time is not None]


def median_interval(samples: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """Returns low end, median and high end of the median's 95 % percentile bootstrap interval (Efron 1979).

    The resampling has a fixed seed, so equal samples give equal intervals. Raises ValueError without samples.
    """
    if not samples:
        raise ValueError("no samples")
    generator = random.Random(seed)
    size = len(samples)
    medians = sorted(median(generator.choices(samples, k=size)) for _ in range(RESAMPLES))
    tail = (1 - CONFIDENCE) / 2
    middle = median(samples)
    return min(quantile(medians, tail), middle), middle, max(quantile(medians, 1 - tail), middle)


def rank_interval(samples: Sequence[float]) -> tuple[float, float, float]:
    """Returns low end, median and high end of the median's 95 % interval by ranks, without resampling.

    The ends are the samples at ranks n/2 ∓ 0.98 sqrt(n), the normal approximation to the binomial distribution
    (Conover 1999, section 3.2). For few samples they are the least and the largest. Raises ValueError without samples.
    """
    if not samples:
        raise ValueError("no samples")
    ordered, size = sorted(samples), len(samples)
    reach = 0.98 * math.sqrt(size)
    low = max(0, math.floor(size / 2 - reach))
    high = min(size - 1, math.ceil(size / 2 + reach))
    return ordered[low], median(ordered), ordered[high]


def clock_share(reference_ms: float, solution_ms: float) -> float:
    """Returns the share, at most 1, by which a speedup may be wrong because of the clock and the processes."""
    return min(1.0, RESOLUTION_MS / min(reference_ms, solution_ms) + REPEATABILITY)


def widen_by_clock(
    interval: tuple[float, float, float], reference_ms: float, solution_ms: float
) -> tuple[float, float, float]:
    """Returns the interval of a speedup, widened on both ends by the errors of the clock and of the processes.

    Repetition narrows the bootstrap interval, but not an error that all calls of a process share.
    """
    share = clock_share(reference_ms, solution_ms)
    low, middle, high = interval
    return low * (1 - share), middle, high * (1 + share)


def calls_needed(ratios: Mapping[str, Sequence[float]]) -> dict[str, int]:
    """Returns how many calls each kind of inputs needs so that `slowest` can decide.

    If the medians say that one kind is clearly slower than another, these two need more, because few calls prove
    nothing and the slower kind's times may become the reported ones. `ratios` is that of `slowest`, with every kind.
    """
    needed = dict.fromkeys(ratios, FEWEST)
    medians = {kind: median(values) for kind, values in ratios.items() if len(values) >= FEWEST}
    if len(medians) >= 2:
        slow, fast = min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)
        if medians[slow] < (1 - CLEAR_DIFFERENCE) * medians[fast]:
            needed[slow] = needed[fast] = ENOUGH
    return needed


def slowest(ratios: Mapping[str, Sequence[float]]) -> str | None:
    """Returns the kind of inputs with the lowest speedups, if they are clearly lower than those of another kind.

    A kernel may take a shortcut where it recognizes its inputs, such as half precision where no signs are mixed; the
    median over all calls would hide its time on others. `ratios` has the speedups of the calls on each kind of inputs,
    each paired with the reference on the same inputs.
    Intervals are those of the median by ranks, which are the least and the largest value for few calls.
    """
    known = {kind: values for kind, values in ratios.items() if len(values) >= FEWEST}
    if len(known) < 2:
        return None
    ordered = sorted(known, key=lambda kind: median(known[kind]))
    high, low = rank_interval(known[ordered[0]])[2], rank_interval(known[ordered[-1]])[0]
    return ordered[0] if high < (1 - CLEAR_DIFFERENCE) * low else None
