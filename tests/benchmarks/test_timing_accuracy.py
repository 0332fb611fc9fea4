from __future__ import annotations

import json
import math
import random
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from inlinebench.results.result import Check, Result, Verdict
from inlinebench.results.times import Spread, Timing
from inlinebench.timing.trace import Activity

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))  # scripts, not a package

from accuracy_bars import (
    FEWEST,
    FLUSHED,
    KINDS,
    SPUN,
    TRACED,
    Bar,
    Differing,
    Flushed,
    Repeated,
    Row,
    SelfCompared,
    Spun,
    Traced,
    head,
    line,
    read_row,
    spin_for,
    time_text,
)
from accuracy_gpu import span_us, usable
from accuracy_runs import add
from timing_accuracy import Record, read_record

CALLS = 15
RATE = 1980.0
"""Cycles per µs."""


def noisy(time_us: float, by_us: float = 0.1, calls: int = CALLS) -> list[float]:
    source = random.Random(f"{time_us}")
    return [time_us + source.uniform(-by_us, by_us) for _ in range(calls)]


def traced(cupti_us: float, timer_us: float) -> Traced:
    return Traced("work", noisy(timer_us), noisy(cupti_us))


def spun(asked_us: float, timer_us: float, overhead_us: float = 1.3, rate: float = RATE) -> Spun:
    return Spun("spin", [asked_us * RATE] * CALLS, [rate] * CALLS, noisy(timer_us), noisy(overhead_us))


def intervals(number: int, middle: float, width: float = 0.004) -> list[list[float]]:
    return [[middle - width / 2, middle, middle + width / 2]] * number


@pytest.mark.parametrize(("bar", "at", "allowed"), [
    (TRACED, 10.0, 3.0), (TRACED, 150.0, 3.0), (TRACED, 1000.0, 20.0),
    (SPUN, 100.0, 2.0), (SPUN, 20_000.0, 200.0), (FLUSHED, 20.0, 0.5), (FLUSHED, 500.0, 5.0),
])
def test_a_bar_is_the_larger_of_a_share_and_an_absolute_time(bar: Bar, at: float, allowed: float) -> None:
    assert bar.us(at) == pytest.approx(allowed)
    assert bar.allows(allowed * 0.999, at) and bar.allows(-allowed * 0.999, at)
    assert not bar.allows(allowed * 1.001, at) and not bar.allows(-allowed * 1.001, at)


@pytest.mark.parametrize(("difference", "time"), [(math.nan, 1.0), (0.0, math.nan), (1e6, math.inf)])
def test_nan_and_infinity_miss_a_bar(difference: float, time: float) -> None:
    assert not Bar(0.01, 1.0).allows(difference, time)


@pytest.mark.parametrize(("cupti", "timer", "met"), [
    (1.2, 3.8, True), (1.2, 4.6, False), (50_000.0, 50_900.0, True), (50_000.0, 51_100.0, False), (50.0, 46.5, False),
])
def test_the_timer_is_compared_with_cupti(cupti: float, timer: float, met: bool) -> None:
    assert traced(cupti, timer).met is met


def test_equal_medians_do_not_hide_differences_call_by_call() -> None:
    cupti = [10.0] * 8 + [30.0] * 7
    timer = [14.0] * 7 + [10.0] + [34.0] * 7
    row = Traced("work", timer, cupti)
    assert row.between_medians == pytest.approx(4.0) and row.between_pairs == pytest.approx(4.0) and not row.met
    turned = Traced("work", [10.0, 20.0, 30.0] * 5, [20.0, 30.0, 10.0] * 5)
    assert turned.between_medians == 0 and turned.between_pairs == -10 and not turned.met


def test_a_row_needs_enough_usable_calls() -> None:
    assert Traced("work", [10.0] * FEWEST, [10.0] * FEWEST).met
    assert not Traced("work", [10.0] * (FEWEST - 1), [10.0] * (FEWEST - 1)).met
    assert usable([1.0, None, 2.0]) == [1.0, 2.0]


@pytest.mark.parametrize(("asked", "timer", "met"), [
    (5.0, 7.5, True), (5.0, 8.6, False), (20_000.0, 20_150.0, True), (20_000.0, 20_230.0, False), (50.0, 48.0, False),
])
def test_the_timer_is_compared_with_known_spins(asked: float, timer: float, met: bool) -> None:
    assert spun(asked, timer).met is met


