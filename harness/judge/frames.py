"""The forms of a candidate's answers. Whatever has another form is no honest candidate's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.judge.candidate_process import CandidateCheated
from harness.timing.call import Sample

LONGEST_NOTE = 200
MOST_NOTES = 16
LONGEST_MS = 3.6e9


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
    others: tuple[str, ...]
    notes: tuple[str, ...]


def read_ready(frame: dict[str, Any]) -> Ready:
    """Raises CandidateCheated if the frame is none of this form."""
    buffers = frame.get("buffers")
    _require(frame, "ready", {"op", "nonce", "weights", "changed", "buffers"})
    _demand(isinstance(frame["weights"], str) and isinstance(frame["changed"], bool))
    _demand(isinstance(buffers, dict) and all(isinstance(name, str) for name in buffers.values()))
    return Ready(frame["weights"][:LONGEST_NOTE], frame["changed"], dict(buffers or {}))


def read_called(frame: dict[str, Any]) -> Called:
    """Raises CandidateCheated if the frame is none of this form."""
    _require(frame, "called", {"op", "nonce", "device_ms", "drain_ms", "held", "others", "notes"})
    for name in ("device_ms", "drain_ms"):
        # A whole number can be too large for a float: no call lasts a thousand hours.
        _demand(type(frame[name]) in (int, float) and 0 <= frame[name] <= LONGEST_MS)
    _demand(isinstance(frame["held"], bool))
    for name in ("others", "notes"):
        _demand(isinstance(frame[name], list) and all(isinstance(text, str) for text in frame[name]))
    notes = tuple(note[:LONGEST_NOTE] for note in frame["notes"][:MOST_NOTES])
    sample = Sample(float(frame["device_ms"]), float(frame["drain_ms"]), frame["held"])
    return Called(sample, tuple(frame["others"]), notes)


def _require(frame: dict[str, Any], operation: str, fields: set[str]) -> None:
    _demand(frame.get("op") == operation and set(frame) == fields)


def _demand(condition: bool) -> None:
    if not condition:
        raise CandidateCheated("the candidate sent an answer of no known form")
