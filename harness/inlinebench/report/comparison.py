"""What changed from one set of results to another: decided by the intervals of speedups, not by a percentage.

A speedup is paired with a reference that ran between the same calls, so a drift of the GPU from one run to the other
cancels. A file may hold several results of one row from the same sources; then its interval is the hull of theirs,
which covers what differs from process to process as well (see docs/timing.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from inlinebench.records.errors import UsageError
from inlinebench.records.natural_sort import natural
from inlinebench.records.result import Result, Spread, Verdict

Row = tuple[str, str, str]
"""Problem, solution, shape."""


class Change(str, Enum):
    """What became of a row."""

    NOW_FAILING = "now failing"
    """It passed, and doesn't any more, for whatever reason."""
    SLOWER = "slower"
    """Its whole interval lies below the earlier one."""
    FASTER = "faster"
    """Its whole interval lies above the earlier one."""
    NOW_PASSING = "now passing"
    STILL_FAILING = "still failing"
    NEW = "new"
    GONE = "gone"
    SAME = "same"
    """The intervals overlap, or there are no times to compare and it passed both times."""

    def __str__(self) -> str:
        return self.value


WORSE = frozenset({Change.NOW_FAILING, Change.SLOWER})
"""What a gate fails on."""


@dataclass(frozen=True)
class Compared:
    """One row in both sets. `before` and `after` are the last results there, None where there is none; `ratio` is the
    new speedup over the old one, with its interval, where both have times."""

    row: Row
    change: Change
    before: Result | None
    after: Result | None
    ratio: Spread | None = None

    def __post_init__(self) -> None:
        if (self.change is Change.NEW) != (self.before is None) or (self.change is Change.GONE) != (self.after is None):
            raise ValueError(f"{self.change} with {self.before} and {self.after}")
        if self.change in (Change.SLOWER, Change.FASTER) and self.ratio is None:
            raise ValueError(f"{self.change} without a ratio")


def compare(before: Iterable[Result], after: Iterable[Result], *, any_gpu: bool = False) -> tuple[Compared, ...]:
    """Every row of either set, the worst changes first.

    Raises UsageError if times of different GPUs would be compared and `any_gpu` doesn't allow it.
    """
    old, new = _rows(before), _rows(after)
    if not any_gpu:
        _check_gpus(old.values(), new.values())
    standing = _standing_for_others(old, new)
    found = [_compared(row, old.get(row, []), new.get(standing.get(row, row), [])) for row in {**old, **new}]
    order = list(Change)
    return tuple(sorted(found, key=lambda each: (order.index(each.change), *map(natural, each.row))))


def latest(results: Iterable[Result]) -> list[Result]:
    """Of each row on each device the last result, in the order of the rows."""
    found = {(result.problem, result.solution, result.shape, result.device == "cpu"): result for result in results}
    return sorted(found.values(), key=lambda each: (natural(each.problem), natural(each.solution), each.shape))


def _rows(results: Iterable[Result]) -> dict[Row, list[Result]]:
    """Each row's results, the last one of them last; those of other sources than its are left out."""
    rows: dict[Row, list[Result]] = {}
    for result in results:
        rows.setdefault((result.problem, result.solution, result.shape), []).append(result)
    return {row: [each for each in found if each.key == found[-1].key] for row, found in rows.items()}


def _standing_for_others(old: Mapping[Row, Sequence[Result]], new: Mapping[Row, Sequence[Result]]) -> dict[Row, Row]:
    """The rows that are gone because their problem or solution can't be read any more, so that nobody knows its shapes:
    each with the new row that says so."""
    unreadable = {row[:2]: row for row, results in new.items()
                  if row not in old and results[-1].verdict in (Verdict.PROBLEM_ERROR, Verdict.INVALID)}
    return {row: unreadable[row[:2]] for row in old if row not in new and row[:2] in unreadable}


def _check_gpus(before: Iterable[Sequence[Result]], after: Iterable[Sequence[Result]]) -> None:
    old, new = ({_gpu(result) for results in rows for result in results if result.timing is not None} - {None}
                for rows in (before, after))
    if old and new and (old != new or len(old) > 1):
        raise UsageError(f"times of {_named(old)} can't be compared with those of {_named(new)}; --any-gpu does it all "
                         "the same")


def _gpu(result: Result) -> str | None:
    return result.environment.gpu if result.environment else None


def _named(gpus: set[str | None]) -> str:
    return " and ".join(sorted(map(str, gpus)))


def _compared(row: Row, old: Sequence[Result], new: Sequence[Result]) -> Compared:
    if not old or not new:
        change = Change.GONE if old else Change.NEW
        return Compared(row, change, old[-1] if old else None, new[-1] if new else None)
    passed = [all(each.verdict is Verdict.PASSED for each in results) for results in (old, new)]
    shown = [next((each for each in reversed(results) if each.verdict is not Verdict.PASSED), results[-1])
             for results in (old, new)]
    if not all(passed):
        change = {(True, False): Change.NOW_FAILING, (False, True): Change.NOW_PASSING}.get(
            (passed[0], passed[1]), Change.STILL_FAILING)
        return Compared(row, change, shown[0], shown[1])
    ratio = _ratio(_speedup(old), _speedup(new))
    return Compared(row, _by_interval(ratio), shown[0], shown[1], ratio)


def _speedup(results: Sequence[Result]) -> Spread | None:
    """The hull of all intervals, around the median of the middle one; None on the CPU and where there are no times."""
    found = sorted((result.timing.speedup for result in results if result.timing and result.device != "cpu"),
                   key=lambda spread: spread.median)
    if not found:
        return None
    return Spread(found[len(found) // 2].median, min(each.low for each in found), max(each.high for each in found))


def _ratio(old: Spread | None, new: Spread | None) -> Spread | None:
    if old is None or new is None or old.low <= 0:
        return None
    return Spread(new.median / old.median, new.low / old.high, new.high / old.low)


def _by_interval(ratio: Spread | None) -> Change:
    if ratio is None or ratio.low <= 1 <= ratio.high:
        return Change.SAME
    return Change.FASTER if ratio.low > 1 else Change.SLOWER
