"""What cannot run on the CPU."""

from __future__ import annotations


class Unsupported(Exception):
    """A construct of the source that has no meaning on the CPU, or none that we give it.

    `line` is 1-based, in the source string that was translated.
    """

    def __init__(self, construct: str, line: int, advice: str = "it needs a GPU; run with a CUDA device") -> None:
        super().__init__(f"{construct} (line {line}): {advice}")
        self.construct = construct
        self.line = line
