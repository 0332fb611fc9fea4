"""Compares solutions of one run with each other: `b is 1.42 [1.40, 1.44] times as fast as a`."""

from __future__ import annotations

from collections.abc import Sequence

from inlinebench.foreign import one_line
from inlinebench.report.comparison import Change, by_interval
from inlinebench.report.text import interval
from inlinebench.results.result import Result, Verdict
from inlinebench.results.times import ratio_of


def head_to_head(results: Sequence[Result], names: Sequence[str]) -> str:
    """Returns a line for each solution but the first, and for each shape, that compares it with the first one.

    The factor is the ratio of both speedups. Each call of a solution is paired with a call of the same reference, so
    drift between the two evaluations cancels. The interval covers those of both speedups.
    """
    first, *others = names
    found = {(each.solution, each.shape): each for each in results}
    shapes = dict.fromkeys(each.shape for each in results)
    pairs = [(found.get((first, shape)), found.get((name, shape))) for name in others for shape in shapes]
    return "\n".join(_line(one, other, with_shape=len(shapes) > 1) for one, other in pairs if one and other)


def _line(first: Result, other: Result, *, with_shape: bool) -> str:
    a, b = one_line(first.solution), one_line(other.solution)
    at = f" ({one_line(other.shape)})" if with_shape else ""
    failed = [f"{one_line(each.solution)} is {each.verdict}" for each in (first, other)
              if each.verdict is not Verdict.PASSED]
    if failed:
        return f"{b}{at} is not compared with {a}: {' and '.join(failed)}"
    if not other.times_are_comparable:
        return f"{b}{at} is not compared with {a}: times need a GPU"
    if first.timing is None or other.timing is None:
        return f"{b}{at} is not compared with {a}: there are no times"
    ratio = ratio_of(first.timing.speedup, other.timing.speedup)
    if ratio is None:
        return f"{b}{at} is not compared with {a}: the time of {a} is not known precisely enough"
    if by_interval(ratio) is Change.SAME:
        return f"{b}{at}: no significant difference from {a}, {interval(ratio)} times as fast"
    return f"{b}{at} is {interval(ratio)} times as fast as {a}"
