"""Formats numbers, reasons and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from inlinebench.foreign import BAR, LONGEST, message
from inlinebench.results.times import Spread

ABSENT = "—"
QUOTED = 4
"""The most lines of a reason that are shown after its first line."""
_COLOUR = re.compile(r"\x1b\[\d+m")
"""What `Screen.paint` writes."""


def brief_reason(reason: str) -> str:
    """Returns the first line of a reason, and below it the indented lines that follow it, which quote the source."""
    first, *others = message(reason, LONGEST).split("\n")
    return "\n".join([first, *takewhile(lambda line: line.startswith(f"{BAR} "), others[:QUOTED])])


def visible_length(line: str) -> int:
    """Returns the number of characters of a line without colours."""
    return len(_COLOUR.sub("", line))


def significant(value: float, digits: int = 3) -> str:
    """Formats `value` with this many significant digits, with an exponent only below 1e-6 and from 1e7 on.

    Digits before the decimal point are kept in any case: `0.0683`, `2.81`, `10.0`, `12345`.
    """
    scientific = f"{value:.{digits - 1}e}"
    if value == 0:
        return "0"
    if not 1e-6 <= abs(value) < 1e7:
        return scientific
    exponent = int(scientific.partition("e")[2])
    return f"{value:.{max(0, digits - 1 - exponent)}f}"


def percent(share: float | None) -> str:
    """Formats a share from 0 to 1 as a percentage with three significant digits: `50%`; `—` for None."""
    return ABSENT if share is None else f"{100 * share:.3g}%"


def interval(spread: Spread) -> str:
    """Formats median, low and high with three significant digits: `2.00 [1.90, 2.10]`."""
    return f"{significant(spread.median)} [{significant(spread.low)}, {significant(spread.high)}]"


def grid(headers: Sequence[str], rows: Sequence[Sequence[str]], align: Sequence[str]) -> str:
    """Returns a table as text. Cells are not parsed as numbers: a solution named `1e5` stays `1e5`."""
    # Imported late: it would take a quarter of the import time before a run starts its judges.
    from tabulate import tabulate  # type: ignore[import-untyped, unused-ignore]

    return str(tabulate(rows, headers=headers, colalign=align, disable_numparse=True))
