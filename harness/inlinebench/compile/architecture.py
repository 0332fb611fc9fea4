"""GPU architectures, written as nvcc writes compute capabilities.

`90` is compute capability 9.0. `90a` is that one alone, with what only it has. `100f` is what its family has in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def in_order(architectures: Iterable[str]) -> tuple[str, ...]:
    """Each once, from old to new: in whatever order they were named, what is built for them is the same."""
    return tuple(sorted(set(architectures), key=lambda name: (_number(name), name)))


def for_newer(architectures: Sequence[str]) -> str:
    """The one whose PTX newer GPUs can run: the newest without a letter, else simply the newest."""
    plain = [each for each in architectures if each.isdecimal()]
    return max(plain or architectures, key=_number)


def runs_on(architectures: Sequence[str], present: str) -> bool:
    """Whether a library that is built for these runs on a GPU of compute capability `present`, such as `90`.

    Machine code runs on GPUs of the same generation that are as new; PTX on all that are as new, if it has no letter.
    """
    newer = for_newer(architectures)
    as_ptx = newer.isdecimal() and _number(newer) <= _number(present)
    return as_ptx or any(_machine_code_runs(each, present) for each in architectures)


def _machine_code_runs(built: str, present: str) -> bool:
    if built.endswith("a"):
        return built[:-1] == present
    number, there = _number(built), _number(present)
    return number <= there and number // 10 == there // 10


def _number(name: str) -> int:
    return int(name.rstrip("af"))
