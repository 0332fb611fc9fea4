"""Every bug planted under `bugs/` is found on the CPU, for its reason, and the honest twins in `bugs_fixed/` pass.

One run has them all, at the shape `odd`: an overrun by one element is told from the rest where no size is a multiple of
anything. A file whose source can't be translated marks the line that the reason must name with `// refused`.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from inlinebench.records.result import Verdict

from .planted import Planted
from .running import TESTS, Run, run_eval

BUGS = [Planted.read(path) for path in sorted((TESTS / "bugs").glob("*.py"))]
TWINS = sorted((TESTS / "bugs_fixed").glob("*.py"))
MARK = "  // refused"


def constant(path: Path, name: str) -> object:
    """What a file assigns to a constant, read as text."""
    return next(ast.literal_eval(node.value) for node in ast.parse(path.read_text()).body
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name)


def by_name(bug: Planted) -> str:
    return bug.path.stem


@pytest.fixture(scope="module")
def run(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All of them as solutions of their problems."""
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
def test_what_cannot_run_is_named_with_its_line_in_the_file(run: Run, bug: Planted) -> None:
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


def test_the_run_ends_as_a_run_with_failures_does(run: Run) -> None:
    assert run.status == 1
    assert "Traceback" not in run.out + run.err
    assert len(run.results) == len(BUGS) + len(TWINS)


def test_there_are_bugs() -> None:
    assert len(BUGS) >= 8
