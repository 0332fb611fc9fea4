"""Numbers and foreign text, made fit for a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

ABSENT = "—"
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\))")
"""Terminal control sequences: colours, cursor movement (CSI), titles and links (OSC)."""


def one_line(text: str, limit: int = 500) -> str:
    """The first line of `text` that isn't blank, its white space collapsed, cut after `limit` characters.

    Reasons and names come from strangers' files and from compilers: control characters are taken out or replaced, so
    that they can't rewrite what stands on the screen.
    """
    lines = (" ".join(line.split()) for line in _ESCAPES.sub("", text).splitlines())
    line = next(filter(None, lines), "")
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


def grid(headers: Sequence[str], rows: Sequence[Sequence[str]], align: Sequence[str]) -> str:
    """A table of cells that are shown as they are: a solution named `1e5` stays `1e5`."""
    # Not before there is a table: it takes a quarter of the time that imports take until a run has started its judges.
    from tabulate import tabulate  # type: ignore[import-untyped, unused-ignore]

    return str(tabulate(rows, headers=headers, colalign=align, disable_numparse=True))
