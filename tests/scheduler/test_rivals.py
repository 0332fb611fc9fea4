from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from inlinebench.catalog import Catalog, Problem, Solution
from inlinebench.errors import UsageError
from inlinebench.messages import Evaluate, ProblemAt
from inlinebench.options import Options
from inlinebench.results.result import Check, Result, Verdict
from inlinebench.results.times import Spread, Timing
from inlinebench.scheduler.plan import Plan, choose, plan, rivals_of
from inlinebench.scheduler.rivals import Rivals, over, rival_names

CHECK = Check(calls=20, tolerance=1e-4, oracle="float64", weights="by name")


def job(solution: str, problem: str = "p", shape: str = "full") -> Evaluate:
    return Evaluate(problem, solution, ProblemAt(Path("p.py"), shape, {}), Path(f"{solution}.py"), shape)


def passed(solution: str, speedup: tuple[float, float, float], shape: str = "full") -> Result:
    low, middle, high = speedup
    ms = Spread(1 / middle, 1 / middle, 1 / middle, 20)
    timing = Timing(Spread(1.0, 1.0, 1.0, 20), ms, Spread(middle, low, high))
    return Result("p", solution, shape, "cuda:0", Verdict.PASSED, check=CHECK, timing=timing)


def failed(solution: str) -> Result:
    return Result("p", solution, "full", "cuda:0", Verdict.WRONG, "it differs")


def test_the_speedup_over_a_rival_is_the_ratio_of_both_speedups() -> None:
    found = over(passed("fast", (3.9, 4.0, 4.1)), passed("naive", (1.9, 2.0, 2.1)))
    assert found is not None and (found.name, found.ms.median) == ("solution:naive", 0.5)
    assert (found.speedup.low, found.speedup.median, found.speedup.high) == (3.9 / 2.1, 2.0, 4.1 / 1.9)


def test_a_rival_whose_speedup_may_be_zero_is_no_baseline() -> None:
    assert over(passed("fast", (3.9, 4.0, 4.1)), passed("library", (0.0, 2.0, 9.0))) is None
    assert over(passed("fast", (3.9, 4.0, 4.1)), failed("library")) is None


def test_results_are_held_back_until_the_rivals_is_known() -> None:
    rivals = Rivals(["solution:naive"], [job("fast"), job("naive"), job("odd")])
    assert rivals.release(passed("fast", (3.0, 4.0, 5.0))) == []
    both = rivals.release(passed("naive", (1.0, 2.0, 3.0)))
    assert [row.solution for row in both] == ["fast", "naive"]
    assert both[0].timing and [each.speedup.median for each in both[0].timing.baselines] == [2.0]
    assert both[1].timing and both[1].timing.baselines == ()
    (late,) = rivals.release(passed("odd", (1.0, 1.0, 1.0)))
    assert late.timing and late.timing.baselines[0].speedup.median == 0.5


def test_a_failed_or_missing_rival_holds_no_results_back() -> None:
    rivals = Rivals(["solution:naive"], [job("fast"), job("naive")])
    assert rivals.release(passed("fast", (1.0, 1.0, 1.0), shape="small"))
    rivals.release(passed("fast", (1.0, 1.0, 1.0)))
    after = rivals.release(failed("naive"))
    assert [row.solution for row in after] == ["fast", "naive"]
    assert after[0].timing and after[0].timing.baselines == ()


def test_without_rivals_results_pass_through() -> None:
    row = passed("fast", (1.0, 1.0, 1.0))
    assert Rivals(["compile"], [job("fast")]).release(row) == [row]


def test_a_library_solution_is_the_first_baseline_without_an_option() -> None:
    rivals = Rivals(["solution:naive"], [job("fast"), job("library"), job("naive")])
    assert rivals.release(passed("fast", (3.9, 4.0, 4.1))) == []
    rivals.release(passed("naive", (1.9, 2.0, 2.1)))
    found = {row.solution: row.timing for row in rivals.release(passed("library", (7.9, 8.0, 8.1)))}
    fast, library = found["fast"], found["library"]
    assert fast and library
    assert [(each.name, each.speedup.median) for each in fast.baselines] == [("library", 0.5), ("solution:naive", 2.0)]
    assert fast.baselines[0].speedup == Spread(0.5, 3.9 / 8.1, 4.1 / 7.9)
    assert [each.name for each in library.baselines] == ["solution:naive"]


def test_naming_the_library_solution_as_a_baseline_changes_nothing() -> None:
    assert rival_names(["solution:library"]) == rival_names([]) == ("library",)


