"""The blocks of an answer as records: where each stands, what it holds, and whether it defines `ModelNew`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from inlinebench.response.python import read
from inlinebench.response.scan import Extent, Scan

_LINE = re.compile(r"\bline (\d{1,9})\b")
"""A line of the block in Python's message, which may name a second one: where the string began, for example."""


@dataclass(frozen=True)
class Block:
    """A code block of an answer. `index` and `first_line` count from 1; `first_line` is its first line of code.

    `language` is the first word behind the fence, in lower case, or empty. `complete` says that its fence is closed,
    and `fenced` that it has one: bare Python has not, and is complete. `error` says why it isn't Python and in which
    line of the answer; a block of C++ has one, too, and none that has one defines the model.
    """

    index: int
    language: str
    first_line: int
    source: str
    complete: bool
    in_reasoning: bool
    defines_model: bool
    error: str = ""
    fenced: bool = True

    @property
    def lines(self) -> int:
        return self.source.count("\n") + (not self.source.endswith("\n") and self.source != "")


@dataclass(frozen=True)
class Response:
    """What an answer of so many lines holds. `thinking` and `outside` are lines, from 1: where reasoning begins that
    has no end, and where `class ModelNew` stands outside every block."""

    blocks: tuple[Block, ...]
    lines: int
    thinking: int | None
    outside: int | None


def blocks(text: str) -> tuple[Block, ...]:
    """All blocks of an answer, in order, those in its reasoning included. Any text will do."""
    return look(text).blocks


def look(text: str) -> Response:
    """What an answer holds. Takes time in proportion to its length."""
    scan = Scan(text)
    found = tuple(_block(index, extent) for index, extent in enumerate(scan.extents, start=1))
    return Response(found, scan.lines, scan.thinking, scan.outside)


def _block(index: int, extent: Extent) -> Block:
    reading = read(extent.source)
    error = reading.error if reading.line is None else f"line {reading.line}: {reading.error}"
    error = _LINE.sub(lambda found: f"line {int(found[1]) + extent.first}", error)
    return Block(
        index, extent.language, extent.first + 1, extent.source, extent.closed, extent.in_reasoning,
        reading.defines_model, error, extent.fenced,
    )
