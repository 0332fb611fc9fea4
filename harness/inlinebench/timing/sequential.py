"""Tests of a median that may be looked at after every sample. All functions are pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

ERROR = 0.01
"""The probability that a test ever says that a median is on one side of a value while it is on the other."""


def evidence(count: int, of: int) -> float:
    """Returns the evidence that an event is more probable than one half, if `count` of `of` samples have it.

    It is the capital of a gambler who began with 1 and bet on the event before each sample, at fair odds if the
    probability is one half: the mean over all bets p from 1/2 to 1 of `(2p)^count (2(1-p))^(of-count)`. If the
    probability is at most one half, given all earlier samples, then this is a supermartingale, and it ever reaches
    1 / ERROR with a probability of at most ERROR (Ville's inequality), no matter after which samples one looks. It is
    Robbins' method of mixtures (1970) for signs; Howard and Ramdas, "Sequential estimation of quantiles with
    applications to A/B testing and best-arm identification" (Bernoulli 28, 2022), review it for medians, and
    Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (JRSS B 86, 2024), the bets.
    """
    # The integral is a beta distribution's, which for whole numbers is a sum of binomial coefficients.
    return sum(comb(of + 1, each) for each in range(count + 1)) / ((of + 1) * comb(of, count))


def is_above(samples: Sequence[float], value: float) -> bool:
    """Returns whether the median is known to be above a value. `samples` are independent, in the order of their times.
    """
    return evidence(sum(sample > value for sample in samples), len(samples)) >= 1 / ERROR


def is_below(samples: Sequence[float], value: float) -> bool:
    """Returns whether the median is known to be below a value. `samples` are independent, in the order of their times.
    """
    return evidence(sum(sample < value for sample in samples), len(samples)) >= 1 / ERROR
