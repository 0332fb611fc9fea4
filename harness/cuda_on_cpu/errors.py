"""The error for sources that cannot run on the CPU."""

from __future__ import annotations


class Unsupported(Exception):
    """The source has a construct that is not supported on the CPU.

    `line` counts from 1 in the source string that was translated.
    """

    def __init__(self, construct: str, line: int, advice: str = "it needs a GPU; run with a CUDA device") -> None:
        super().__init__(f"{construct} (line {line}): {advice}")
        self.construct = construct
        self.line = line


class Malformed(Unsupported):
    """The source is not CUDA C++, so it cannot be built for a GPU either."""
