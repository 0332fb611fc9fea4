"""Describes values that differ: in sentences, and as a table of elements. Untrusted text is sanitized."""

from __future__ import annotations

from dataclasses import dataclass

from inlinebench.foreign import one_line
from inlinebench.results.result import Mismatch, elements_differ

LONGEST_VALUE, LONGEST_NAME = 40, 80
PATTERNS = 6
"""The most patterns of a mismatch that are told."""


@dataclass(frozen=True)
class ElementRow:
    """An element that differs, as a row of a table."""

    index: str
    """Its index, as a list."""
    expected: str
    """The value of the oracle or the reference."""
    got: str
    """The value of the solution."""
    worst: bool
    """Whether it is the one of several with the largest error."""


def heading(found: Mismatch) -> str:
    """Returns which tensor differs in which call, and in how many elements."""
    inputs = f" (inputs: {one_line(found.variant, LONGEST_NAME)})" if found.variant else ""
    at = f"{one_line(found.call, LONGEST_NAME)}{inputs}: " if found.call else ""
    tensor = f"{one_line(found.what, LONGEST_NAME)}, {one_line(found.dtype, LONGEST_NAME)} {list(found.shape)}"
    return f"{at}{tensor}: {elements_differ(found.failed, found.count)}"


def largest(found: Mismatch) -> str:
    """Returns the largest error, and what is allowed."""
    error, tolerance = found.worst_error, found.tolerance
    if tolerance == 0:
        return f"largest difference: {'not finite' if error is None else f'{error:.3g}'}; elements must be equal"
    times = "not finite" if error is None else f"{error / tolerance:.3g} times the limit of its element"
    return f"largest error: {times}; tolerance {tolerance:.3g}"


def patterns(found: Mismatch) -> list[str]:
    """Returns the sentences about all elements that differ, at most `PATTERNS`."""
    return [one_line(pattern) for pattern in found.patterns[:PATTERNS]]


def elements(found: Mismatch) -> list[ElementRow]:
    """Returns the first elements that differ, and the worst one."""
    shown = [*found.first, *([] if found.worst in found.first else [found.worst])]
    several = found.failed > 1 and found.worst_error is not None and found.dtype != "bool"
    return [ElementRow(str(list(each.index)), one_line(each.expected, LONGEST_VALUE), one_line(each.got, LONGEST_VALUE),
                       several and each == found.worst) for each in shown]
