"""The code blocks of a response as records: their positions, their sources, and whether they define `ModelNew`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from inlinebench.response.python import read
from inlinebench.response.scan import Extent, Scan

_LINE = re.compile(r"\bline (\d{1,9})\b")
"""A line number in Python's error message. A message may have a second one, such as where a string began."""


@dataclass(frozen=True)
class Block:
    """A code block of a response."""

    index: int
    """Its number in the response, from 1."""
    language: str
    """The first word after the fence, in lower case; may be empty."""
    first_line: int
    """Its first line of code in the response, from 1."""
    source: str
    """Its code."""
    complete: bool
    """Whether its fence is closed. Bare Python counts as complete."""
    in_reasoning: bool
    """Whether it is in the reasoning."""
    defines_model: bool
    """Whether it is valid Python that defines `ModelNew`."""
    error: str = ""
    """Why it is not valid Python, with the line in the response; empty if it is valid."""
    fenced: bool = True
    """Whether it has a fence; False for bare Python."""

    @property
    def lines(self) -> int:
        """The number of lines of its code."""
        return self.source.count("\n") + (not self.source.endswith("\n") and self.source != "")


@dataclass(frozen=True)
class Response:
    """A parsed response."""

    blocks: tuple[Block, ...]
    """Its code blocks, in order."""
    lines: int
    """Its number of lines."""
    thinking: int | None
    """The line, from 1, where reasoning begins that has no end; None if there is no such line."""
    outside: int | None
    """The first line, from 1, with `class ModelNew` outside all blocks; None if there is no such line."""


def blocks(text: str) -> tuple[Block, ...]:
    """Returns all blocks of a response, in order, including those in the reasoning. Accepts any text."""
    return look(text).blocks


def look(text: str) -> Response:
    """Parses a response, in time proportional to its length."""
    scan = Scan(text)
    found = tuple(_block(index, extent) for index, extent in enumerate(scan.extents, start=1))
    return Response(found, scan.lines, scan.thinking, scan.outside)


def _block(index: int, extent: Extent) -> Block:
    reading = read(extent.source)
    error = reading.error if reading.line is None else f"line {reading.line}: {reading.error}"
    error = _LINE.sub(lambda found: f"line {int(found[1]) + extent.first}", error)
    return Block(
        index=index, language=extent.language, first_line=extent.first + 1, source=extent.source,
        complete=extent.closed, in_reasoning=extent.in_reasoning, defines_model=reading.defines_model, error=error,
        fenced=extent.fenced,
    )
