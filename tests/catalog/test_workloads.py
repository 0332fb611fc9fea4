"""Tests how the set of workloads that a problem declares is read from its text."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.catalog import Problem, read_problem
from inlinebench.catalog.workloads import DeclaredWorkload

CONSTANTS = 'ROWS, COLUMNS = 64, 256\nSHAPES = {"small": {"ROWS": 2}}\n'


def read(folder: Path, declared: str) -> Problem:
    path = folder / "rows.py"
    path.write_text(f"{CONSTANTS}WORKLOADS = {declared}\n")
    return read_problem(path)


def test_a_set_is_read_with_names_weights_and_tolerances(tmp_path: Path) -> None:
    problem = read(tmp_path, '[{"name": "decode", "ROWS": 1, "weight": 2, "tol": 0.01}, {"ROWS": 3, "COLUMNS": 5}]')
    assert problem.error == ""
    assert problem.workloads == (
        DeclaredWorkload("decode", {"ROWS": 1}, 2.0, 0.01),
        DeclaredWorkload("ROWS=3,COLUMNS=5", {"ROWS": 3, "COLUMNS": 5}))
    assert problem.shapes == ("small",)  # a set adds nothing to the shapes that are evaluated by default
    assert problem.constants == ("ROWS", "COLUMNS")


@pytest.mark.parametrize(("declared", "message"), [
    ("[]", "WORKLOADS is empty"),
    ("{}", "must be a list of dictionaries"),
    ("[1]", "must be a list of dictionaries"),
    ("[{'ROWS': rows} for rows in (1, 2)]", "read without running the file"),
    ('[{"ROW": 1}]', "WORKLOADS[0]: no constant 'ROW'; the file assigns ROWS, COLUMNS"),
    ('[{"ROWS": 1}, {"ROWS": 1}]', "WORKLOADS[1]: the name 'ROWS=1' is taken"),
    ('[{"name": "small", "ROWS": 1}]', "the name 'small' is taken"),
    ('[{"name": "full"}]', "the name 'full' is taken"),
    ('[{"name": 3, "ROWS": 1}]', "must be a text"),
    ("[{}]", "without a name, the workload needs constants"),
    ('[{"ROWS": 1, "weight": 0}]', "the weight 0 must be a positive number"),
    ('[{"ROWS": 1, "weight": True}]', "the weight True must be a positive number"),
    ('[{"ROWS": 1, "tol": -1}]', "the tolerance -1 must be a number"),
])
def test_each_mistake_in_a_set_has_one_line_that_says_where(tmp_path: Path, declared: str, message: str) -> None:
    problem = read(tmp_path, declared)
    assert message in problem.error
    assert problem.error.startswith(f"{problem.path}, line 3: ")
    assert "\n" not in problem.error


SETS = {path.stem: problem.workloads for path in sorted((Path(__file__).parents[2] / "problems").glob("*.py"))
        if (problem := read_problem(path)).workloads}


def test_at_least_eight_bundled_problems_have_a_set() -> None:
    assert len(SETS) >= 8


@pytest.mark.parametrize("name", SETS)
def test_a_bundled_set_has_8_to_16_workloads_of_different_sizes(name: str) -> None:
    sizes = {tuple(sorted(workload.constants.items())) for workload in SETS[name]}
    assert 8 <= len(SETS[name]) == len(sizes) <= 16
