"""Places in a candidate's memory on the device, from which the judge reads the results of a call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

HANDLE = re.compile(r"(?:[0-9a-f]{128})?")
"""A CUDA IPC handle in hexadecimal digits, or nothing."""


class BadLocation(ValueError):
    """The candidate's description of a place is not one, or lies outside an allocation."""


@dataclass(frozen=True)
class Location:
    """A place in a candidate's memory on the device, or in the arena."""

    handle: str
    """The CUDA IPC handle of the allocation, in hexadecimal digits. Empty for the judge's arena."""
    offset: int
    """The offset of the place in the allocation, in bytes."""

    @classmethod
    def parse(cls, value: Any) -> Location:
        """Returns the location from the result of `to_json`. Raises BadLocation."""
        if not (isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and type(value[1]) is int):
            raise BadLocation("a location has another form")
        if not HANDLE.fullmatch(value[0]) or not 0 <= value[1] < 1 << 48:
            raise BadLocation("a location is out of range")
        return cls(*value)

    def to_json(self) -> list[Any]:
        """Returns the JSON form for a frame."""
        return [self.handle, self.offset]


Places = Sequence[Location | None]
"""The locations of a call's outputs and states. None for those that were copied to the judge's buffers."""
