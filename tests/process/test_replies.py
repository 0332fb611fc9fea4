from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.devices.base import AllocatorPeak
from inlinebench.process.candidate_process import CandidateCheated
from inlinebench.process.replies import (
    LONGEST_NOTE,
    MOST_NOTES,
    ProvenanceReply,
    read_called,
    read_clocked,
    read_held,
    read_holding,
    read_launches,
    read_looped,
    read_provenance,
    read_ready,
    read_rehearsed,
)
from inlinebench.results.launches import Launched
from inlinebench.timing.trace import Activity, Launch
from inlinebench.wire.locations import Location

READY = {"op": "ready", "nonce": "n", "weights": "by name", "buffers": {"own": "theirs"}}
CALLED = {"op": "called", "nonce": "n", "device_ms": 1.5, "forward_ms": None, "drain_ms": 0, "blocked": True,
          "non_tensors": ["1"], "notes": [], "memory": [1 << 30, 2 << 30],
          "activities": [["kernel", 1.0, 2.5, [264, 128, 40, 1024]], ["Memcpy", 3.0, 4.0, None]]}
HANDLE = "0f" * 64
PLACES = [[HANDLE, 512], None, ["", 0]]
HOLDING = {"op": "held", "nonce": "n", "places": PLACES}
HELD = {"op": "held call", "nonce": "n", "non_tensors": ["1"], "notes": ["copied"]}
REHEARSED = {"op": "rehearsed", "nonce": "n", "alone_ms": 0.5, "alone_blocked": False}
LOOPED = {"op": "looped", "nonce": "n", "non_tensors": [["1"], ["2"]], "written_over": [True, False]}
CLOCKED = {"op": "clocked", "nonce": "n", "shown_ms": 0.0033}
REPORTED = {"op": "reported", "nonce": "n", "launches": 3}
PROVENANCE = {"op": "provenance", "nonce": "n", "triton": ["rows"], "launches": [["gemm", "/lib/libtorch_cuda.so"]],
              "libraries": ["/scratch/own.so"], "profiles_itself": False}


def read_loop(frame: dict[str, Any]) -> object:
    return read_looped(frame, 2)


READERS = {"ready": read_ready, "called": read_called, "held": read_holding, "held call": read_held,
           "looped": read_loop, "rehearsed": read_rehearsed, "clocked": read_clocked, "reported": read_launches,
           "provenance": read_provenance}


@pytest.mark.parametrize("forward_ms", [0.5, 0, 1.5])
def test_a_call_with_two_passes_says_how_long_the_first_one_took(forward_ms: float) -> None:
    assert read_called({**CALLED, "forward_ms": forward_ms}, two_passes=True).sample.forward_ms == forward_ms
    assert read_called(dict(CALLED)).sample.forward_ms is None


@pytest.mark.parametrize(("forward_ms", "two_passes"), [
    (None, True), (-0.1, True), (1.6, True), (float("nan"), True), (True, True), ("0.5", True), (0.5, False),
])
def test_no_other_time_of_the_first_pass_is_accepted(forward_ms: object, two_passes: bool) -> None:
    with pytest.raises(CandidateCheated):
        read_called({**CALLED, "forward_ms": forward_ms}, two_passes=two_passes)