def test_the_overhead_is_subtracted_from_a_spin() -> None:
    assert spun(5.0, 8.6, overhead_us=2.0).met and not spun(5.0, 8.6, overhead_us=1.0).met


def test_the_expected_time_of_a_spin_uses_the_clock_rate_of_the_same_call() -> None:
    slowed = spun(1000.0, 1111.0, rate=RATE * 0.9)
    assert slowed.expected_us == pytest.approx([1000 / 0.9] * CALLS) and slowed.met
    assert not spun(1000.0, 1111.0).met


@pytest.mark.parametrize(("ours", "clean", "dirty", "met"), [
    (10.2, 10.0, 17.0, True), (10.7, 10.0, 10.7, False), (502.0, 500.0, 520.0, True), (507.0, 500.0, 520.0, False),
])
def test_only_the_clocks_own_flush_has_a_bar(ours: float, clean: float, dirty: float, met: bool) -> None:
    assert Flushed("copy", [ours] * CALLS, [clean] * CALLS, [dirty] * CALLS).met is met


@pytest.mark.parametrize(("time_us", "speedups", "met"), [
    (60.0, [40.0, 40.3, 40.7], True), (60.0, [40.0, 40.5, 40.9], False),
    (5.0, [4.0, 4.05, 4.19], True), (5.0, [4.0, 4.05, 4.21], False),
    (60.0, [40.0], False),
])
def test_the_spread_between_processes_has_a_bar(time_us: float, speedups: list[float], met: bool) -> None:
    assert Repeated("solution", [time_us] * len(speedups), speedups).met is met


@pytest.mark.parametrize(("hits", "met"), [(100, True), (93, True), (92, False)])
def test_few_intervals_of_a_reference_against_itself_may_exclude_1(hits: int, met: bool) -> None:
    assert SelfCompared("a", [*intervals(hits, 1.0), *intervals(100 - hits, 0.99)]).met is met


@pytest.mark.parametrize(("highest", "met"), [(1.009, True), (1.011, False)])
def test_no_speedup_of_a_reference_against_itself_may_be_large(highest: float, met: bool) -> None:
    assert SelfCompared("a", [*intervals(99, 1.0), *intervals(1, highest, width=0.04)]).met is met


def test_evaluations_without_a_speedup_count_as_misses() -> None:
    assert SelfCompared("a", intervals(93, 1.0), failures=["crashed"] * 7).met
    assert not SelfCompared("a", intervals(92, 1.0), failures=["crashed"] * 8).met
    assert not Differing("d", intervals(94, 0.98), failures=["crashed"] * 6).met


@pytest.mark.parametrize(("hits", "met"), [(100, True), (95, True), (94, False)])
def test_few_evaluations_may_miss_a_true_difference(hits: int, met: bool) -> None:
    assert Differing("d", [*intervals(hits, 0.98), *intervals(100 - hits, 0.999)]).met is met


def test_a_difference_in_the_wrong_direction_does_not_count() -> None:
    assert not Differing("d", intervals(100, 1.02)).met


def test_the_cycles_of_a_spin_are_interpolated() -> None:
    assert spin_for(4.0, none_us=2.0, some_us=6.0, some_cycles=8000) == 4000
    assert spin_for(8.0, none_us=2.0, some_us=6.0, some_cycles=8000) == 12_000


@pytest.mark.parametrize(("wanted", "none", "some"), [(4.0, 4.5, 8.0), (4.0, 2.0, 2.0), (4.0, math.nan, 6.0)])
def test_an_impossible_spin_is_rejected(wanted: float, none: float, some: float) -> None:
    with pytest.raises(ValueError, match="no spin adds"):
        spin_for(wanted, none, some, 8000)


def activities(*names: str) -> list[Activity]:
    """Returns activities of 3 µs that start every 2 µs."""
    return [Activity(name, 2.0 * index, 2.0 * index + 3) for index, name in enumerate(names)]


def test_the_work_is_between_blocking_and_stop_kernel() -> None:
    before, after = ("inlinebench_flush", "Memset", "inlinebench_block"), ("inlinebench_stop", "late")
    assert span_us(activities(*before, "gemm", *after)) == 3
    assert span_us(activities(*before, "Memset", "gemm", "reduce", *after)) == 7
    assert span_us(activities(*before, "inlinebench_done", "gemm", *after)) == 3


