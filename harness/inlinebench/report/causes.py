"""Groups results by what came of them: those that passed, the fastest first, then failures by their cause."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from inlinebench.foreign import one_line
from inlinebench.report.rows import Row
from inlinebench.results.result import Result, Verdict

LONGEST = 100
"""Longer causes are cut."""
_WHERE = re.compile(r"at the derived shape .*?: |(?:call \d+|a [a-z ]*call) \([^()]*\): |[\w./-]*:\d+(?::\d+)?: |"
                    r"output \d+: ")
"""What the beginning of a reason says about the place."""
_VALUE = re.compile(r"\[[^\]]*\]|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w)|`[^`']*'|\u2018[^\u2019]*\u2019|-?\b\d[\w.+-]*")
"""What differs between failures of one cause: indices, names and numbers."""
_DIFFERS = re.compile(r"(?:all|its one|\d+ of) .*element.* differ")


@dataclass(frozen=True)
class Group:
    """Rows that passed, or that failed for one cause."""

    heading: str
    """What they have in common; empty if there is only one group."""
    rows: tuple[Row, ...]
    """The rows."""


def groups(rows: Sequence[Row]) -> list[Group]:
    """Returns all rows: those that passed, the fastest first, then the failures, the most frequent cause first."""
    passed = sorted((row for row in rows if row.result.verdict is Verdict.PASSED), key=_slowness)
    causes: dict[tuple[Verdict, str], list[Row]] = {}
    for row in rows:
        if row.result.verdict is not Verdict.PASSED:
            causes.setdefault((row.result.verdict, cause(row.result)), []).append(row)
    found = [Group(_heading(verdict, words, len(each)), tuple(each)) for (verdict, words), each in
             sorted(causes.items(), key=lambda item: (-len(item[1]), list(Verdict).index(item[0][0])))]
    if passed:
        told = f"{len(passed)} passed, the fastest first" if passed[0].timing else f"{len(passed)} passed"
        found.insert(0, Group(told, tuple(passed)))
    return found if len(found) > 1 else [Group("", group.rows) for group in found]


def cause(result: Result) -> str:
    """Returns the reason of a failure without what is special about it: places, names and numbers."""
    words = one_line(result.reason.partition("\n")[0])
    while match := _WHERE.match(words):
        words = words[match.end():]
    words = re.split(r"[;(]| first at ", words)[0]
    words = "elements differ" if _DIFFERS.search(words) else _VALUE.sub("\N{HORIZONTAL ELLIPSIS}", words)
    return one_line(words.strip(" :,"), LONGEST)


def _slowness(row: Row) -> float:
    return -row.timing.speedup.median if row.timing else 0.0


def _heading(verdict: Verdict, words: str, count: int) -> str:
    return f"{count} {verdict}: {words}" if words else f"{count} {verdict}"
