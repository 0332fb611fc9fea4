from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inlinebench.catalog import Catalog, Problem, Solution
from inlinebench.errors import UsageError
from inlinebench.options import Options
from inlinebench.problem.shapes.ranges import Range
from inlinebench.results.result import Verdict
from inlinebench.scheduler.plan import (
    check_replacements,
    choose,
    names_of,
    not_applied,
    plan,
    problem_at,
    shape_name,
    shapes,
)
from inlinebench.scheduler.session import exit_status

from ..report.samples import FAILURES, result

PROBLEM = Problem("matmul", Path("/p/matmul.py"), ("small", "odd"), ("N", "M"))
BARE = Problem("relu", Path("/p/relu.py"))
LARGE = Problem("large", Path("/p/large.py"), constants=("N",), derived=({"N": 64}, {"N": 128}, {}))
BROKEN = Problem("broken", Path("/p/broken.py"), error="/p/broken.py, line 1: invalid syntax")
KNOWN = Catalog(
    {problem.name: problem for problem in (PROBLEM, BARE, BROKEN)},
    tuple(Solution(*name.split("/"), Path(f"/s/{name}.py"))
          for name in ("broken/naive", "lost/naive", "matmul/fast", "matmul/naive", "relu/naive")),
)


@pytest.mark.parametrize(("options", "device", "expected"), [
    (Options(), "cuda:0", ("full",)),
    (Options(check=True), "cuda:0", ("full", "small", "odd")),
    (Options(), "cpu", ("small", "odd")),
    (Options(check=True), "cpu", ("small", "odd")),
    (Options(shapes=("odd", "full")), "cpu", ("odd", "full")),
    (Options(constants={"N": 3}), "cpu", ("full",)),
    (Options(constants={"N": 3}, check=True), "cuda:0", ("full",)),
])
def test_options_and_device_decide_the_shapes(options: Options, device: str, expected: tuple[str, ...]) -> None:
    assert shapes(PROBLEM, options, device) == expected


@pytest.mark.parametrize(("declared", "given", "backward", "name"), [
    (False, False, False, "small"), (False, True, True, "small+backward"), (True, False, True, "small"),
    (True, True, True, "small"),
])
def test_a_backward_is_added_by_an_option_or_declared_by_the_problem(
    declared: bool, given: bool, backward: bool, name: str
) -> None:
    problem, options = replace(PROBLEM, backward=declared), Options(backward=given)
    assert problem_at(problem, "small", options).backward is backward
    assert problem_at(replace(LARGE, backward=declared), "derived", options).backward is backward
    assert shape_name(problem, "small", options) == name


def test_drawn_sizes_are_one_evaluation_whose_ranges_lack_the_constants_of_set() -> None:
    problem = replace(PROBLEM, ranges={"N": Range(1, 64), "M": Range(1, 9), "shape[0]": Range(1, 5)})
    options = Options(fuzz=8, check=True, constants={"N": 3}, backward=True)
    (job,) = plan([(problem, Solution("matmul", "fast", Path("/s/fast.py")))], options, "cpu").jobs
    assert (job.shape_name, job.in_set) == ("fuzz,N=3+backward", False)
    assert job.fuzz is not None and job.fuzz.count == 8 and job.fuzz.ranges.keys() == {"M", "shape[0]"}
    assert (job.fuzz.problem.shape, job.fuzz.problem.constants, job.fuzz.problem.backward) == ("full", {"N": 3}, True)
    (job,) = plan([(problem, Solution("matmul", "fast", Path("/s/fast.py")))], Options(fuzz=8), "cpu").jobs
    assert (job.shape_name, job.problem.shape) == ("fuzz", "small")


def test_a_row_of_an_invalid_solution_says_that_its_calls_had_a_backward() -> None:
    options, broken = Options(backward=True, check=True), Solution("p", "s", Path("s.py"), error="it is broken")
    rows = plan([(replace(PROBLEM, backward=False), broken)], options, "cpu").known
    assert [(row.shape, row.backward) for row in rows] == [("small+backward", True), ("odd+backward", True)]
    with pytest.raises(UsageError, match="choose another value"):
        check_replacements([PROBLEM], Options(constants={"N": "3+backward"}))


