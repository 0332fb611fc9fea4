"""What a terminal can show: colours, and how many columns."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from inlinebench.results.result import Verdict

_COLOURS = {"green": "\x1b[32m", "yellow": "\x1b[33m", "red": "\x1b[31m"}
_PLAIN = "\x1b[0m"


@dataclass(frozen=True)
class Screen:
    """Where a text is shown. The default is a file or a pipe."""

    colour: bool = False
    """Whether verdicts are coloured."""
    width: int | None = None
    """The columns of the terminal; None for no limit."""

    @classmethod
    def of(cls, stream: TextIO, environment: Mapping[str, str] = os.environ) -> Screen:
        """Returns what a stream can show. NO_COLOR and TERM=dumb switch colours off."""
        if not stream.isatty():
            return cls()
        colour = not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
        return cls(colour, shutil.get_terminal_size().columns)

    def paint(self, verdict: Verdict) -> str:
        """Returns a verdict in its colour."""
        return f"{_COLOURS[verdict.colour]}{verdict}{_PLAIN}" if self.colour else str(verdict)


PLAIN = Screen()
