"""Parses a candidate's replies. A reply of any other form counts as cheating."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from inlinebench.devices.base import AllocatorPeak
from inlinebench.process.candidate_process import CandidateCheated
from inlinebench.results.launches import Launched
from inlinebench.timing.call import Sample
from inlinebench.timing.trace import (
    LONGEST_NAME,
    LONGEST_PATH,
    MOST_ACTIVITIES,
    MOST_KERNELS,
    Activity,
    Launch,
)
from inlinebench.wire.locations import BadLocation, Location, Places

LONGEST_NOTE = 300
MOST_NOTES = 16
MOST_PLACES = 1 << 16
"""More than any call has outputs and states."""
LONGEST_MS = 3.6e9
LONGEST_US = 1e18
"""Larger than any time, but small enough for a float."""
MOST_OF_A_LAUNCH = 1 << 63
"""More than any launch has blocks: CUDA allows 2^31 - 1 times 65535 times 65535."""

MOST_BYTES = 1 << 53
"""More memory than any device has."""


@dataclass(frozen=True)
class ReadyReply:
    """The solution is loaded."""

    weights: str
    """How its weights match the reference's, in words."""
    buffers: dict[str, str]
    """The reference's name of each matched buffer, by the solution's name."""


@dataclass(frozen=True)
class Called:
    """A call is finished."""

    sample: Sample
    """Its time, by the candidate's clock."""
    non_tensors: tuple[str, ...]
    """The non-tensor outputs, as Python literals."""
    notes: tuple[str, ...]
    """Conversions of outputs, and launches that CUDA refused."""
    activities: tuple[Activity, ...] = ()
    """The GPU's activities, if the call was profiled."""
    memory: AllocatorPeak | None = None
    """What PyTorch's allocator says, if it was asked and counts."""


@dataclass(frozen=True)
class Held:
    """A held call is finished."""

    non_tensors: tuple[str, ...]
    """The non-tensor outputs, as Python literals."""
    notes: tuple[str, ...]
    """Conversions of outputs."""


@dataclass(frozen=True)
class Rehearsed:
    """A held call of the stand-in is finished."""

    alone: Sample
    """The time of one call of the stand-in that was not held."""


@dataclass(frozen=True)
class Looped:
    """A loop of calls is finished."""

    written_over: tuple[bool, ...]
    """For each call, whether a later one reused the memory of its output."""
    non_tensors: tuple[tuple[str, ...], ...]
    """For each call, the non-tensor outputs as Python literals."""


@dataclass(frozen=True)
class ProvenanceReply:
    """Where a candidate's kernels come from, according to its own process."""

    triton: frozenset[str] = frozenset()
    """The names of the kernels that Triton compiled from functions of the solution's files."""
    launches: tuple[Launch, ...] = ()
    """Which library launches each kernel, if a call was made that recorded it."""
    libraries: frozenset[str] = frozenset()
    """Those of these libraries that the solution has brought, or has built without the harness."""
    profiles_itself: bool = False
    """Whether the solution started PyTorch's profiler during a profiled call."""


def read_ready(frame: dict[str, Any]) -> ReadyReply:
    """Parses the reply to `load`. Raises CandidateCheated if it has another form."""
    buffers = frame.get("buffers")
    _require(frame, "ready", {"op", "nonce", "weights", "buffers"})
    _demand(isinstance(frame["weights"], str))
    _demand(isinstance(buffers, dict) and all(isinstance(name, str) for name in buffers.values()))
    return ReadyReply(frame["weights"][:LONGEST_NOTE], dict(buffers or {}))


def read_called(frame: dict[str, Any], *, two_passes: bool = False) -> Called:
    """Parses the reply to `call`. Raises CandidateCheated if it has another form.

    `two_passes` is whether the call was a forward and a backward.
    """
    _require(frame, "called", {
        "op", "nonce", "device_ms", "forward_ms", "drain_ms", "blocked", "non_tensors", "notes", "activities",
        "memory"})
    for name in ("device_ms", "drain_ms"):
        _demand(_is_time(frame[name]))
    _demand(frame["device_ms"] > 0)  # a call with a time of 0 would not be counted
    forward_ms = frame["forward_ms"]
    _demand(_is_time(forward_ms) and forward_ms <= frame["device_ms"] if two_passes else forward_ms is None)
    _demand(isinstance(frame["blocked"], bool))
    plain, = _plain_outputs([frame["non_tensors"]], 1)
    sample = Sample(float(frame["device_ms"]), float(frame["drain_ms"]), frame["blocked"],
                    float(forward_ms) if two_passes else None)
    return Called(sample, plain, _notes(frame["notes"]), _activities(frame["activities"]), _memory(frame["memory"]))


def read_holding(frame: Mapping[str, Any]) -> Places | None:
    """Parses the message that a call or a loop can be released. Returns where its results will be, if it says so.

    Raises CandidateCheated if it has another form.
    """
    _require(frame, "held", {"op", "nonce", "places"})
    return None if frame["places"] is None else _places(frame["places"])


def read_held(frame: dict[str, Any]) -> Held:
    """Parses the reply to `hold`. Raises CandidateCheated if it has another form."""
    _require(frame, "held call", {"op", "nonce", "non_tensors", "notes"})
    plain, = _plain_outputs([frame["non_tensors"]], 1)
    return Held(plain, _notes(frame["notes"]))