def test_results_on_the_cpu_have_no_speedups_over_rivals() -> None:
    rivals = Rivals([], [job("fast"), job("library")])
    rivals.release(replace(passed("library", (1.0, 2.0, 3.0)), device="cpu"))
    (row,) = rivals.release(replace(passed("fast", (1.0, 2.0, 3.0)), device="cpu"))
    assert row.timing and row.timing.baselines == ()


PROBLEM = Problem("p", Path("/p/p.py"), ("small",))
KNOWN = Catalog({"p": PROBLEM, "q": Problem("q", Path("/p/q.py"))}, tuple(
    Solution(*name.split("/"), Path(f"/s/{name}.py")) for name in ("p/fast", "p/library", "p/naive", "q/fast")))


def planned(options: Options, device: str = "cuda:0") -> Plan:
    choices = choose(options, KNOWN)
    return plan(choices, options, device, rivals_of(options, KNOWN, choices))


def names(jobs: Sequence[Evaluate]) -> list[str]:
    return [f"{job.problem_name}/{job.solution_name}" for job in jobs]


@pytest.mark.parametrize(("options", "added"), [
    (Options(names=("p/fast",)), ["p/library"]),
    (Options(names=("p/fast", "p/library")), []),
    (Options(), ["p/library"]),
    (Options(names=("q",)), []),
    (Options(names=("p/@reference",)), []),
    (Options(names=("p/fast", "p/@reference")), ["p/library"]),
    (Options(names=("p/library",), baselines=("solution:naive",)), ["p/naive"]),
    (Options(names=("p/fast",), baselines=("solution:naive",)), ["p/library", "p/naive"]),
    (Options(names=("p/fast",), shapes=("small", "full")), ["p/library", "p/library"]),
])
def test_the_rivals_of_the_chosen_solutions_are_evaluated_too(options: Options, added: list[str]) -> None:
    assert sorted(names(planned(options).added)) == added


@pytest.mark.parametrize(("options", "device"), [
    (Options(names=("p/fast",)), "cpu"), (Options(names=("p/fast",), check=True), "cuda:0"),
    (Options(names=("p/fast",), sanitize="memcheck"), "cuda:0"),
])
def test_no_rival_is_added_where_no_speedup_is_measured(options: Options, device: str) -> None:
    assert planned(options, device).added == ()


def test_an_added_rival_has_the_shape_and_the_constants_of_its_job() -> None:
    (added,) = planned(Options(names=("p/fast",), shapes=("small",))).added
    (made,) = planned(Options(names=("p/fast",), shapes=("small",))).jobs
    assert (added.problem, added.shape_name, added.level) == (made.problem, made.shape_name, made.level)
    assert added.solution == Path("/s/p/library.py")


def test_a_file_given_as_library_takes_the_place_of_the_one_in_the_folder(tmp_path: Path) -> None:
    mine = tmp_path / "library.py"
    mine.write_text("")
    made = planned(Options(names=("p",), solution_files=(mine,)))
    assert names(made.jobs) == ["p/library"] and made.added == ()


def test_each_shard_has_the_rivals_that_its_jobs_need() -> None:
    parts = [planned(Options(names=("p", "p/library"), shard=(part, 3))) for part in (1, 2, 3)]
    assert [names(part.jobs) for part in parts] == [["p/library"], ["p/fast"], ["p/naive"]]
    assert [names(part.added) for part in parts] == [[], ["p/library"], ["p/library"]]
    empty = planned(Options(names=("p/fast",), shard=(1, 2)))
    assert empty.jobs == empty.added == ()


def test_a_job_knows_the_sources_that_it_is_compared_with(tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.py" for name in ("fast", "library")}
    for path in paths.values():
        path.write_text(path.name)
    known = Catalog({"p": PROBLEM}, tuple(Solution("p", name, path) for name, path in paths.items()))

    def sources(device: str = "cuda:0") -> dict[str, tuple[str, ...]]:
        choices = choose(Options(), known)
        made = plan(choices, Options(), device, rivals_of(Options(), known, choices))
        return {job.solution_name: job.rivals for job in (*made.added, *made.jobs)}

    before = sources()
    assert before["library"] == () and len(before["fast"]) == 1
    paths["library"].write_text("changed")
    assert sources()["fast"] != before["fast"] and sources()["library"] == ()
    assert set(sources("cpu").values()) == {()}


def test_an_unknown_baseline_is_rejected() -> None:
    options = Options(names=("p/fast",), baselines=("solution:nobody",))
    with pytest.raises(UsageError, match="solution:nobody"):
        rivals_of(options, KNOWN, choose(options, KNOWN))
