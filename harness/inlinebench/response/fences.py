"""Recognizes the significant lines of a response: fences of code blocks, and tags of the reasoning."""

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


class FenceEvent(Enum):
    """What a line inside a block may do: close it, open another block or the reasoning, or end the reasoning."""

    CLOSES = auto()
    OPENS_ANOTHER = auto()
    ENDS_REASONING = auto()


@dataclass(frozen=True)
class Fence:
    """An opening fence. Without a `mark`, it stands for the start of bare Python, which any fence ends."""

    mark: str = ""
    """The fence's character, ` or ~; empty for bare Python."""
    length: int = 3
    """How often the character occurs."""
    info: str = ""
    """The text after the characters."""
    quotes: int = 0
    """The number of quotation marks before the fence, which the lines of its block lose."""
    columns: int = 0
    """The columns of indentation before the fence, which the lines of its block lose."""

    @property
    def language(self) -> str:
        """The first word after the fence, in lower case; empty if there is none."""
        found = _LANGUAGE.match(self.info)
        return found[1].lower() if found else ""

    def is_closed_by(self, other: Fence) -> bool:
        """Whether another fence closes this one: same kind, with nothing or a chat tag after it."""
        return self._is_like(other.mark, other.length) and other.info[:1] in ("", "<")

    def without_lead(self, line: str) -> str:
        """Removes the fence's quotation marks and indentation from a line of the block, if it has them."""
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

    def event(self, line: str) -> FenceEvent | None:
        """Returns what a line inside the block may do. The line must be without lead."""
        if ("```" in line or "~~~" in line) and (found := _INSIDE.match(line)):
            other = Fence(found["marks"][0], len(found["marks"]), found["info"].strip())
            if self.is_closed_by(other):
                return FenceEvent.CLOSES
            if self._is_like(other.mark, other.length):
                return FenceEvent.OPENS_ANOTHER
        if "<" in line and not self.mark and REASONING_BEGINS.match(line):
            return FenceEvent.OPENS_ANOTHER
        return FenceEvent.ENDS_REASONING if "<" in line and REASONING_ENDS.search(line) else None

    def _is_like(self, mark: str, length: int) -> bool:
        return self.mark in ("", mark) and length >= self.length


def opening(line: str) -> Fence | None:
    """Returns the fence that a line outside all blocks opens, if any."""
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
    """Returns the text after a closing fence in its line."""
    found = _INSIDE.match(line)
    return line[found.start("info"):] if found else ""
