"""The ranges that further sizes of a problem are drawn from: those that it declares, or else derived from its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inlinebench.problem.shapes import constants, literals
from inlinebench.problem.shapes.constants import SizeKind
from inlinebench.problem.shapes.steps import SMALL

EXAMPLE = 'RANGES = {"M": (1, 8192), "K": (64, 4096, 64)}'
_DECLARED = {"SHAPES": "values", "WORKLOADS": "elts"}
"""The declarations of further sizes, each with the field of its literal that has the dictionaries of constants."""
_FIXED = (SizeKind.WINDOW, SizeKind.HEAD_SIZE, SizeKind.GROUP_SIZE)
_COUNTED = (SizeKind.BATCH, SizeKind.GRID, SizeKind.HEADS, SizeKind.GROUPS)
"""Kinds of which small numbers are sizes as well. Other small numbers may be dimensions or numbers of layers."""
_NO_SIZE = re.compile("seed", re.IGNORECASE)


@dataclass(frozen=True)
class Range:
    """The values that a constant may have: every `step`-th one from `low` to `high`."""

    low: int
    high: int
    step: int = 1

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high and (value - self.low) % self.step == 0

    def at_most(self, value: int) -> int:
        """Returns the largest value of the range that is not above this one, or the lowest one."""
        inside = max(self.low, min(value, self.high))
        return inside - (inside - self.low) % self.step


Ranges = Mapping[str, Range]
"""The ranges of constants, by name; `NAME[0]` is that of the first number of a tuple. All other constants are as in the
file."""


def read_ranges(declared: ast.expr, known: Collection[str]) -> dict[str, Range]:
    """Returns the ranges that `RANGES` declares. `known` are the constants that the file assigns.

    Raises ValueError with the line and what is wrong with the declaration.
    """
    try:
        entries = ast.literal_eval(declared)
    except (ValueError, TypeError):
        entries = None
    if not isinstance(entries, dict):
        raise ValueError(f"line {declared.lineno}: RANGES must be a dictionary that can be read without running the "
                         f"file, such as {EXAMPLE}")
    if unknown := [name for name in entries if name not in known]:
        raise ValueError(f"line {declared.lineno}: RANGES: no constant {unknown[0]!r}; the file assigns "
                         f"{', '.join(known) or 'none'}")
    return {name: _range(name, given, declared.lineno) for name, given in entries.items()}


def _range(name: str, given: Any, line: int) -> Range:
    whole = isinstance(given, list | tuple) and len(given) in (2, 3) and all(type(each) is int for each in given)
    if not whole or not 0 <= given[0] <= given[1] or (given[2:] and given[2] < 1):
        raise ValueError(f"line {line}: RANGES[{name!r}] is {given!r}; write (lowest, highest) or (lowest, highest, "
                         f"step), such as {EXAMPLE}")
    return Range(*given)


def derive_ranges(tree: ast.Module) -> dict[str, Range]:
    """Returns ranges for the sizes of a file that declares none, from 1 to the largest value that the file has.

    If it declares `SHAPES` or `WORKLOADS`, its sizes are the constants that these replace. Else they are the whole
    numbers that `get_inputs` and `get_init_inputs` use, without those that may be something else: parts of sliding
    windows, the sizes of heads and groups, and small numbers.
    """
    there = dict(_numbers(constants.read(tree)))
    entries = list(declared_sizes(tree))
    if entries:
        named = {name for entry in entries for name in entry}
        found = {name: max(value, *(entry.get(name, 0) for entry in entries))
                 for name, value in there.items() if name in named}
    else:
        used = _names_used(tree)
        found = {name: value for name, value in there.items()
                 if name.partition("[")[0] in used and _is_size(value, SizeKind.of(name))
                 and not _NO_SIZE.search(name)}
        found |= {str(number): number for number, kind in literals.read(tree).items() if _is_size(number, kind)}
    return {name: Range(1, value) for name, value in found.items() if value > 1}


def relations(tree: ast.Module, ranges: Ranges) -> tuple[tuple[str, str], ...]:
    """Returns pairs of constants with ranges of which the first divides the second, in the file and in all declared
    shapes. In a file without these, only numbers of heads and groups count as divisors: what other sizes have in
    common is mostly a coincidence."""
    base = {name: int(name) for name in ranges if name.isdecimal()} | dict(_numbers(constants.read(tree)))
    known = [{**base, **entry} for entry in ({}, *declared_sizes(tree))]
    names = [name for name in ranges if name in base and SizeKind.of(name) is not SizeKind.BATCH]
    parts = [name for name in names if len(known) > 1 or SizeKind.of(name) in (SizeKind.HEADS, SizeKind.GROUPS)]
    return tuple((one, other) for one in parts for other in names if one != other
                 and all(1 < at[one] < at[other] and at[other] % at[one] == 0 for at in known))


def constants_of(size: Mapping[str, int], known: constants.Constants) -> constants.Constants:
    """Returns the constants of a size: numbers of tuples are put into their tuples, the rest of which is as in the
    file, whose constants are `known`."""
    found: constants.Constants = {}
    for name, value in size.items():
        base, _, index = name.partition("[")
        if not index:
            found[name] = value
            continue
        parts = list(found.get(base, constants.resolved(known[base], {**known, **size})))
        parts[int(index[:-1])] = value
        found[base] = type(known[base])(parts)
    return found


def _numbers(known: constants.Constants) -> Iterator[tuple[str, int]]:
    """Yields the names and values of positive whole numbers, and of those in tuples and lists of numbers."""
    for name, value in known.items():
        parts = enumerate(value) if isinstance(value, tuple | list) else ()
        for label, number in ((name, value), *((f"{name}[{index}]", part) for index, part in parts)):
            if type(number) is int and number > 0:
                yield label, number


def declared_sizes(tree: ast.Module) -> Iterator[dict[str, int]]:
    """Yields the whole numbers of each declared shape and workload that can be read without running the file."""
    for name, expression in constants.assignments(tree.body):
        for entry in getattr(expression, _DECLARED.get(name, ""), None) or ():
            if not isinstance(entry, ast.Dict):
                continue
            pairs = [(getattr(key, "value", None), _whole(value))
                     for key, value in zip(entry.keys, entry.values, strict=True)]
            yield {key: value for key, value in pairs if isinstance(key, str) and value is not None}


def _whole(node: ast.expr) -> int | None:
    try:
        value = constants.whole(node, {})
    except constants.NotWhole:
        return None
    return value if isinstance(value, int) else None


def _is_size(value: int, kind: SizeKind) -> bool:
    return kind not in _FIXED and value > (1 if kind in _COUNTED else SMALL)


def _names_used(tree: ast.Module) -> set[str]:
    """Returns the names that `get_inputs` and `get_init_inputs` use, directly or through other constants."""
    uses = {name: _names(expression) for name, expression in constants.assignments(tree.body)}
    found: set[str] = set()
    todo = {name for function in literals.functions(tree) for name in _names(function)}
    while todo:
        found |= todo
        todo = {name for each in todo for name in uses.get(each, ())} - found
    return found


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
