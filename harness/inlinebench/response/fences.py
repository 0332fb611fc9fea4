"""The lines that mean something in an answer: fences that open and close a block, and the tags of reasoning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

_LEAD = r"(?P<lead>(?:[ \t]|>|[-*+][ \t]|\d{1,9}[.)][ \t]){0,64})"
_OPENING = re.compile(_LEAD + r"(?P<marks>`{3,}(?=[^`]*$)|~{3,})[ \t]*(?P<info>.*)")
_BEHIND_PROSE = re.compile(
    r"(?P<lead>)[^`]*(?P<marks>`{3,})(?P<info>python3?|py|cuda|cu|cpp|c\+\+|c)[ \t]*$", re.IGNORECASE
)
_INSIDE = re.compile(r"[ \t]*(?P<marks>`{3,}(?=[^`]*$)|~{3,})[ \t]*(?P<info>.*)")
_LANGUAGE = re.compile(r"[\s{.]*([A-Za-z0-9_+#-]{1,20})")
_QUOTE = re.compile(r"[ \t]*>[ \t]?")

_TAG_NAMES = r"(?:think|thinking|thought|reasoning)>(?!`)"
REASONING_BEGINS = re.compile(rf"[ \t]*<{_TAG_NAMES}", re.IGNORECASE)
REASONING_ENDS = re.compile(rf"(?<!`)</{_TAG_NAMES}", re.IGNORECASE)


class Event(Enum):
    """What a line inside a block may mean to it: its end, the start of something else, or the end of the reasoning."""

    CLOSES = auto()
    OPENS_ANOTHER = auto()
    ENDS_REASONING = auto()


@dataclass(frozen=True)
class Fence:
    """An opening fence: `length` times the `mark` ` or ~, and the `info` behind them.

    `quotes` and `columns` count the quotation marks and the indentation before it, which its block's lines lose.
    Without a mark it is no fence at all, but the start of what may be bare Python, which any fence ends.
    """

    mark: str = ""
    length: int = 3
    info: str = ""
    quotes: int = 0
    columns: int = 0

    @property
    def language(self) -> str:
        """The first word behind the fence, in lower case; "" if there is none."""
        found = _LANGUAGE.match(self.info)
        return found[1].lower() if found else ""

    def is_closed_by(self, other: Fence) -> bool:
        """Whether another fence is of this one's kind, and has nothing behind it but a chat's mark."""
        return self._is_like(other.mark, other.length) and other.info[:1] in ("", "<")

    def without_lead(self, line: str) -> str:
        """A line of the block without the quotation marks and the indentation of the fence, as far as it has them."""
        for _ in range(self.quotes):
            quote = _QUOTE.match(line)
            if not quote:
                break
            line = line[quote.end():]
        position = column = 0
        while column < self.columns and line[position:position + 1] in (" ", "\t"):
            column += 1 if line[position] == " " else 4 - column % 4
            position += 1
        return line[position:]

    def event(self, line: str) -> Event | None:
        """What a line inside the block, without its lead, may mean."""
        if ("```" in line or "~~~" in line) and (found := _INSIDE.match(line)):
            other = Fence(found["marks"][0], len(found["marks"]), found["info"].strip())
            if self.is_closed_by(other):
                return Event.CLOSES
            if self._is_like(other.mark, other.length):
                return Event.OPENS_ANOTHER
        if "<" in line and not self.mark and REASONING_BEGINS.match(line):
            return Event.OPENS_ANOTHER
        return Event.ENDS_REASONING if "<" in line and REASONING_ENDS.search(line) else None

    def _is_like(self, mark: str, length: int) -> bool:
        return self.mark in ("", mark) and length >= self.length


def opening(line: str) -> Fence | None:
    """The fence that a line outside every block opens."""
    if "```" not in line and "~~~" not in line:
        return None
    found = _OPENING.match(line) or _BEHIND_PROSE.match(line)
    if not found:
        return None
    _, quoted, indentation = found["lead"].rpartition(">")
    if quoted:
        indentation = indentation[1:]  # the space that belongs to the quotation mark
    return Fence(found["marks"][0], len(found["marks"]), found["info"].strip(), found["lead"].count(">"),
                 len(indentation.expandtabs(4)))


def behind_closing(line: str) -> str:
    """What follows a closing fence in its line."""
    found = _INSIDE.match(line)
    return line[found.start("info"):] if found else ""