def test_valid_replies_are_parsed() -> None:
    ready, called = read_ready(dict(READY)), read_called(dict(CALLED))
    assert (ready.weights, ready.buffers) == ("by name", {"own": "theirs"})
    assert (called.sample.device_ms, called.sample.drain_ms, called.sample.blocked) == (1.5, 0.0, True)
    assert (called.non_tensors, called.notes) == (("1",), ())
    assert called.memory == AllocatorPeak(1 << 30, 2 << 30) and read_called({**CALLED, "memory": None}).memory is None
    launched = Launched(blocks=264, threads=128, registers=40, shared_bytes=1024)
    assert called.activities == (Activity("kernel", 1.0, 2.5, launched), Activity("Memcpy", 3.0, 4.0))
    places = (Location(HANDLE, 512), None, Location("", 0))
    assert read_holding(dict(HOLDING)) == places and read_holding({**HOLDING, "places": None}) is None
    held = read_held(dict(HELD))
    assert (held.non_tensors, held.notes) == (("1",), ("copied",))
    rehearsed = read_rehearsed(dict(REHEARSED))
    assert (rehearsed.alone.device_ms, rehearsed.alone.blocked) == (0.5, False)
    looped = read_looped(dict(LOOPED), 2)
    assert (looped.written_over, looped.non_tensors) == ((True, False), (("1",), ("2",)))
    assert read_launches(dict(REPORTED)) == 3
    assert read_clocked(dict(CLOCKED)) == 0.0033
    launches = (Launch("gemm", "/lib/libtorch_cuda.so"),)
    assert read_provenance(dict(PROVENANCE)) == ProvenanceReply(
        frozenset({"rows"}), launches, frozenset({"/scratch/own.so"}), profiles_itself=False)


@pytest.mark.parametrize("change", [
    {"op": "held"}, {"wall_ms": 0.25}, {"non_tensors": [["1"]]}, {"non_tensors": "12"}, {"written_over": [False]},
    {"written_over": [0, 0]},
    {"written_over": [False, True]}, {"written_over": None}, {"blocked": True},
])
def test_forged_replies_to_loop_are_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(CandidateCheated):
        read_looped({**LOOPED, **change}, 2)


@pytest.mark.parametrize("change", [
    {"op": "called"}, {"weights": 1}, {"weights": None}, {"changed": False}, {"buffers": []}, {"buffers": {"a": 1}},
    {"buffers": None}, {"verdict": "passed"},
])
def test_forged_replies_to_load_are_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(CandidateCheated):
        read_ready({**READY, **change})


@pytest.mark.parametrize("change", [
    {"op": "ready"}, {"device_ms": -1e-9}, {"device_ms": 0}, {"device_ms": float("nan")}, {"device_ms": float("inf")},
    {"device_ms": True}, {"device_ms": "1"}, {"device_ms": None}, {"device_ms": 10**400}, {"drain_ms": -1},
    {"drain_ms": float("nan")}, {"blocked": 1}, {"blocked": None}, {"non_tensors": "1"}, {"non_tensors": [1]},
    {"notes": [None]},
    {"notes": {}}, {"speedup": 100.0}, {"activities": None}, {"activities": [[]]}, {"activities": [["k", 1.0, 2.0]]},
    {"activities": [["k", 2.0, 1.0, None]]}, {"activities": [[1, 1.0, 2.0, None]]},
    {"activities": [["k", True, 2.0, None]]},
    {"activities": [["k", 1.0, 10**400, None]]}, {"activities": [["k" * 401, 1.0, 2.0, None]]},
    {"activities": [["k", 1.0, 2.0, [1, 1, 1]]]}, {"activities": [["k", 1.0, 2.0, [1, 1, 1, -1]]]},
    {"activities": [["k", 1.0, 2.0, [1, 1, 1, 1.5]]]}, {"activities": [["k", 1.0, 2.0, [1, 1, 1, 10**400]]]},
    {"activities": [["k", 1.0, 2.0, None]] * 20_001},
    {"memory": 1}, {"memory": [1]}, {"memory": [1, 2, 3]}, {"memory": [-1, 2]}, {"memory": [1.0, 2]},
    {"memory": [True, 2]}, {"memory": [1, 10**400]}, {"memory": {}}, {"memory": False},
])
def test_forged_replies_to_call_are_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(CandidateCheated):
        read_called({**CALLED, **change})


