"""Compares two sets of results. A row is faster or slower if the intervals of its two speedups do not overlap.

Each speedup is relative to a reference that was timed in the same run, so drift of the GPU between the runs cancels. A
set may have several results of a row from the same sources. Their intervals are merged into their hull, which also
covers the variation between processes (see docs/timing.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache

from inlinebench.catalog.natural_sort import natural
from inlinebench.errors import UsageError
from inlinebench.results.result import Result, Verdict
from inlinebench.results.times import PASSES, Spread, ratio_of

Row = tuple[str, str, str]
"""Problem, solution, shape."""


class Change(str, Enum):
    """How a row changed."""

    NOW_FAILING = "now failing"
    """It passed before, and does not pass now, for any reason."""
    NEW_FAILING = "new, failing"
    """It is only in the new results, and does not pass there."""
    GONE = "gone"
    """It is only in the old results."""
    SLOWER = "slower"
    """Its whole interval is below the earlier one."""
    FASTER = "faster"
    """Its whole interval is above the earlier one."""
    NOW_PASSING = "now passing"
    """It did not pass before, and passes now."""
    STILL_FAILING = "still failing"
    """It passes neither before nor now."""
    NEW = "new"
    """It is only in the new results, where it passes or is skipped."""
    SAME = "same"
    """It passes before and now, and the intervals overlap or there are no times to compare."""

    def __str__(self) -> str:
        return self.value


TIMES_CHANGED_IN = ("0.2.0",)
"""Versions of the harness in which times changed their meaning. Since 0.2.0 a time excludes the launch overhead."""
WORSE = frozenset({Change.NOW_FAILING, Change.NEW_FAILING, Change.GONE, Change.SLOWER})
"""The changes that make `inlinebench compare` exit with status 1. `--allow-gone` takes `GONE` out."""


@dataclass(frozen=True)
class ComparedRow:
    """The comparison of one row. Raises ValueError for contradictions."""

    row: Row
    """The row."""
    change: Change
    """How it changed."""
    before: Result | None
    """Its last old result, or the last one that did not pass; None for a new row."""
    after: Result | None
    """The same of the new results; None for a row that is gone."""
    ratio: Spread | None = None
    """The new speedup over the old one, with its interval, if both have times."""
    passes: tuple[tuple[str, Spread], ...] = ()
    """The same of forward and backward alone, by name, if both have them. They decide nothing."""

    def __post_init__(self) -> None:
        new = self.change in (Change.NEW, Change.NEW_FAILING)
        if new != (self.before is None) or (self.change is Change.GONE) != (self.after is None):
            raise ValueError(f"{self.change} with {self.before} and {self.after}")
        if self.change in (Change.SLOWER, Change.FASTER) and self.ratio is None:
            raise ValueError(f"{self.change} without a ratio")


def compare(
    before: Iterable[Result], after: Iterable[Result], *, any_gpu: bool = False, any_version: bool = False
) -> tuple[ComparedRow, ...]:
    """Compares every row of either set. The worst changes come first.

    Raises UsageError if times are from different GPUs, unless `any_gpu` is set, or from versions of the harness between
    which times changed their meaning, unless `any_version` is set.
    """
    old, new = _rows(before), _rows(after)
    if not any_gpu:
        _check_gpus(old.values(), new.values())
    if not any_version:
        _check_versions(old.values(), new.values())
    standing = {**_standing_for_others(old, new), **_standing_for_unreadable(old, new)}
    found = [_compared(row, old.get(row, []), new.get(standing.get(row, row), [])) for row in {**old, **new}]
    order = list(Change)
    return tuple(sorted(found, key=lambda each: (order.index(each.change), *map(natural, each.row))))


def latest(results: Iterable[Result]) -> list[Result]:
    """Returns the last result of each row, separately for CPU and GPU, in natural order."""
    found = {(result.problem, result.solution, result.shape, result.times_are_comparable): result for result in results}
    return sorted(found.values(), key=lambda each: (natural(each.problem), natural(each.solution), each.shape))


def _rows(results: Iterable[Result]) -> dict[Row, list[Result]]:
    """Returns the results of each row, in order. Results from other sources than the last one are left out."""
    rows: dict[Row, list[Result]] = {}
    for result in results:
        rows.setdefault((result.problem, result.solution, result.shape), []).append(result)
    return {row: [each for each in found if each.key == found[-1].key] for row, found in rows.items()}


def _standing_for_others(old: Mapping[Row, Sequence[Result]], new: Mapping[Row, Sequence[Result]]) -> dict[Row, Row]:
    """Maps rows that are gone because their problem or solution has become unreadable to the new row that reports it.

    An unreadable file has no known shapes, so it has only one row.
    """
    unreadable = {row[:2]: row for row, results in new.items()
                  if row not in old and results[-1].verdict.may_lack_shapes}
    return {row: unreadable[row[:2]] for row in old if row not in new and row[:2] in unreadable}


def _standing_for_unreadable(
    old: Mapping[Row, Sequence[Result]], new: Mapping[Row, Sequence[Result]]
) -> dict[Row, Row]:
    """Maps rows that are gone because their problem or solution can be read now to one of its new rows."""
    readable = {row[:2]: row for row in new if row not in old}
    return {row: readable[row[:2]] for row, results in old.items()
            if row not in new and row[:2] in readable and results[-1].verdict.may_lack_shapes}


def _check_gpus(before: Iterable[Sequence[Result]], after: Iterable[Sequence[Result]]) -> None:
    old, new = ({_gpu(result) for results in rows for result in results if result.timing is not None} - {None}
                for rows in (before, after))
    if old and new and (old != new or len(old) > 1):
        raise UsageError(f"times of {_named(old)} can't be compared with those of {_named(new)}; use --any-gpu to "
                         "compare them anyway")


def _check_versions(before: Iterable[Sequence[Result]], after: Iterable[Sequence[Result]]) -> None:
    found = {result.environment.harness for rows in (*before, *after) for result in rows
             if result.timing is not None and result.environment is not None}
    if len({meaning_of_times(version) for version in found}) > 1:
        raise UsageError(f"times of inlinebench {_named(found)} can't be compared: in {_named(TIMES_CHANGED_IN)} times "
                         "changed their meaning; use --any-version to compare them anyway")


@cache
def meaning_of_times(version: str) -> int:
    """Returns how often times had changed their meaning up to a version."""
    return sum(_numbers(version) >= _numbers(each) for each in TIMES_CHANGED_IN)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _gpu(result: Result) -> str | None:
    return result.environment.gpu if result.environment else None


def _named(names: Iterable[str | None]) -> str:
    return " and ".join(sorted(map(str, names)))


def _compared(row: Row, old: Sequence[Result], new: Sequence[Result]) -> ComparedRow:
    shown = [next((each for each in reversed(results) if each.verdict is not Verdict.PASSED), results[-1])
             if results else None for results in (old, new)]
    if not old or not new:
        return ComparedRow(row, Change.GONE if old else _of_a_new_row(new), shown[0], shown[1])
    passed = [all(each.verdict is Verdict.PASSED for each in results) for results in (old, new)]
    if not all(passed):
        change = {(True, False): Change.NOW_FAILING, (False, True): Change.NOW_PASSING}.get(
            (passed[0], passed[1]), Change.STILL_FAILING)
        return ComparedRow(row, change, shown[0], shown[1])
    ratio = ratio_of(_speedup(old), _speedup(new))
    passes = {name: ratio_of(_speedup(old, name), _speedup(new, name)) for name in PASSES}
    return ComparedRow(row, by_interval(ratio), shown[0], shown[1], ratio,
                       tuple((name, found) for name, found in passes.items() if found is not None))


def _of_a_new_row(results: Sequence[Result]) -> Change:
    return Change.NEW_FAILING if any(each.verdict.is_failure for each in results) else Change.NEW


def _speedup(results: Sequence[Result], of_pass: str | None = None) -> Spread | None:
    """Returns the hull of all intervals, with the median of the medians; None on the CPU and without times.

    With `of_pass` it is that of one pass alone.
    """
    timings = [result.timing for result in results if result.timing and result.times_are_comparable]
    spreads = [timing.speedup for timing in timings] if of_pass is None else [
        each.speedup for timing in timings for each in timing.passes if each.name == of_pass]
    found = sorted(spreads, key=lambda spread: spread.median)
    if not found:
        return None
    return Spread(found[len(found) // 2].median, min(each.low for each in found), max(each.high for each in found))


def by_interval(ratio: Spread | None) -> Change:
    """Returns whether a ratio of speedups is `FASTER` or `SLOWER`, or `SAME` if its interval contains 1."""
    if ratio is None or ratio.low <= 1 <= ratio.high:
        return Change.SAME
    return Change.FASTER if ratio.low > 1 else Change.SLOWER
