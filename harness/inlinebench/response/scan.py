"""Finds the blocks of a response in one pass over its lines, by the rules in the package's docstring."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

from inlinebench.response.fences import REASONING_BEGINS, REASONING_ENDS, Fence, FenceEvent, behind_closing, opening
from inlinebench.response.python import MODEL, read, string_after

WRAPPERS = ("markdown", "md", "mdx")
MAYBE_WRAPPERS = ("", "text", "txt", "plaintext")
LOOK_AHEAD = 8
"""The bound of discarded readings, as a multiple of the response's length. Beyond it the simplest reading is taken, so
that the time is proportional to the length for any response."""

_CLASS = re.compile(rf"[ \t>]*class {MODEL}\b")


@dataclass
class Extent:
    """A block as it was found."""

    language: str
    """The first word after its fence; may be empty."""
    first: int
    """Its first line, from 0."""
    source: str
    """Its code."""
    closed: bool
    """Whether it is closed."""
    in_reasoning: bool
    """Whether it is in the reasoning."""
    fenced: bool = True
    """Whether it has a fence; False for bare Python."""


class Scan:
    """The scan of a response: `extents` are its blocks, in order.

    `thinking` is the line, from 1, where reasoning begins that has no end. `outside` is the first line, from 1, that
    begins with `class ModelNew` outside all blocks. Both are None if there is no such line.
    """

    def __init__(self, text: str) -> None:
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self._lines = list(io.StringIO(text, newline="\n"))
        self._look_ahead = LOOK_AHEAD * len(text)
        self._wrappers: list[Fence] = []
        self._thought = False
        self.extents: list[Extent] = []
        self.thinking: int | None = None
        self.outside: int | None = None
        self.lines = len(self._lines)
        at = self._bare(0)
        while at < self.lines:
            at = self._outside(at)

    def _outside(self, at: int) -> int:
        """Reads a line outside all blocks, and the block that it opens. Returns the next line to read."""
        if self._tags(at) and (after := self._bare(at)) > at:
            return after
        line = self._lines[at]
        fence = opening(line)
        if fence is None:
            if self.outside is None and _CLASS.match(line):
                self.outside = at + 1
            return at + 1
        if self._wrappers and self._wrappers[-1].is_closed_by(fence):
            self._wrappers.pop()
            return at + 1
        if fence.language in WRAPPERS:
            self._wrappers.append(fence)
            return at + 1
        return self._block(at + 1, fence)

    def _tags(self, at: int) -> bool:
        """Reads and removes the tags of a line outside all blocks. Returns whether reasoning ended in it."""
        line, position, ended = self._lines[at], 0, False
        while "<" in line:
            if self.thinking is None and (tag := REASONING_BEGINS.match(line, position)):
                self.thinking = at + 1
            elif not (self._thought and self.thinking is None) and (tag := REASONING_ENDS.search(line, position)):
                self._end_reasoning()
                ended = True
            else:
                break
            position = tag.end()
        self._lines[at] = line[position:]
        return ended

    def _end_reasoning(self) -> None:
        if self.thinking is None:
            for extent in self.extents:
                extent.in_reasoning = True
        self.thinking, self._thought = None, True
        self._wrappers.clear()

    def _bare(self, at: int) -> int:
        """Takes Python up to the next fence as a block if it defines ModelNew. Returns the next line to read."""
        first = next((line for line in range(at, self.lines) if self._lines[line].strip()), self.lines)
        if self._look_ahead <= 0:
            return at
        end, event = self._end(first, Fence())
        source = "".join(self._lines[first:end])
        if MODEL in source and read(source).defines_model:
            self.extents.append(Extent("", first, source, True, self.thinking is not None, fenced=False))
            return self._behind(end, event)
        self._look_ahead -= len(source)
        return at

    def _block(self, start: int, fence: Fence) -> int:
        """Takes the block whose first line is `start`. Returns the next line to read."""
        end, event = self._end(start, fence)
        source = self._source(start, end, fence)
        if fence.language in MAYBE_WRAPPERS and self._holds_blocks(source):
            self._wrappers.append(fence)
            return start
        closed = event is FenceEvent.CLOSES
        if closed or source.strip():
            self.extents.append(Extent(fence.language, start, source, closed, self.thinking is not None))
        return self._behind(end, event)

    def _end(self, start: int, fence: Fence) -> tuple[int, FenceEvent | None]:
        """Returns the line that ends a block, and how; the number of lines and None if no line does.

        A fence in a string, or an end tag of reasoning, may be part of the code. It is, if the block is valid Python up
        to the first line that certainly ends it.
        """
        inside = ""
        doubtful: tuple[int, FenceEvent] | None = None
        end: tuple[int, FenceEvent | None] = (self.lines, None)
        for at in range(start, self.lines):
            line = fence.without_lead(self._lines[at])
            event = fence.event(line)
            if event is not None:
                if self._look_ahead <= 0 or not (inside or event is FenceEvent.ENDS_REASONING):
                    end = (at, event)
                    break
                doubtful = doubtful or (at, event)
            inside = string_after(line, inside)
        if doubtful is not None and read(source := self._source(start, end[0], fence)).error:
            self._look_ahead -= len(source)
            return doubtful
        return end

    def _holds_blocks(self, source: str) -> bool:
        """Whether a block is text that contains blocks, not code."""
        if self._look_ahead <= 0 or not any(map(opening, source.split("\n"))) or not read(source).error:
            return False
        self._look_ahead -= len(source)
        return True

    def _behind(self, end: int, event: FenceEvent | None) -> int:
        """Returns the next line to read after a block: that of its closing fence, which a tag may follow."""
        if event is FenceEvent.CLOSES:
            self._lines[end] = behind_closing(self._lines[end])
        return end

    def _source(self, start: int, end: int, fence: Fence) -> str:
        return "".join(map(fence.without_lead, self._lines[start:end]))
