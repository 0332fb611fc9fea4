from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.devices.cuda import tracer as tracers
from inlinebench.timing import trace
from inlinebench.timing.trace import Activity, in_microseconds

NOW_NS = 1_795_349_000_123_456_789
"""A time as CUPTI gives it: as a float in µs it would have a resolution of a quarter of a microsecond."""


def test_times_are_counted_from_the_first_begin() -> None:
    found = [("second", NOW_NS + 1_504, NOW_NS + 2_528, None), ("first", NOW_NS, NOW_NS + 1_056, None)]
    assert in_microseconds(found) == [Activity("second", 1.504, 2.528), Activity("first", 0.0, 1.056)]


def test_a_trace_may_be_empty() -> None:
    assert in_microseconds([]) == []


@given(st.lists(st.tuples(st.integers(0, 10**10), st.integers(1, 10**9)), min_size=1))
def test_durations_keep_nanosecond_resolution(spans: list[tuple[int, int]]) -> None:
    found = in_microseconds([("kernel", NOW_NS + begin, NOW_NS + begin + taken, None) for begin, taken in spans])
    assert [round((each.end_us - each.begin_us) * 1e3) for each in found] == [taken for _, taken in spans]


def test_a_call_with_very_many_kernels_keeps_the_clocks_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MOST_ACTIVITIES", 4)
    names = ["inlinebench_block", "a", "b", "c", "d", "inlinebench_stop"]
    activities = [Activity(name, float(number), float(number)) for number, name in enumerate(names)]
    kept = trace.in_order(activities[::-1])
    assert [activity.name for activity in kept] == ["inlinebench_block", "a", "b", "inlinebench_stop"]


def test_a_late_tracer_is_opened_once_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []

    class Opened:
        def __init__(self, library: Path) -> None:
            opened.append(library)

        def __call__(self, work: Callable[[], int]) -> tuple[int, list[Activity]]:
            return work(), []

    monkeypatch.setattr(tracers, "CuptiTracer", Opened)
    tracer = tracers.open_tracer("trace.so", late=True)
    assert opened == []
    assert [tracer(lambda: 1), tracer(lambda: 2)] == [(1, []), (2, [])]
    assert opened == [Path("trace.so")]
    tracers.open_tracer("trace.so")
    assert opened == [Path("trace.so")] * 2
