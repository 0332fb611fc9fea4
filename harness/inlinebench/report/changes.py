"""Formats a comparison of two runs for a terminal, or as Markdown for a comment on a pull request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from inlinebench.foreign import first_line, one_line
from inlinebench.report.comparison import Change, ComparedRow
from inlinebench.report.formats.markdown import code
from inlinebench.report.text import ABSENT, grid, interval
from inlinebench.results.result import Result, Verdict

HEADERS = ["problem", "solution", "shape", "change", "before", "after", "after / before"]
QUIET = frozenset({Change.SAME, Change.STILL_FAILING})
"""Changes whose rows are counted, but shown only on demand."""


def text(found: Sequence[ComparedRow], *, everything: bool = False) -> str:
    """Returns a table of the changed rows (with `everything`: of all rows), the passes of those with a backward, the
    reasons of failures, and the counts."""
    shown = _shown(found, everything)
    blocks = [grid(HEADERS, [cells(each) for each in shown], ["left"] * len(HEADERS)) if shown else "",
              "\n".join(map(": ".join, [*_passes(shown), *_reasons(shown)])), count(found)]
    return "\n\n".join(filter(None, blocks))


def markdown(found: Sequence[ComparedRow], *, everything: bool = False) -> str:
    """Returns the same as `text` in Markdown."""
    shown = _shown(found, everything)
    rows = [[*map(code, each.row), *cells(each)[len(each.row) :]] for each in shown]
    lines = [f"| {' | '.join(row)} |" for row in (HEADERS, ["---"] * len(HEADERS), *rows)] if shown else []
    passes = [f"- {code(name)}: {told}" for name, told in _passes(shown)]
    reasons = [f"- {code(name)}: {verdict}: {code(reason)}" for name, verdict, reason in _reasons(shown)]
    return "\n\n".join(filter(None, ["\n".join(lines), "\n".join([*passes, *reasons]), count(found)])) + "\n"


def count(found: Sequence[ComparedRow]) -> str:
    """Returns the number of rows of each change: `1 slower, 12 same`."""
    counts = Counter(each.change for each in found)
    return ", ".join(f"{counts[change]} {change}" for change in Change if counts[change]) or "no results to compare"


def _shown(found: Sequence[ComparedRow], everything: bool) -> list[ComparedRow]:
    return [each for each in found if everything or each.change not in QUIET]


def cells(each: ComparedRow) -> list[str]:
    """Returns the texts of a compared row, one for each of `HEADERS`."""
    return [*map(one_line, each.row), str(each.change), state(each.before), state(each.after),
            interval(each.ratio) if each.ratio else ABSENT]


def state(result: Result | None) -> str:
    """Returns the speedup with its interval if there is one, else the verdict."""
    if result is None:
        return ABSENT
    if result.timing is None or not result.times_are_comparable:
        return str(result.verdict)
    return interval(result.timing.speedup)


def _passes(shown: Sequence[ComparedRow]) -> list[tuple[str, str]]:
    """Returns the names of rows whose calls have a backward, and how the speedup of each pass alone changed."""
    return [(one_line("/".join(each.row[:2])), "after / before of the passes alone: " + ", ".join(
        f"{name} {interval(ratio)}" for name, ratio in each.passes)) for each in shown if each.passes]


def _reasons(shown: Sequence[ComparedRow]) -> list[tuple[str, str, str]]:
    """Returns the names, verdicts and reasons of rows that do not pass now."""
    return [(one_line("/".join(each.row[:2])), str(each.after.verdict), first_line(each.after.reason))
            for each in shown if each.after is not None and each.after.verdict is not Verdict.PASSED]
