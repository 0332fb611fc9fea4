"""GPU architectures, as nvcc names compute capabilities.

`90` is compute capability 9.0. `90a` adds the features that only this capability has. `100f` has the features that its
family shares.

"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def in_order(architectures: Iterable[str]) -> tuple[str, ...]:
    """Returns the architectures without duplicates, from old to new, so that their order does not affect the build."""
    return tuple(sorted(set(architectures), key=lambda name: (_number(name), name)))


def for_newer(architectures: Sequence[str]) -> str:
    """Returns the architecture to build PTX for: the newest without a letter suffix, or else the newest."""
    plain = [each for each in architectures if each.isdecimal()]
    return max(plain or architectures, key=_number)


def runs_on(architectures: Sequence[str], present: str) -> bool:
    """Whether a library built for `architectures` runs on a GPU of compute capability `present`, for example `90`.

    Machine code runs on GPUs of the same generation that are at least as new; PTX without a letter suffix on all GPUs
    that are at least as new.
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
