"""The history of a suite: what is compared, what is said, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlinebench.errors import UsageError
from inlinebench.report.formats.html import history_page
from inlinebench.report.history.collected import ResultsOfRun, history
from inlinebench.report.history.tracks import History, what_differs
from inlinebench.report.page import limits
from inlinebench.report.page.trends import chart
from inlinebench.report.terminal.history import report
from inlinebench.results.result import Environment, Result, Verdict

from .days import H100, days, failing, timed
from .samples import any_result, result
from .test_html import Reader
from .thirty import HOSTILE

SLOWER = {"p3/fast": (12, 1.09)}
H200 = replace(H100, gpu="NVIDIA H200")


def with_environment(runs: Sequence[ResultsOfRun], environment: Environment | None, since: int) -> list[ResultsOfRun]:
    """Returns the runs with another environment, and another key, from a run on."""
    return [replace(run, results=[replace(each, environment=environment, key="other") for each in run.results])
            if number >= since else run for number, run in enumerate(runs)]


def without(text: str, runs: Sequence[ResultsOfRun]) -> list[ResultsOfRun]:
    return [replace(run, results=[each for each in run.results if each.problem != text]) for run in runs]


def test_a_slower_row_is_one_line_with_its_times_and_runs() -> None:
    found = report(history(days(changes=SLOWER)))
    assert found == ("p3/fast: 0.398 -> 0.434 ms (+8.9 %) between day12 and day13; "
                     "same sources, options and versions")


@pytest.mark.parametrize("machines", [(0,), (0, 1), (0, 0, 0, 1, 1), (0,) * 15 + (1,) * 15])
def test_unchanged_kernels_are_silent_on_machines_of_one_model(machines: tuple[int, ...]) -> None:
    for seed in range(10):
        assert report(history(days(33, machines=machines, machine=0.02, seed=seed))) == (
            "no change in 12 rows of 12 problems over 33 runs")


@pytest.mark.parametrize("machines", [(0,), (0, 1), (0,) * 13 + (1,) * 17])
def test_a_change_is_found_whatever_machines_ran(machines: tuple[int, ...]) -> None:
    found = history(days(changes={"p3/fast": (15, 1.05)}, machines=machines, machine=0.02))
    assert [(track.row[0], change.after) for track, change in found.changes] == [("p3", 15)]


def test_a_verdict_that_changed_comes_before_times_and_failures_before_repairs() -> None:
    runs = days(changes={**SLOWER, "p5/fast": (20, 0.8), "p4/fast": (20, 1.2)})
    runs[:5] = [failing(run, "p1/fast", Verdict.CRASHED) for run in runs[:5]]
    runs[9:] = [failing(run, "p2/fast", reason="element 3 differs\nmore") for run in runs[9:]]
    lines = report(history(runs)).split("\n")
    assert lines[0] == "p2/fast: passed -> wrong between day09 and day10; element 3 differs"
    assert lines[1] == "p1/fast: crashed -> passed between day05 and day06"
    assert [line.partition("/")[0] for line in lines[2:]] == ["p4", "p3", "p5"]


def test_a_verdict_is_found_without_times_and_only_its_last_change_is_listed() -> None:
    passed, wrong = result("p/s", device="cpu"), result("p/s", Verdict.WRONG, device="cpu")
    runs = [ResultsOfRun(name, [each]) for name, each in zip("abcd", (passed, wrong, passed, wrong), strict=True)]
    assert report(history(runs)).split("\n") == [
        "p/s: passed -> wrong between c and d; because",
        "left out: 2 passed results without comparable times: only their verdicts were compared"]


def test_a_run_that_says_nothing_about_a_solution_is_no_change() -> None:
    runs = days(10, 8)
    runs[4] = failing(runs[4], "p2/fast", Verdict.INTERNAL_ERROR)
    runs[5] = failing(runs[5], "p2/fast", Verdict.SKIPPED)
    assert report(history(runs)).split("\n") == [
        "no change in 8 rows of 8 problems over 10 runs",
        "left out: results that say nothing about their solution: 1 internal_error, 1 skipped"]


def test_a_row_with_several_results_in_a_run_has_the_one_that_failed() -> None:
    good, bad = result("p/s"), result("p/s", Verdict.WRONG)
    found = history([ResultsOfRun("a", [good]), ResultsOfRun("b", [bad, good])])
    assert [change.new.verdict for _, change in found.changes] == [Verdict.WRONG]


def test_times_of_other_gpus_shapes_and_constants_are_not_mixed() -> None:
    def told(**facts: object) -> History:
        return history([ResultsOfRun(run.name, [replace(each, **facts) if number > 14 else each  # type: ignore[arg-type]
                                                for each in run.results])
                        for number, run in enumerate(days(changes={f"p{at}/fast": (15, 1.5) for at in range(12)}))])

    assert len(told().changes) == 12  # the same, not apart: each row is slower
    for facts in ({"environment": H200}, {"shape": "odd"}, {"constants": ("N=4",)},
                  {"environment": replace(H100, tf32=True)}):
        assert (told(**facts).changes, len(told(**facts).tracks)) == ([], 24)


def test_two_models_are_named_in_each_line() -> None:
    runs = days(changes=SLOWER)
    both = [replace(run, results=[*run.results, *(replace(each, environment=H200) for each in run.results)])
            for run in runs]
    found = report(history(both)).split("\n")
    assert [line.partition(":")[0] for line in found] == [
        "p3/fast on NVIDIA H100 80GB HBM3", "p3/fast on NVIDIA H200"]


def test_a_result_of_unknown_hardware_belongs_to_the_only_model() -> None:
    runs = days(10, 8)
    runs[9] = replace(runs[9], results=[*runs[9].results[1:], result("p0/fast", Verdict.INVALID)])
    assert report(history(runs)) == "p0/fast: passed -> invalid between day09 and day10; because"


def test_times_from_before_they_changed_their_meaning_are_left_out() -> None:
    old = replace(H100, harness="0.1.0")
    runs = [replace(run, results=[replace(each, environment=old) for each in run.results]) if number < 15 else run
            for number, run in enumerate(days(changes={f"p{at}/fast": (15, 1.5) for at in range(12)}))]
    assert report(history(runs)).split("\n") == [
        "no change in 12 rows of 12 problems over 30 runs",
        "left out: 180 times of versions of inlinebench in which times had another meaning"]


def test_what_is_too_short_or_gone_is_said() -> None:
    runs = days(10, 8)
    runs[9:] = without("p2", runs[9:])
    runs[:4] = without("p3", runs[:4])
    assert report(history(runs)).split("\n")[1:] == [
        "left out: times of 1 rows with fewer than 8 runs",
        "left out: 1 rows have no result about their solution in the last run"]


def test_a_change_says_what_else_differs() -> None:
    runs = days(changes=SLOWER)

    def differing(environment: Environment | None) -> str:
        (_, change), = history(with_environment(runs, environment, 12)).changes
        return what_differs(change)

    assert differing(H100) == "other sources or options"
    assert differing(replace(H100, driver="590.1", torch="2.12.0")) == (
        "torch 2.11.0 -> 2.12.0, driver 580.65.06 -> 590.1")


def test_one_problem_is_compared_with_its_reference() -> None:
    assert report(history(days(problems=1, changes={"p0/fast": (12, 1.09)}))).startswith("p0/fast: 0.0992 -> 0.108 ms")
    assert report(history(days(problems=1))) == "no change in 1 row of 1 problem over 30 runs"


def test_a_faster_reference_is_no_change_of_the_only_kernel() -> None:
    runs = [ResultsOfRun(str(day), [timed("p/s", 0.1, 0.2 if day < 15 else 0.15)]) for day in range(30)]
    assert report(history(runs)) == "no change in 1 row of 1 problem over 30 runs"


def test_references_that_another_torch_makes_faster_are_no_change_of_kernels() -> None:
    runs = [ResultsOfRun(str(day), [
        timed(f"p{number}/fast", 0.1, 0.2 if day < 15 else 0.2 / (1 + number / 40)) for number in range(12)
    ]) for day in range(30)]
    assert report(history(runs)) == "no change in 12 rows of 12 problems over 30 runs"


def test_times_that_cannot_be_are_left_out() -> None:
    runs = days(10, 8)
    impossible = timed("p2/fast", 1e300, 1e301)
    runs[3] = replace(runs[3], results=[impossible if each.problem == "p2" else each for each in runs[3].results])
    assert report(history(runs)).split("\n")[1:] == [
        "left out: 1 passed results without comparable times: only their verdicts were compared"]


@given(st.lists(st.lists(any_result(), max_size=4), min_size=2, max_size=12))
@settings(deadline=None, max_examples=50)
def test_arbitrary_results_have_a_history_and_a_page(runs: list[list[Result]]) -> None:
    found = history([ResultsOfRun(f"run {at}", results) for at, results in enumerate(runs)])
    assert report(found)
    assert Reader(history_page(found, "Any")).mismatched == []


def test_the_page_lists_changes_and_has_a_chart_for_each_row() -> None:
    runs = days(changes=SLOWER)
    runs[20:] = [failing(run, "p2/fast") for run in runs[20:]]
    page = history_page(history(runs), "Daily")
    read = Reader(page)
    figures = [facts["id"] for tag, facts in read.elements if tag == "figure"]
    assert figures == [f"t{number}" for number in range(12)]
    links = [facts["href"] for tag, facts in read.elements if tag == "a" and facts["href"] != "#results"]
    assert links == ["#t0", "#t1"]
    assert page.index("passed -&gt; wrong") < page.index("+8.9 %)")
    assert "10 rows without a change" in page


def test_a_page_without_changes_says_so_and_its_charts_are_open() -> None:
    page = history_page(history(days(10)), "Daily")
    assert "no change in 12 rows of 12 problems over 10 runs." in page
    assert [facts for tag, facts in Reader(page).elements if tag == "details"] == [{"open": None}]


def test_names_and_reasons_on_the_page_are_harmless() -> None:
    runs = [ResultsOfRun(HOSTILE, [result(f"{HOSTILE}/s")]),
            ResultsOfRun(HOSTILE, [result(f"{HOSTILE}/s", Verdict.WRONG, reason=HOSTILE)])]
    read = Reader(history_page(history(runs), HOSTILE))
    assert [tag for tag, _ in read.elements].count("script") == 1
    assert "img" not in [tag for tag, _ in read.elements]
    assert read.mismatched == []


def test_a_chart_marks_times_levels_changes_and_failures() -> None:
    runs = days(changes=SLOWER)
    runs[20] = failing(runs[20], "p3/fast")
    found = history(runs)
    track = next(track for track in found.tracks if track.row[0] == "p3")
    drawn = ElementTree.fromstring(chart(track, found.runs, "p3/fast"))
    kinds = [element.get("class") for element in drawn.iter()]
    assert [kinds.count(kind) for kind in ("point", "level", "failed", "began slower", "began now-passing")] == [
        29, 2, 1, 1, 1]
    titles = [element.text for element in drawn.iter() if element.tag.endswith("title")]
    assert titles[0] is not None and titles[0].startswith("day01: 0.") and "day21: wrong" in titles


def test_a_history_that_is_too_large_for_a_page_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_PLACES", 119)
    with pytest.raises(UsageError, match="at most 119 results, not of 120; name fewer files"):
        history_page(history(days(10)), "Daily")
    monkeypatch.setattr(limits, "MOST_PLACES", 120)
    assert history_page(history(days(10)), "Daily")
