"""What a page can show: browsers open pages of some 20 MB, not of 200 MB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inlinebench.errors import UsageError
from inlinebench.report.history.tracks import History
from inlinebench.results.result import Result

MOST_RESULTS = 20_000
"""The most results of a page."""
MOST_CHARACTERS = 20_000_000
"""The most characters of all logs together."""
MOST_PLACES = 200_000
"""The most results of the page of a history: its rows times its runs."""


def check_history(found: History) -> None:
    """Raises UsageError if a history is too large for a page."""
    places = len(found.tracks) * len(found.runs)
    if places > MOST_PLACES:
        raise UsageError(f"a page shows the history of at most {MOST_PLACES:,} results, not of {places:,}; name fewer "
                         "files")


def fitting(results: Sequence[Result]) -> list[Result]:
    """Returns the results with the ends of their logs, if all logs together are too long for a page.

    Each log has the same number of characters at most. Raises UsageError if there are too many results.
    """
    if len(results) > MOST_RESULTS:
        raise UsageError(f"a page shows at most {MOST_RESULTS:,} results, not {len(results):,}; name fewer files, or "
                         "write a .csv file")
    if sum(len(each.log or "") for each in results) <= MOST_CHARACTERS:
        return list(results)
    most = MOST_CHARACTERS // len(results)
    return [replace(each, log=_end(each.log or "", most) or None) for each in results]


def _end(log: str, most: int) -> str:
    left_out = len(log) - most
    return log if left_out <= 0 else f"… ({left_out:,} characters are left out; the file of results has them)\n" + (
        log[left_out:])