def read_rehearsed(frame: dict[str, Any]) -> Rehearsed:
    """Parses the reply to `rehearse`. Raises CandidateCheated if it has another form."""
    _require(frame, "rehearsed", {"op", "nonce", "alone_ms", "alone_blocked"})
    _demand(isinstance(frame["alone_blocked"], bool) and _is_time(frame["alone_ms"]))
    return Rehearsed(Sample(float(frame["alone_ms"]), 0.0, frame["alone_blocked"]))


def read_looped(frame: dict[str, Any], calls: int) -> Looped:
    """Parses the reply to `loop`. Raises CandidateCheated if it has another form or another number of calls."""
    _require(frame, "looped", {"op", "nonce", "non_tensors", "written_over"})
    over = frame["written_over"]
    _demand(isinstance(over, list) and len(over) == calls and all(isinstance(each, bool) for each in over))
    _demand(not over[-1])  # no call comes after the last one
    return Looped(tuple(over), _plain_outputs(frame["non_tensors"], calls))


def read_clocked(frame: dict[str, Any]) -> float:
    """Parses the reply to `clock` and returns the clock's time for an empty kernel, in ms. Raises CandidateCheated if
    it has another form."""
    _require(frame, "clocked", {"op", "nonce", "shown_ms"})
    _demand(type(frame["shown_ms"]) is float and 0 < frame["shown_ms"] <= LONGEST_MS)
    return float(frame["shown_ms"])


def read_launches(frame: dict[str, Any]) -> int:
    """Parses the reply to `report` and returns the number of kernels that ran on the CPU. Raises CandidateCheated if it
    has another form."""
    _require(frame, "reported", {"op", "nonce", "launches"})
    _demand(type(frame["launches"]) is int and frame["launches"] >= 0)
    return int(frame["launches"])


def read_provenance(frame: dict[str, Any]) -> ProvenanceReply:
    """Parses the reply to `provenance`. Raises CandidateCheated if it has another form."""
    _require(frame, "provenance", {"op", "nonce", "triton", "launches", "libraries", "profiles_itself"})
    triton, launches, libraries = frame["triton"], frame["launches"], frame["libraries"]
    _demand(isinstance(triton, list) and len(triton) <= MOST_KERNELS and all(map(_is_name, triton)))
    _demand(isinstance(launches, list) and len(launches) <= MOST_KERNELS)
    for row in launches:
        _demand(isinstance(row, list) and len(row) == 2 and _is_name(row[0]))
        _demand(isinstance(row[1], str) and len(row[1]) <= LONGEST_PATH)
    _demand(isinstance(libraries, list) and len(libraries) <= MOST_KERNELS)
    _demand(all(isinstance(each, str) for each in libraries))
    _demand(isinstance(frame["profiles_itself"], bool))
    launches = tuple(Launch(*row) for row in launches)
    return ProvenanceReply(frozenset(triton), launches, frozenset(libraries), frame["profiles_itself"])


def _places(value: Any) -> Places:
    _demand(isinstance(value, list) and len(value) <= MOST_PLACES)
    try:
        return tuple(None if each is None else Location.parse(each) for each in value)
    except BadLocation as error:
        raise CandidateCheated(f"invalid reply from the solution's process: {error}") from None


def _notes(value: Any) -> tuple[str, ...]:
    _demand(isinstance(value, list) and all(isinstance(text, str) for text in value))
    return tuple(note[:LONGEST_NOTE] for note in value[:MOST_NOTES])


def _plain_outputs(rows: Any, calls: int) -> tuple[tuple[str, ...], ...]:
    _demand(isinstance(rows, list) and len(rows) == calls)
    for row in rows:
        _demand(isinstance(row, list) and all(isinstance(text, str) for text in row))
    return tuple(tuple(row) for row in rows)


def _activities(rows: Any) -> tuple[Activity, ...]:
    _demand(isinstance(rows, list) and len(rows) <= MOST_ACTIVITIES)
    for row in rows:
        _demand(isinstance(row, list) and len(row) == 4 and _is_name(row[0]))
        _demand(all(type(time) in (int, float) and abs(time) <= LONGEST_US for time in row[1:3]) and row[1] <= row[2])
    return tuple(Activity(name, float(begin), float(end), _launched(numbers)) for name, begin, end, numbers in rows)


def _memory(numbers: Any) -> AllocatorPeak | None:
    if numbers is None:
        return None
    _demand_counts(numbers, AllocatorPeak, MOST_BYTES)
    return AllocatorPeak(*numbers)


def _launched(numbers: Any) -> Launched | None:
    if numbers is None:
        return None
    _demand_counts(numbers, Launched, MOST_OF_A_LAUNCH)
    return Launched(*numbers)


def _demand_counts(numbers: Any, record: type[AllocatorPeak | Launched], most: int) -> None:
    """Demands a number from 0 to `most` for each field of a record."""
    _demand(isinstance(numbers, list) and len(numbers) == len(fields(record)))
    _demand(all(type(number) is int and 0 <= number <= most for number in numbers))


def _is_time(value: Any) -> bool:
    # The upper bound also rejects integers that are too large for a float.
    return type(value) in (int, float) and 0 <= value <= LONGEST_MS


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_NAME


def _require(frame: Mapping[str, Any], operation: str, fields: set[str]) -> None:
    _demand(frame.get("op") == operation and set(frame) == fields)


def _demand(condition: bool) -> None:
    if not condition:
        raise CandidateCheated("invalid reply from the solution's process")