def test_the_work_ends_with_the_last_kernel_to_end() -> None:
    block, stop = activities("inlinebench_block")[0], Activity("inlinebench_stop", 60.0, 61.0)
    assert span_us([block, Activity("long", 5.0, 50.0), Activity("short", 10.0, 11.0), stop]) == 45


@pytest.mark.parametrize("names", [
    (), ("gemm",), ("inlinebench_block", "gemm"), ("gemm", "inlinebench_stop"),
    ("inlinebench_block", "inlinebench_stop"),
    ("inlinebench_stop", "gemm", "inlinebench_block"),
])
def test_activities_without_work_between_blocking_and_stop_kernel_have_no_time(names: tuple[str, ...]) -> None:
    assert span_us(activities(*names)) is None


EMPTY: list[tuple[str, Row]] = [
    ("cupti", Traced("work", [], [])), ("spin", Spun("spin", [], [], [], [])), ("flush", Flushed("copy", [], [], [])),
    ("repeat", Repeated("solution")), ("aa", SelfCompared("a")), ("aa", SelfCompared("a", failures=["crashed"])),
    ("differ", Differing("d")),
]
ROWS: list[tuple[str, Row]] = [
    *EMPTY, ("cupti", traced(10.0, 12.0)),
    ("cupti", replace(traced(10.0, 12.0), untraced_us=[11.0], events_us=40.0, do_bench_us=13.0)),
    ("spin", spun(5.0, 7.0)), ("flush", Flushed("copy", [1.0], [1.0], [1.0])),
    ("repeat", Repeated("solution", [60.0], [40.0])), ("aa", SelfCompared("a", intervals(2, 1.0), [1.0, 1.2])),
    ("differ", Differing("d", intervals(2, 0.98), [1.0, 1.2], slower=1.02)),
]


@pytest.mark.parametrize(("part", "row"), ROWS)
def test_a_row_is_a_line_of_its_table(part: str, row: Row) -> None:
    *_, titles, rule = head(part).splitlines()
    assert titles.count("|") == rule.count("|") == line(row).count("|")
    assert "nan" not in line(row)


@pytest.mark.parametrize(("part", "row"), ROWS)
def test_a_row_survives_a_round_trip_through_json(part: str, row: Row) -> None:
    assert read_row(part, json.loads(json.dumps(asdict(row)))) == row


@pytest.mark.parametrize(("part", "row"), EMPTY)
def test_a_row_without_figures_misses_its_bar(part: str, row: Row) -> None:
    assert isinstance(row, KINDS[part]) and not row.met


@pytest.mark.parametrize(("time", "text"), [
    (None, "-"), (math.nan, "-"), (1.234, "1.23"), (123.45, "123.5"), (49_999.7, "50000"),
])
def test_times_are_formatted_by_size(time: float | None, text: str) -> None:
    assert time_text(time) == text


def test_evaluations_are_added_to_a_row() -> None:
    row = SelfCompared("a")
    check = Check(calls=1, tolerance=1e-4, oracle="float64", weights="none")
    times = Timing(Spread(1, 1, 1), Spread(1, 1, 1), Spread(1.0, 0.99, 1.01))
    passed = Result("p", "s", "full", "cuda:0", Verdict.PASSED, check=check, timing=times)
    add(row, passed)
    add(row, replace(passed, timing=None))
    add(row, Result("p", "s", "full", "cuda:0", Verdict.CRASHED, "it fell"))
    assert row.intervals == [[0.99, 1.0, 1.01]]
    assert row.failures == ["it has no times", "crashed: it fell"]


def test_a_record_keeps_other_parts_of_the_same_machine(tmp_path: Path) -> None:
    path, here = tmp_path / "figures.json", {"gpu": "H100", "tf32": False}
    record = Record(path, here)
    record.begin("aa")
    record.put("aa", SelfCompared("a", intervals(1, 1.0)))
    record.put("aa", SelfCompared("a", intervals(2, 1.0)))
    record = Record(path, here)
    record.begin("spin")
    record.put("spin", spun(5.0, 7.0))
    assert read_record(path) == (here, {"aa": [SelfCompared("a", intervals(2, 1.0))], "spin": [spun(5.0, 7.0)]})
    assert Record(path, {"gpu": "another"}).parts == {}
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