def test_a_problem_without_shapes_is_evaluated_at_full_everywhere() -> None:
    assert shapes(BARE, Options(), "cpu") == shapes(BARE, Options(check=True), "cuda:0") == ("full",)


@pytest.mark.parametrize(("options", "device", "expected"), [
    (Options(), "cpu", "derived"), (Options(check=True), "cpu", "derived"), (Options(shapes=("full",)), "cpu", "full"),
    (Options(constants={"N": 3}), "cpu", "full"), (Options(constants={"Q": 3}), "cpu", "derived"),
    (Options(), "cuda:0", "full"), (Options(check=True), "cuda:0", "full"),
    (Options(shapes=("derived",)), "cuda:0", "derived"),
])
def test_a_shape_is_derived_on_the_cpu_or_on_demand(options: Options, device: str, expected: str) -> None:
    assert shapes(LARGE, options, device) == (expected,)


def test_a_job_at_a_derived_shape_has_the_constants_to_try() -> None:
    (job,) = plan([(LARGE, Solution("large", "naive", Path("/s/large/naive.py")))], Options(), "cpu").jobs
    assert (job.shape_name, job.problem.shape, job.problem.constants) == ("derived", "full", {"N": 64})
    assert job.problem.alternatives == ({"N": 128}, {})


def test_constants_apply_where_they_exist_and_the_other_problems_are_named() -> None:
    options = Options(names=("matmul/naive", "relu/naive"), constants={"M": 3})
    choices = choose(options, KNOWN)
    assert [job.shape_name for job in plan(choices, options, "cpu").jobs] == ["M=3", "full"]
    assert not_applied(choices, options) == ["--set M: not applied to relu (no such constant)"]
    assert not_applied(choices[:1], options) == []


def test_every_choice_has_a_job_for_each_shape_or_a_known_result() -> None:
    made = plan(choose(Options(), KNOWN), Options(), "cpu")
    assert [(job.problem_name, job.solution_name, job.shape_name) for job in made.jobs] == [
        ("matmul", "fast", "odd"), ("matmul", "naive", "odd"), ("matmul", "fast", "small"),
        ("matmul", "naive", "small"), ("relu", "naive", "full"),
    ]
    assert [(row.problem, row.verdict) for row in made.known] == [
        ("broken", Verdict.PROBLEM_ERROR), ("lost", Verdict.INVALID)]
    assert "/p/broken.py, line 1" in made.known[0].reason and "/s/lost/naive.py" in made.known[1].reason


def test_the_job_of_a_reference_has_no_solution_file() -> None:
    (job,) = plan(choose(Options(names=("relu/@reference",)), KNOWN), Options(), "cpu").jobs
    assert (job.solution_name, job.solution) == ("@reference", None)


def test_replaced_constants_name_the_shape() -> None:
    options = Options(names=("matmul/naive",), constants={"N": 3, "M": (1, 2)})
    (job,) = plan(choose(options, KNOWN), options, "cpu").jobs
    assert (job.shape_name, job.problem.shape, job.problem.constants) == ("N=3,M=(1, 2)", "full", {"N": 3, "M": (1, 2)})


