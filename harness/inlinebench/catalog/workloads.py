"""Reads the set of workloads that a problem declares, from its text."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

NAME, WEIGHT, TOLERANCE = "name", "weight", "tol"
NOT_CONSTANTS = (NAME, WEIGHT, TOLERANCE)
"""The keys of a workload that are not constants."""
EXAMPLE = 'WORKLOADS = [{"name": "decode", "ROWS": 16, "weight": 2}]'


@dataclass(frozen=True)
class DeclaredWorkload:
    """One entry of `WORKLOADS`: a shape that a solution is evaluated at together with the others of its set."""

    name: str
    """Its name in results; by default its constants as `--set` takes them."""
    constants: Mapping[str, Any]
    """The constants that differ from the file's."""
    weight: float = 1.0
    """Its weight in the mean speedup of the set."""
    tolerance: float | None = None
    """The tolerance of its floating-point outputs. None for that of their dtypes."""


def read_workloads(
    declared: ast.expr | None, constants: Collection[str], taken: Collection[str]
) -> tuple[DeclaredWorkload, ...]:
    """Returns the workloads of a set, none if none are declared.

    `constants` are those that the file assigns, and `taken` the names of its shapes. Raises ValueError with the line
    and what is wrong with the declaration.
    """
    if declared is None:
        return ()
    try:
        entries = ast.literal_eval(declared)
    except (ValueError, TypeError):
        entries = None
    if not isinstance(entries, list | tuple) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"line {declared.lineno}: WORKLOADS must be a list of dictionaries that can be read without "
                         f"running the file, such as {EXAMPLE}")
    if not entries:
        raise ValueError(f"line {declared.lineno}: WORKLOADS is empty; remove it, or add a workload: {EXAMPLE}")
    found: list[DeclaredWorkload] = []
    for number, entry in enumerate(entries):
        try:
            found.append(_workload(entry, constants, {*taken, *(each.name for each in found)}))
        except ValueError as error:
            raise ValueError(f"line {declared.lineno}: WORKLOADS[{number}]: {error}") from None
    return tuple(found)


def _workload(entry: Mapping[Any, Any], constants: Collection[str], taken: Collection[str]) -> DeclaredWorkload:
    values = {key: value for key, value in entry.items() if key not in NOT_CONSTANTS}
    if unknown := [key for key in values if key not in constants]:
        raise ValueError(f"no constant {unknown[0]!r}; the file assigns {', '.join(constants) or 'none'}")
    name = entry.get(NAME, named(values))
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"the name {name!r} must be a text; without a name, the workload needs constants")
    if name in taken:
        raise ValueError(f"the name {name!r} is taken by another workload or shape")
    weight, tolerance = entry.get(WEIGHT, 1.0), entry.get(TOLERANCE)
    if not _is_number(weight) or not 0 < weight < math.inf:
        raise ValueError(f"the weight {weight!r} must be a positive number")
    if tolerance is not None and not (_is_number(tolerance) and 0 <= tolerance < math.inf):
        raise ValueError(f"the tolerance {tolerance!r} must be a number that is not negative")
    return DeclaredWorkload(name, values, float(weight), None if tolerance is None else float(tolerance))


def named(constants: Mapping[str, Any]) -> str:
    """Returns the name of a shape by its constants, as `--set` takes them; "" without constants."""
    return ",".join(f"{name}={value}" for name, value in constants.items())


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
