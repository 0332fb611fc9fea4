from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.errors import UsageError
from inlinebench.report import changes
from inlinebench.report.comparison import WORSE, Change, ComparedRow, compare, latest
from inlinebench.report.formats.markdown import code
from inlinebench.results.result import Environment, Result, Verdict
from inlinebench.results.times import PassTimes, Spread, Timing

from .samples import any_result, result


def timed(name: str, low: float, high: float, gpu: str = "H100", **facts: object) -> Result:
    """Returns a result with this interval of its speedup."""
    ms = Spread(1.0, 1.0, 1.0)
    timing = Timing(ms, ms, Spread((low + high) / 2, low, high))
    return replace(result(name, environment=Environment("2.11", "0.1", gpu=gpu)), timing=timing, **facts)


def split(low: float, high: float) -> Result:
    """Returns a result of calls with a backward, whose forward alone has this interval of its speedup."""
    one, found = Spread(1.0, 1.0, 1.0), replace(timed("a/b", 1.0, 1.1), backward=True)
    passes = (PassTimes("forward", one, one, Spread(low, low, high)), PassTimes("backward", one, one, one))
    assert found.timing is not None
    return replace(found, timing=replace(found.timing, passes=passes))


def test_how_each_pass_changed_is_told_and_decides_nothing() -> None:
    found = compare([split(1.0, 1.0)], [split(2.0, 2.0)])
    assert found[0].change is Change.SAME and dict(found[0].passes)["forward"].median == 2.0
    told = "a/b: after / before of the passes alone: forward 2.00 [2.00, 2.00], backward 1.00 [1.00, 1.00]"
    assert told in changes.text(found, everything=True).split("\n")
    assert told.removeprefix("a/b") in changes.markdown(found, everything=True)
    assert compare([timed("a/b", 1.0, 1.1)], [split(2.0, 2.0)])[0].passes == ()


def change(old: list[Result], new: list[Result]) -> Change:
    (found,) = compare(old, new)
    return found.change


@pytest.mark.parametrize(("old", "new", "expected"), [
    ((1.0, 1.1), (1.05, 1.2), Change.SAME), ((1.0, 1.1), (1.1, 1.2), Change.SAME),
    ((1.0, 1.1), (1.11, 1.2), Change.FASTER),
    ((1.0, 1.1), (0.9, 0.999), Change.SLOWER), ((1.0, 1.5), (0.9, 1.01), Change.SAME),
    ((1.0, 1.0001), (0.999, 0.9999), Change.SLOWER),
])
def test_only_disjoint_intervals_are_a_change(
    old: tuple[float, float], new: tuple[float, float], expected: Change
) -> None:
    assert change([timed("a/b", *old)], [timed("a/b", *new)]) is expected


@given(st.tuples(*[st.floats(0.1, 10)] * 2), st.tuples(*[st.floats(0.1, 10)] * 2))
def test_swapping_the_sets_swaps_faster_and_slower(one: tuple[float, ...], two: tuple[float, ...]) -> None:
    old, new = [timed("a/b", min(one), max(one))], [timed("a/b", min(two), max(two))]
    other_way = {Change.FASTER: Change.SLOWER, Change.SLOWER: Change.FASTER, Change.SAME: Change.SAME}
    assert change(new, old) is other_way[change(old, new)]
    assert change(old, old) is Change.SAME


@pytest.mark.parametrize(("old", "new", "expected"), [
    ("passed", "wrong", Change.NOW_FAILING), ("passed", "skipped", Change.NOW_FAILING),
    ("passed", "internal_error", Change.NOW_FAILING), ("crashed", "passed", Change.NOW_PASSING),
    ("wrong", "crashed", Change.STILL_FAILING), ("passed", "passed", Change.SAME),
])
def test_verdicts_decide_between_passing_and_failing(old: str, new: str, expected: Change) -> None:
    assert change([result("a/b", Verdict(old))], [result("a/b", Verdict(new))]) is expected


@pytest.mark.parametrize("verdict", ["invalid", "problem_error"])
def test_a_row_of_an_unreadable_file_is_not_gone_when_the_file_can_be_read(verdict: str) -> None:
    old = [result("a/b", Verdict(verdict), shape="full")]
    new = [result("a/b", shape="odd"), result("a/b", shape="small")]
    found = {each.row[2]: each.change for each in compare(old, new)}
    assert found == {"full": Change.NOW_PASSING, "odd": Change.NEW, "small": Change.NEW}
    other = {each.row[1]: each.change for each in compare(old, [result("a/c")])}
    assert other == {"b": Change.GONE, "c": Change.NEW}


@pytest.mark.parametrize("verdict", ["invalid", "problem_error"])
def test_an_unreadable_solution_now_fails_at_every_earlier_shape(verdict: str) -> None:
    old = [result("a/b", shape="odd"), result("a/b", shape="small"), result("a/c", shape="odd")]
    new = [result("a/b", Verdict(verdict), shape="full"), result("a/c", shape="odd")]
    found = compare(old, new)
    assert [(each.row, each.change) for each in found] == [
        (("a", "b", "odd"), Change.NOW_FAILING), (("a", "b", "small"), Change.NOW_FAILING),
        (("a", "b", "full"), Change.NEW_FAILING), (("a", "c", "odd"), Change.SAME),
    ]


def test_a_failure_at_another_shape_does_not_count_for_a_shape_that_was_not_run() -> None:
    found = compare([result("a/b", shape="odd")], [result("a/b", Verdict.WRONG, shape="full")])
    assert {each.change for each in found} == {Change.NEW_FAILING, Change.GONE}