BAD_PLACES = [
    {"places": "x"}, {"places": [1]}, {"places": [[HANDLE]]}, {"places": [[HANDLE[1:], 0]]},
    {"places": [["xy" * 64, 0]]}, {"places": [[HANDLE, -1]]}, {"places": [[HANDLE, 1.0]]}, {"places": [[HANDLE, True]]},
    {"places": [[HANDLE, 1 << 60]]}, {"places": [[HANDLE + "\n", 0]]}, {"places": [None] * ((1 << 16) + 1)},
]


@pytest.mark.parametrize("change", [*BAD_PLACES, {"op": "queued"}, {"more": 1}])
def test_forged_messages_of_held_calls_are_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(CandidateCheated):
        read_holding({**HOLDING, **change})


@pytest.mark.parametrize("change", [
    {"places": PLACES}, {"op": "called"}, {"released": False}, {"non_tensors": [1]}, {"non_tensors": None},
    {"notes": [None]}, {"took_ms": 1.0},
])
def test_forged_replies_to_hold_are_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(CandidateCheated):
        read_held({**HELD, **change})


@pytest.mark.parametrize("change", [
    {"places": PLACES}, {"op": "held"}, {"alone_blocked": None}, {"alone_ms": -1.0}, {"alone_ms": True},
    {"alone_ms": float("nan")}, {"non_tensors": []},
])
def test_forged_replies_to_rehearse_are_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(CandidateCheated):
        read_rehearsed({**REHEARSED, **change})


@pytest.mark.parametrize("change", [
    {"op": "called"}, {"shown_ms": 0.0}, {"shown_ms": -1.0}, {"shown_ms": 1}, {"shown_ms": True}, {"shown_ms": None},
    {"shown_ms": float("inf")}, {"shown_ms": float("nan")}, {"more": 1},
])
def test_forged_replies_to_clock_are_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(CandidateCheated):
        read_clocked({**CLOCKED, **change})


@pytest.mark.parametrize("launches", [-1, True, 1.0, "1", None])
def test_forged_replies_to_report_are_rejected(launches: object) -> None:
    with pytest.raises(CandidateCheated):
        read_launches({**REPORTED, "launches": launches})


@pytest.mark.parametrize("change", [
    {"op": "called"}, {"triton": None}, {"triton": "rows"}, {"triton": [1]}, {"triton": ["k" * 401]},
    {"triton": ["k"] * 1001}, {"launches": {}}, {"launches": [["gemm"]]}, {"launches": [["gemm", None]]},
    {"launches": ["ab"]}, {"launches": [["k" * 401, "/lib"]]}, {"launches": [["gemm", "/" * 4097]]},
    {"launches": [["gemm", "/lib"]] * 1001}, {"libraries": None}, {"libraries": "/lib"}, {"libraries": [1]},
    {"profiles_itself": 0}, {"profiles_itself": None}, {"own": ["gemm"]},
])
def test_forged_replies_to_provenance_are_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(CandidateCheated):
        read_provenance({**PROVENANCE, **change})


@pytest.mark.parametrize("frame", [READY, CALLED, HOLDING, HELD, REPORTED, PROVENANCE])
def test_a_reply_without_a_field_is_rejected(frame: dict[str, Any]) -> None:
    for name in frame:
        with pytest.raises(CandidateCheated):
            READERS[frame["op"]]({key: value for key, value in frame.items() if key != name})


def test_the_number_and_the_length_of_notes_are_limited() -> None:
    called = read_called({**CALLED, "notes": ["x" * 10_000] * 100})
    assert len(called.notes) == MOST_NOTES
    assert max(map(len, called.notes)) == LONGEST_NOTE


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.sampled_from([READY, CALLED, HOLDING, HELD, REPORTED, PROVENANCE]), st.data())
def test_no_value_of_a_field_raises_another_exception(frame: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(frame)))
    forged = {**frame, name: json.loads(json.dumps(data.draw(_json)))}
    for read in READERS.values():
        try:
            read(forged)
        except CandidateCheated:
            continue
