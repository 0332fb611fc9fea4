"""Compares the speedups on different kinds of inputs, so that a solution cannot be fast on some of them only.

A kernel may take a shortcut where it recognizes what its inputs are, such as half precision where no signs are mixed.
The median over all calls would hide this. So the kind of inputs with the lowest speedup counts, if it is clearly lower
than on another kind. Functions are pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from inlinebench.timing.statistics import rank_interval

CLEARLY = 0.05
"""By this share the interval of a kind of inputs must lie below that of another."""
FEWEST = 3
"""The fewest calls on a kind of inputs to compare it."""
TO_CONFIRM = 16
"""How many more calls are made on a kind of inputs that seems to be slower."""


def slowest(ratios: Mapping[str, Sequence[float]]) -> str | None:
    """Returns the kind of inputs with the lowest speedups, if they are clearly lower than those of another kind.

    `ratios` has the speedups of the calls on each kind of inputs, each paired with the reference on the same inputs.
    Intervals are those of the median by ranks, which are the least and the largest value for few calls.
    """
    known = {kind: values for kind, values in ratios.items() if len(values) >= FEWEST}
    if len(known) < 2:
        return None
    ordered = sorted(known, key=lambda kind: median(known[kind]))
    high, low = rank_interval(known[ordered[0]])[2], rank_interval(known[ordered[-1]])[0]
    return ordered[0] if high < (1 - CLEARLY) * low else None