def test_rows_are_matched_by_name_and_shape_and_the_worst_changes_come_first() -> None:
    old = [timed("a/b", 1, 1.1), timed("a/c", 1, 1.1), result("a/d"), timed("z/s", 1, 1.1),
           timed("z/s", 1, 1.1, shape="odd")]
    new = [timed("a/b", 1, 1.1), result("a/d", Verdict.WRONG), result("a/e"), timed("z/s", 0.5, 0.6),
           timed("z/s", 1.5, 1.6, shape="odd")]
    assert [(str(each.change), each.row) for each in compare(old, new)] == [
        ("now failing", ("a", "d", "full")), ("gone", ("a", "c", "full")), ("slower", ("z", "s", "full")),
        ("faster", ("z", "s", "odd")), ("new", ("a", "e", "full")), ("same", ("a", "b", "full")),
    ]


def test_intervals_of_several_results_of_the_same_sources_are_merged() -> None:
    old = [timed("a/b", 1.00, 1.01, key="k"), timed("a/b", 1.03, 1.04, key="k")]
    assert change(old, [timed("a/b", 1.02, 1.025)]) is Change.SAME
    assert change(old[:1], [timed("a/b", 1.02, 1.025)]) is Change.FASTER
    other_sources = [timed("a/b", 9.0, 9.1, key="other"), *old]
    assert change(other_sources, [timed("a/b", 1.05, 1.06)]) is Change.FASTER


def test_one_failure_among_several_results_is_a_failure() -> None:
    assert change([result("a/b")], [result("a/b", Verdict.WRONG), result("a/b")]) is Change.NOW_FAILING


def test_times_on_the_cpu_are_not_compared() -> None:
    assert change([timed("a/b", 1, 1.1, device="cpu")], [timed("a/b", 5, 6, device="cpu")]) is Change.SAME


def test_times_of_different_gpus_are_compared_only_with_any_gpu() -> None:
    old, new = [timed("a/b", 1, 1.1)], [timed("a/b", 2, 2.1, gpu="A100")]
    with pytest.raises(UsageError, match=r"times of H100 can't be compared with those of A100; use --any-gpu"):
        compare(old, new)
    assert compare(old, new, any_gpu=True)[0].change is Change.FASTER
    assert compare(old, [result("a/b", environment=Environment("2.11", "0.1", gpu="A100"))])[0].change is Change.SAME


def version(number: str, *, speedup: float) -> Result:
    return timed("a/b", speedup, speedup + 0.1, environment=Environment("2.11", number, gpu="H100"))


def test_times_whose_meaning_changed_are_compared_only_with_any_version() -> None:
    old, new = [version("0.1.0", speedup=1)], [version("0.3.0", speedup=2)]
    with pytest.raises(UsageError, match=r"inlinebench 0\.1\.0 and 0\.3\.0 can't be compared: in 0\.2\.0"):
        compare(old, new)
    assert compare(old, new, any_version=True)[0].change is Change.FASTER
    assert compare([version("0.2.0", speedup=1)], new)[0].change is Change.FASTER


@pytest.mark.parametrize("facts", [
    {"change": Change.NEW, "before": result(), "after": result()},
    {"change": Change.GONE, "before": None, "after": result()},
    {"change": Change.SLOWER, "before": result(), "after": result()},
])
def test_a_contradictory_comparison_is_rejected(facts: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="with"):
        ComparedRow(("a", "b", "full"), **facts)  # type: ignore[arg-type]


@given(st.lists(any_result(), max_size=5), st.lists(any_result(), max_size=5))
def test_every_row_occurs_once_and_can_be_shown(old: list[Result], new: list[Result]) -> None:
    found = compare(old, new, any_gpu=True, any_version=True)
    rows = {(each.problem, each.solution, each.shape) for each in (*old, *new)}
    assert sorted(each.row for each in found) == sorted(rows)
    there = {(each.problem, each.solution, each.shape) for each in new}
    assert not any(each.change is Change.GONE for each in found if each.row in there)
    for shown in (changes.text(found, everything=True), changes.markdown(found, everything=True)):
        assert "\x1b" not in shown


def test_the_text_shows_changed_rows_and_reasons_of_failures() -> None:
    found = compare([timed("a/b", 1, 1.1), result("a/c")], [timed("a/b", 1, 1.1), result("a/c", Verdict.WRONG)])
    shown = changes.text(found)
    assert "a/c: wrong: because" in shown and "1 now failing, 1 same" in shown
    assert "a  b" not in shown and "1.05" not in shown and "1.05" in changes.text(found, everything=True)
    assert {each.change for each in found} & WORSE == {Change.NOW_FAILING}


def test_untrusted_text_is_escaped_in_markdown() -> None:
    hostile = result("a|b/<img src=x>", Verdict.WRONG, reason="@everyone | `x` [a](http://b) </details> &lt;")
    shown = changes.markdown(compare([], [hostile]))
    for text in (hostile.problem, hostile.solution, f"{hostile.problem}/{hostile.solution}", hostile.reason):
        assert code(text) in shown
        shown = shown.replace(code(text), "")
    assert not any(part in shown for part in ("|b", "<img", "@", "](", "</d", "&lt;"))


def test_latest_keeps_the_last_result_of_each_row_in_order() -> None:
    rows = [result("10_b/x"), result("9_a/x", Verdict.WRONG), result("9_a/x"), result("9_a/x", device="cpu")]
    assert latest(rows) == [rows[2], rows[3], rows[0]]
