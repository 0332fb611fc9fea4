"""The forms of a candidate's answers. Whatever has another form is no honest candidate's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inlinebench.process.candidate_process import CandidateCheated
from inlinebench.timing.call import Sample
from inlinebench.timing.profile import LONGEST_NAME, MOST_ACTIVITIES, Activity

LONGEST_NOTE = 200
MOST_NOTES = 16
LONGEST_MS = 3.6e9
LONGEST_US = 1e18
"""Larger than any time, small enough for a float."""


@dataclass(frozen=True)
class Ready:
    """The solution is loaded. `buffers` maps its own buffer names to the reference's."""

    weights: str
    changed: bool
    buffers: dict[str, str]


@dataclass(frozen=True)
class Called:
    """A call was made. `others` are the outputs that are no tensors, as Python literals."""

    sample: Sample
    non_tensors: tuple[str, ...]
    notes: tuple[str, ...]
    activities: tuple[Activity, ...] = ()


@dataclass(frozen=True)
class Batched:
    """A batch of calls was made. `held`: the hold didn't end by itself. `others` are as in a call, for each."""

    blocked: bool
    non_tensors: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Looped:
    """Calls were made back to back, each in so many ms by the candidate's clock. `written_over` tells for each call
    whether a later one took the memory of its output; `others` are as in a call, for each."""

    wall_ms: float
    written_over: tuple[bool, ...]
    non_tensors: tuple[tuple[str, ...], ...]


def read_ready(frame: dict[str, Any]) -> Ready:
    """Raises CandidateCheated if the frame is none of this form."""
    buffers = frame.get("buffers")
    _require(frame, "ready", {"op", "nonce", "weights", "changed", "buffers"})
    _demand(isinstance(frame["weights"], str) and isinstance(frame["changed"], bool))
    _demand(isinstance(buffers, dict) and all(isinstance(name, str) for name in buffers.values()))
    return Ready(frame["weights"][:LONGEST_NOTE], frame["changed"], dict(buffers or {}))


def read_called(frame: dict[str, Any]) -> Called:
    """Raises CandidateCheated if the frame is none of this form."""
    _require(frame, "called", {"op", "nonce", "device_ms", "drain_ms", "blocked", "non_tensors", "notes", "activities"})
    for name in ("device_ms", "drain_ms"):
        # A whole number can be too large for a float: no call lasts a thousand hours.
        _demand(type(frame[name]) in (int, float) and 0 <= frame[name] <= LONGEST_MS)
    _demand(frame["device_ms"] > 0)  # no call takes no time, and one without a time would not count
    _demand(isinstance(frame["blocked"], bool))
    for name in ("non_tensors", "notes"):
        _demand(isinstance(frame[name], list) and all(isinstance(text, str) for text in frame[name]))
    notes = tuple(note[:LONGEST_NOTE] for note in frame["notes"][:MOST_NOTES])
    sample = Sample(float(frame["device_ms"]), float(frame["drain_ms"]), frame["blocked"])
    return Called(sample, tuple(frame["non_tensors"]), notes, _activities(frame["activities"]))


def read_batched(frame: dict[str, Any], calls: int) -> Batched:
    """Raises CandidateCheated if the frame is none of this form, or not about so many calls."""
    _require(frame, "batched", {"op", "nonce", "blocked", "non_tensors"})
    _demand(isinstance(frame["blocked"], bool))
    return Batched(frame["blocked"], _plain_outputs(frame["non_tensors"], calls))


def read_looped(frame: dict[str, Any], calls: int) -> Looped:
    """Raises CandidateCheated if the frame is none of this form, or not about so many calls."""
    _require(frame, "looped", {"op", "nonce", "wall_ms", "non_tensors", "written_over"})
    _demand(type(frame["wall_ms"]) in (int, float) and 0 < frame["wall_ms"] <= LONGEST_MS)
    over = frame["written_over"]
    _demand(isinstance(over, list) and len(over) == calls and all(isinstance(each, bool) for each in over))
    _demand(not over[-1])  # nothing comes after it
    return Looped(float(frame["wall_ms"]), tuple(over), _plain_outputs(frame["non_tensors"], calls))


def read_clocked(frame: dict[str, Any]) -> float:
    """What the clock shows for a kernel that does nothing, in ms. Raises CandidateCheated if the frame is none of this
    form."""
    _require(frame, "clocked", {"op", "nonce", "shown_ms"})
    _demand(type(frame["shown_ms"]) is float and 0 < frame["shown_ms"] <= LONGEST_MS)
    return float(frame["shown_ms"])


def read_launches(frame: dict[str, Any]) -> int:
    """The number of kernels that the CPU has run. Raises CandidateCheated if the frame is none of this form."""
    _require(frame, "reported", {"op", "nonce", "launches"})
    _demand(type(frame["launches"]) is int and frame["launches"] >= 0)
    return int(frame["launches"])


def _plain_outputs(rows: Any, calls: int) -> tuple[tuple[str, ...], ...]:
    _demand(isinstance(rows, list) and len(rows) == calls)
    for row in rows:
        _demand(isinstance(row, list) and all(isinstance(text, str) for text in row))
    return tuple(tuple(row) for row in rows)


def _activities(rows: Any) -> tuple[Activity, ...]:
    _demand(isinstance(rows, list) and len(rows) <= MOST_ACTIVITIES)
    for row in rows:
        _demand(isinstance(row, list) and len(row) == 3 and isinstance(row[0], str) and len(row[0]) <= LONGEST_NAME)
        _demand(all(type(time) in (int, float) and abs(time) <= LONGEST_US for time in row[1:]) and row[1] <= row[2])
    return tuple(Activity(name, float(begin), float(end)) for name, begin, end in rows)


def _require(frame: dict[str, Any], operation: str, fields: set[str]) -> None:
    _demand(frame.get("op") == operation and set(frame) == fields)


def _demand(condition: bool) -> None:
    if not condition:
        raise CandidateCheated("the candidate sent an answer of no known form")
