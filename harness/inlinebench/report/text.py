"""Formats numbers, and sanitizes untrusted text for terminals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from inlinebench.records.times import Spread

ABSENT = "—"
QUOTED = 4
"""The most lines of a reason that are shown after its first line."""
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\))")
"""Terminal control sequences: colours, cursor movement (CSI), titles and links (OSC)."""


def one_line(text: str, limit: int = 500) -> str:
    """Returns the first line of `text` that is not blank, with whitespace collapsed, cut after `limit` characters.

    Reasons and names come from untrusted files and compilers. Control characters are removed or replaced, so that they
    cannot manipulate the terminal.
    """
    lines = (" ".join(line.split()) for line in _ESCAPES.sub("", text).splitlines())
    return _fit(next(filter(None, lines), ""), limit)


def laid_out(text: str, limit: int = 500) -> list[str]:
    """Returns the lines of `text` that are not blank, sanitized as by `one_line`.

    Keeps their whitespace, so that a compiler's caret stays below its position in the source line.
    """
    lines = (line.expandtabs().rstrip() for line in _ESCAPES.sub("", text).splitlines())
    return [_fit(line, limit) for line in lines if line]


def quoted(reason: str) -> list[str]:
    """Returns the first line of a reason and the indented lines after it, which quote the source line."""
    lines = laid_out(reason)[: 1 + QUOTED]
    following = takewhile(lambda line: line.startswith(" "), lines[1:])
    return [one_line(reason), *following] if lines else []


def _fit(line: str, limit: int) -> str:
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def visible_length(line: str) -> int:
    """Returns the number of characters of a line without terminal control sequences."""
    return len(_ESCAPES.sub("", line))


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