@pytest.mark.parametrize(("options", "said"), [
    (Options(names=("matmul",), constants={"Q": 1}), r"--set Q: /p/matmul.py has no such constant .*; it has N, M"),
    (Options(names=("matmul", "relu"), constants={"Q": 1}), "none of the 2 chosen problems .*; they have N, M"),
    (Options(names=("relu",), shapes=("derived",)), "--shape derived: /p/relu.py"),
    (Options(names=("matmul",), shapes=("tiny",)), r"--shape tiny: /p/matmul.py .*; it has full, small, odd"),
    (Options(names=("relu",), shapes=("small",)), "--shape small: /p/relu.py"),
    (Options(names=("matmul",), solution_files=(Path("/none.py"),)), "--solution /none.py: no such file"),
    (Options(names=("matmull",)), "did you mean matmul"),
])
def test_options_that_do_not_fit_the_catalog_are_rejected(options: Options, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        choose(options, KNOWN)


def test_an_empty_selection_is_rejected() -> None:
    with pytest.raises(UsageError, match="nothing to evaluate"):
        choose(Options(), Catalog({"relu": BARE}, ()))


def test_a_solution_file_in_any_folder_is_evaluated_against_the_named_problem(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("")
    ((problem, solution),) = choose(Options(names=("relu",), solution_files=(path,)), KNOWN)
    assert (problem, solution.name, solution.path) == (BARE, "mine", path)


def test_solution_files_with_one_name_are_told_apart_by_their_folders() -> None:
    assert names_of([Path("/x/a.py"), Path("/x/b.py")]) == ("a", "b")
    assert names_of([Path("/x/a.py"), Path("/y/a.py")]) == ("x.a", "y.a")
    with pytest.raises(UsageError, match="rename one"):
        names_of([Path("/x/s/a.py"), Path("/y/s/a.py")])


def test_the_exit_status_is_0_if_all_passed() -> None:
    assert exit_status([result(), result()], strict=True) == 0


@pytest.mark.parametrize("verdict", FAILURES)
def test_the_exit_status_is_1_for_every_failure_but_a_skip(verdict: Verdict) -> None:
    results = [result(), result(verdict=verdict)]
    assert exit_status(results, strict=False) == (0 if verdict is Verdict.SKIPPED else 1)
    assert exit_status(results, strict=True) == 1


def test_failures_at_a_derived_shape_count_only_with_strict() -> None:
    wrong = [result(verdict=Verdict.WRONG, shape="derived", constants=("N=4",))]
    assert exit_status(wrong, strict=False) == 0 and exit_status(wrong, strict=True) == 1
    as_written = [result(verdict=Verdict.WRONG, shape="derived")]
    does_not_build = [result(verdict=Verdict.BUILD_FAILED, shape="derived", constants=("N=4",))]
    assert exit_status(as_written, strict=False) == exit_status(does_not_build, strict=False) == 1


def test_library_solutions_do_not_decide_the_exit_status_unless_there_is_nothing_else() -> None:
    wrong = result("p/library", Verdict.WRONG)
    assert exit_status([result("p/fast"), wrong], strict=True) == 0
    assert exit_status([result("p/library"), result("p/fast", Verdict.WRONG)], strict=False) == 1
    assert exit_status([wrong], strict=False) == 1 and exit_status([result("p/library")], strict=True) == 0


LEVELS = Catalog(
    {problem.name: problem for problem in (
        Problem("row_sum", Path("/p/row_sum.py"), level=1, tags=("reduction", "memory-bound")),
        Problem("block", Path("/p/block.py"), level=3, tags=("attention",)), BARE,
    )},
    tuple(Solution(*name.split("/"), Path(f"/s/{name}.py")) for name in ("row_sum/fast", "block/fast", "relu/naive")),
)


@pytest.mark.parametrize(("options", "expected"), [
    (Options(levels=(1,)), ["row_sum/fast"]),
    (Options(levels=(1, 3)), ["row_sum/fast", "block/fast"]),
    (Options(tags=("attention", "scan")), ["block/fast"]),
    (Options(levels=(1,), tags=("memory-bound",)), ["row_sum/fast"]),
])
def test_levels_and_tags_select_problems(options: Options, expected: list[str]) -> None:
    assert [str(solution) for _, solution in choose(options, LEVELS)] == expected


def test_an_unknown_level_or_tag_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="level 1 and tag attention; there are levels 1, 3 and tags attention, mem"):
        choose(Options(levels=(1,), tags=("attention",)), LEVELS)


@pytest.mark.parametrize(("options", "there"), [
    (Options(levels=(1,)), True), (Options(levels=(2, 1)), True), (Options(levels=(2,)), False),
    (Options(levels=(1, 2), tags=("x",)), False), (Options(), True),
])
def test_a_sample_whose_problem_does_not_exist_counts_for_its_level(options: Options, there: bool) -> None:
    path = Path("/s/level_1_problem_7_sample_0_kernel.py")
    lost = Solution("level_1_problem_7", "sample_0", path, alone=True, level=1)
    problem = replace(BARE, level=2, tags=("x",))
    known = Catalog({"relu": problem}, (Solution("relu", "naive", Path("/s/relu/naive.py")), lost))
    chosen = choose(replace(options, levels=options.levels or (1, 2)), known)
    assert (lost in [solution for _, solution in chosen]) is there
    rows = plan(chosen, options, "cpu").known
    assert [(row.verdict, row.level) for row in rows] == [(Verdict.INVALID, 1)] * there
