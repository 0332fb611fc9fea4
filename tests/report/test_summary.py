from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.report.terminal.summary import THRESHOLDS, SolutionSummary, render, summary
from inlinebench.results.result import Result, Verdict

from .samples import FAILURES, any_result, result


def only(*results: Result) -> SolutionSummary:
    (found,) = summary(results)
    return found


def test_fast_p_is_the_share_of_tried_problems_above_p() -> None:
    found = only(
        result("a/naive", speedup=4.0),
        result("b/naive", speedup=1.0),
        result("c/naive", speedup=0.6),
        result("d/naive", Verdict.WRONG),
    )
    assert (found.tried, found.passed) == (4, 3)
    assert found.speedup == pytest.approx((4.0 * 1.0 * 0.6) ** (1 / 3))
    assert found.fast == {0.0: 0.75, 0.5: 0.75, 0.8: 0.5, 1.0: 0.25, 1.5: 0.25, 2.0: 0.25}


@pytest.mark.parametrize("verdict", FAILURES)
def test_verdicts_about_the_solution_count_as_tried(verdict: Verdict) -> None:
    not_tried = verdict in (Verdict.SKIPPED, Verdict.PROBLEM_ERROR, Verdict.INTERNAL_ERROR)
    found = only(result("a/naive", speedup=3.0), result("b/naive", verdict))
    assert (found.tried, found.passed) == ((1, 1) if not_tried else (2, 1))
    assert found.fast[1.0] == (1.0 if not_tried else 0.5)
    assert found.speedup == 3.0


def test_a_problem_is_passed_only_if_all_its_shapes_passed() -> None:
    found = only(result("a/naive", speedup=3.0), result("a/naive", Verdict.WRONG, shape="odd"))
    assert (found.tried, found.passed, found.speedup) == (1, 0, None)
    assert set(found.fast.values()) == {0.0}


def test_failures_at_derived_shapes_are_counted_apart() -> None:
    derived = {"shape": "derived", "constants": ("N=4",)}
    wrong, crashed = result("b/naive", Verdict.WRONG), result("c/naive", Verdict.CRASHED, **derived)
    found = only(result("a/naive", **derived), wrong, crashed)
    assert (found.tried, found.passed, found.derived) == (3, 1, 1)
    assert "failed derived" in render([found])
    assert "failed derived" not in render([only(wrong)])


def test_a_shape_that_was_not_tried_does_not_count() -> None:
    found = only(result("a/naive", Verdict.SKIPPED), result("a/naive", shape="small", speedup=3.0))
    assert (found.tried, found.passed, found.speedup) == (1, 1, 3.0)


def test_library_solutions_are_not_summarized_unless_there_is_nothing_else() -> None:
    library = result("a/library", speedup=3.0)
    assert [entry.solution for entry in summary([library, result("a/naive", speedup=2.0)])] == ["naive"]
    assert [entry.solution for entry in summary([library])] == ["library"]


def test_the_speedup_is_that_of_the_full_shape() -> None:
    assert only(result("a/naive", speedup=3.0), result("a/naive", shape="small", speedup=100.0)).speedup == 3.0


def test_without_the_full_shape_the_speedup_is_the_mean_of_the_others() -> None:
    shapes = [result("a/naive", shape=shape, speedup=speedup) for shape, speedup in (("odd", 2.0), ("small", 8.0))]
    assert only(*shapes).speedup == pytest.approx(4.0)


@pytest.mark.parametrize("facts", [{}, {"device": "cpu", "speedup": 3.0}])
def test_without_times_only_the_share_passed_is_known(facts: dict[str, object]) -> None:
    found = only(result("a/naive", **facts), result("b/naive", Verdict.WRONG))  # type: ignore[arg-type]
    assert found.speedup is None
    assert found.fast == {0.0: 0.5, 0.5: None, 0.8: None, 1.0: None, 1.5: None, 2.0: None}


def test_without_tried_problems_speedup_and_fast_p_are_unknown() -> None:
    found = only(result("a/naive", Verdict.SKIPPED))
    assert (found.tried, found.passed, found.speedup) == (0, 0, None)
    assert set(found.fast.values()) == {None}


def test_each_solution_name_has_its_own_summary() -> None:
    found = summary([result("a/naive"), result("a/fast"), result("b/naive")])
    assert [(entry.solution, entry.tried) for entry in found] == [("fast", 1), ("naive", 2)]


def test_the_table_shows_counts_shares_and_dashes() -> None:
    lines = render(summary([result("a/naive", speedup=4.0), result("b/naive", Verdict.WRONG), result("a/new")]))
    cells = [line.split() for line in lines.splitlines()[2:4]]
    assert cells == [
        ["naive", "2", "1", "4.00", "50%", "50%", "50%", "50%", "50%", "50%"],
        ["new", "1", "1", "—", "100%", "—", "—", "—", "—", "—"],
    ]


def test_without_summaries_there_is_no_table() -> None:
    assert render(()) == ""


@given(st.lists(any_result(), max_size=8))
def test_fast_p_never_grows_with_p_and_counts_are_consistent(results: list[Result]) -> None:
    found = summary(results)
    assert render(found) or not results
    for entry in found:
        shares = [share for p in THRESHOLDS if (share := entry.fast[p]) is not None]
        assert shares == sorted(shares, reverse=True)
        assert 0 <= entry.passed <= entry.tried
        assert (entry.fast[0.0] is None) == (entry.tried == 0)
        assert entry.tried == 0 or entry.fast[0.0] == entry.passed / entry.tried


@given(st.lists(any_result(), max_size=8))
def test_results_that_do_not_count_as_tried_change_no_number(results: list[Result]) -> None:
    telling = [found for found in results if found.verdict.is_about_solution]
    tried = [entry for entry in summary(results) if entry.tried]
    assert tried == list(summary(telling))
