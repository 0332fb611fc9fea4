"""Pure functions over samples: medians, quartiles, paired ratios, bootstrap intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import fmean, median

RESAMPLES = 2000
CONFIDENCE = 0.95

RESOLUTION_MS = 0.0005
"""What one time stamp pair can be off by, however often it is repeated: CUDA's documentation of cudaEventElapsedTime
gives events a resolution of about half a microsecond. A reference against itself was 0.4 µs off in another process."""

REPEATABILITY = 5e-4
"""The share that the same work differs by from process to process: over 30 evaluations of references against
themselves on H100s (2.6 to 2.8 ms) the medians lay between 0.9989 and 1.0006, and intervals that were narrower than
that missed 1 by up to 0.02 %."""


def quantile(samples: Sequence[float], share: float) -> float:
    """The quantile with linear interpolation between the two nearest ranks (Hyndman and Fan 1996, type 7).

    Raises ValueError without samples or for a share outside 0 to 1.
    """
    if not samples or not 0 <= share <= 1:
        raise ValueError(f"no quantile {share} of {len(samples)} samples")
    ordered = sorted(samples)
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def quartiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile."""
    return quantile(samples, 0.25), quantile(samples, 0.5), quantile(samples, 0.75)


def midmean(samples: Sequence[float]) -> float:
    """The mean of the middle half, or of a few more (Tukey's interquartile mean): as robust as a median where few
    samples are off, and finer than the steps in which a clock counts. Raises ValueError without samples."""
    if not samples:
        raise ValueError("no samples")
    cut = len(samples) // 4
    return fmean(sorted(samples)[cut : len(samples) - cut])


def paired_ratios(references: Sequence[float], solutions: Sequence[float | None]) -> list[float]:
    """The speedup of each solution call over the mean of its two neighbouring reference calls.

    `references` has one time more than `solutions`: the reference runs before the first solution call and after each.
    A drift that is linear over three calls cancels. None stands for a call without a usable time.

    Raises ValueError if the numbers don't fit.
    """
    if len(references) != len(solutions) + 1:
        raise ValueError(f"{len(references)} reference times can't pair with {len(solutions)} solution times")
    neighbours = zip(references, references[1:], solutions, strict=False)
    return [(before + after) / 2 / time for before, after, time in neighbours if time is not None]


def median_interval(samples: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """Low end, median and high end of the 95 % percentile bootstrap interval of the median (Efron 1979).

    The resampling is seeded, so the same samples give the same interval. Raises ValueError without samples.
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
    """Low end, median and high end of the 95 % interval of the median by ranks, without resampling.

    The ends are the samples at ranks n/2 -+ 0.98 sqrt(n), the normal approximation to the binomial distribution
    (Conover 1999, section 3.2); of few samples the least and the largest. Raises ValueError without samples.
    """
    if not samples:
        raise ValueError("no samples")
    ordered, size = sorted(samples), len(samples)
    reach = 0.98 * math.sqrt(size)
    low = max(0, math.floor(size / 2 - reach))
    high = min(size - 1, math.ceil(size / 2 + reach))
    return ordered[low], median(ordered), ordered[high]


def widen_by_clock(
    interval: tuple[float, float, float], reference_ms: float, solution_ms: float
) -> tuple[float, float, float]:
    """The interval of a speedup with what clock and processes may be off by added to both ends.

    Repeating calls narrows the bootstrap's interval, but not an error that every call of a process shares.
    """
    share = min(1.0, RESOLUTION_MS / min(reference_ms, solution_ms) + REPEATABILITY)
    low, middle, high = interval
    return low * (1 - share), middle, high * (1 + share)
