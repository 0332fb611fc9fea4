"""Every bug planted in `bugs/` is found on the CPU with the expected reason, and the fixed twins in `bugs_fixed/` pass.

All are evaluated in one run at the shape `odd`, whose sizes are not multiples of a block, so that an overrun by one
element shows. A source that cannot be translated marks the line that the reason must name with `// refused`.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from inlinebench.results.result import Verdict

from .planted import Planted
from .running import TESTS, Run, run_eval

pytestmark = [pytest.mark.slow, pytest.mark.gate]

BUGS = [Planted.read(path) for path in sorted((TESTS / "bugs").glob("*.py"))]
TWINS = sorted((TESTS / "bugs_fixed").glob("*.py"))
MARK = "  // refused"


def constant(path: Path, name: str) -> object:
    """Returns the value of a constant in a file, read as text."""
    return next(ast.literal_eval(node.value) for node in ast.parse(path.read_text()).body
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name)


def by_name(bug: Planted) -> str:
    return bug.path.stem


@pytest.fixture(scope="module")
def run(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of all files as solutions of their problems."""
    folder = tmp_path_factory.mktemp("bugs")
    problems = {bug.path: bug.problem for bug in BUGS} | {path: str(constant(path, "PROBLEM")) for path in TWINS}
    for path, problem in problems.items():
        (folder / problem).mkdir(exist_ok=True)
        shutil.copy(path, folder / problem)
    return run_eval("--solutions", folder, "--device", "cpu", "--check", "--shape", "odd", "--cache", cache,
                    out=folder / "out.jsonl")


@pytest.mark.parametrize("bug", BUGS, ids=by_name)
def test_a_planted_bug_is_found(run: Run, bug: Planted) -> None:
    bug.assert_caught(run.row(bug.problem, bug.path.stem))


@pytest.mark.parametrize("bug", [bug for bug in BUGS if MARK in bug.path.read_text()], ids=by_name)
def test_the_reason_names_the_line_of_unsupported_code(run: Run, bug: Planted) -> None:
    (line,) = [number for number, text in enumerate(bug.path.read_text().splitlines(), 1) if text.endswith(MARK)]
    reason = run.row(bug.problem, bug.path.stem).reason
    assert f"{bug.caught_by} ({bug.path.name}, line {line}): " in reason
    assert "\n" not in reason


@pytest.mark.parametrize("path", TWINS, ids=lambda path: path.stem)
def test_honest_twins_pass(run: Run, path: Path) -> None:
    row = run.row(str(constant(path, "PROBLEM")), path.stem)
    assert row.verdict is Verdict.PASSED, row.reason


def test_every_bug_that_runs_has_a_twin() -> None:
    twins = {name for path in TWINS for name in constant(path, "TWINS")}
    assert twins >= {bug.path.stem for bug in BUGS if bug.expected != Verdict.SKIPPED.value}


def test_the_run_has_all_results_and_the_exit_status_of_failures(run: Run) -> None:
    assert run.status == 1
    assert "Traceback" not in run.out + run.err
    assert len(run.results) == len(BUGS) + len(TWINS)


def test_there_are_enough_bugs() -> None:
    assert len(BUGS) >= 8
