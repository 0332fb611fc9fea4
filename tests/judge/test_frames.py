from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.judge.candidate_process import CandidateCheated
from harness.judge.frames import LONGEST_NOTE, MOST_NOTES, read_called, read_ready

READY = {"op": "ready", "nonce": "n", "weights": "by name", "changed": False, "buffers": {"own": "theirs"}}
CALLED = {"op": "called", "nonce": "n", "device_ms": 1.5, "drain_ms": 0, "held": True, "others": ["1"], "notes": []}


def test_honest_frames_are_read() -> None:
    ready, called = read_ready(dict(READY)), read_called(dict(CALLED))
    assert (ready.weights, ready.changed, ready.buffers) == ("by name", False, {"own": "theirs"})
    assert (called.sample.device_ms, called.sample.drain_ms, called.sample.held) == (1.5, 0.0, True)
    assert (called.others, called.notes) == (("1",), ())


@pytest.mark.parametrize("change", [
    {"op": "called"}, {"weights": 1}, {"weights": None}, {"changed": 0}, {"buffers": []}, {"buffers": {"a": 1}},
    {"buffers": None}, {"verdict": "passed"},
])
def test_forged_ready_frames_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CandidateCheated):
        read_ready({**READY, **change})


@pytest.mark.parametrize("change", [
    {"op": "ready"}, {"device_ms": -1e-9}, {"device_ms": float("nan")}, {"device_ms": float("inf")},
    {"device_ms": True}, {"device_ms": "1"}, {"device_ms": None}, {"device_ms": 10**400}, {"drain_ms": -1},
    {"drain_ms": float("nan")}, {"held": 1}, {"held": None}, {"others": "1"}, {"others": [1]}, {"notes": [None]},
    {"notes": {}}, {"speedup": 100.0},
])
def test_forged_called_frames_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CandidateCheated):
        read_called({**CALLED, **change})


@pytest.mark.parametrize("frame", [READY, CALLED])
def test_a_field_that_is_missing_is_refused(frame: dict[str, Any]) -> None:
    read = read_ready if frame is READY else read_called
    for name in frame:
        with pytest.raises(CandidateCheated):
            read({key: value for key, value in frame.items() if key != name})


def test_notes_are_bounded() -> None:
    called = read_called({**CALLED, "notes": ["x" * 10_000] * 100})
    assert len(called.notes) == MOST_NOTES
    assert max(map(len, called.notes)) == LONGEST_NOTE


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.sampled_from([READY, CALLED]), st.data())
def test_no_value_of_any_field_raises_anything_else(frame: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(frame)))
    forged = {**frame, name: json.loads(json.dumps(data.draw(_json)))}
    for read in (read_ready, read_called):
        try:
            read(forged)
        except CandidateCheated:
            continue
