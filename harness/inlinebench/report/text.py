"""Numbers and foreign text, made fit for a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from inlinebench.records.result import Spread

ABSENT = "—"
QUOTED = 4
"""Lines below the first one of a reason that are shown with it."""
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\))")
"""Terminal control sequences: colours, cursor movement (CSI), titles and links (OSC)."""


def one_line(text: str, limit: int = 500) -> str:
    """The first line of `text` that isn't blank, its white space collapsed, cut after `limit` characters.

    Reasons and names come from strangers' files and from compilers: control characters are taken out or replaced, so
    that they can't rewrite what stands on the screen.
    """
    lines = (" ".join(line.split()) for line in _ESCAPES.sub("", text).splitlines())
    return _fit(next(filter(None, lines), ""), limit)


def laid_out(text: str, limit: int = 500) -> list[str]:
    """The lines of `text` that aren't blank, with their white space, so that a caret stays below what it marks; else as
    `one_line`."""
    lines = (line.expandtabs().rstrip() for line in _ESCAPES.sub("", text).splitlines())
    return [_fit(line, limit) for line in lines if line]


def quoted(reason: str) -> list[str]:
    """The first line of a reason, and below it what is indented there: the source line that it is about."""
    lines = laid_out(reason)[: 1 + QUOTED]
    behind = takewhile(lambda line: line.startswith(" "), lines[1:])
    return [one_line(reason), *behind] if lines else []


def _fit(line: str, limit: int) -> str:
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def significant(value: float, digits: int = 3) -> str:
    """`value` to that many significant digits, with an exponent only below 1e-6 and from 1e7 on.

    Digits before the point are never rounded away: `0.0683`, `2.81`, `10.0`, `12345`.
    """
    scientific = f"{value:.{digits - 1}e}"
    if value == 0:
        return "0"
    if not 1e-6 <= abs(value) < 1e7:
        return scientific
    exponent = int(scientific.partition("e")[2])
    return f"{value:.{max(0, digits - 1 - exponent)}f}"


def percent(share: float | None) -> str:
    """A share from 0 to 1 as a percentage with three significant digits: `0.5` as `50%`; `—` for None."""
    return ABSENT if share is None else f"{100 * share:.3g}%"


def interval(spread: Spread) -> str:
    """The median and both ends, with three significant digits: `2.00 [1.90, 2.10]`."""
    return f"{significant(spread.median)} [{significant(spread.low)}, {significant(spread.high)}]"


def grid(headers: Sequence[str], rows: Sequence[Sequence[str]], align: Sequence[str]) -> str:
    """A table of cells that are shown as they are: a solution named `1e5` stays `1e5`."""
    # Not before there is a table: it takes a quarter of the time that imports take until a run has started its judges.
    from tabulate import tabulate  # type: ignore[import-untyped, unused-ignore]

    return str(tabulate(rows, headers=headers, colalign=align, disable_numparse=True))
