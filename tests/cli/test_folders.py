"""Which folders of problems and solutions a command uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inlinebench.cli.arguments import BUILD, CHECK, RUN, parse
from inlinebench.errors import UsageError

from ..running import PYTHONPATH, ROOT

PROBLEM = "import torch\n\n\nclass Model(torch.nn.Module): ...\n"


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "mine.py").write_text(PROBLEM)


def folders(*arguments: str) -> tuple[Path, Path]:
    options = parse(arguments)
    return options.problems.resolve(), options.solutions.resolve()


def test_without_folders_here_those_of_the_checkout_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert folders() == (ROOT / "problems", ROOT / "solutions")


def test_folders_here_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "problems", "solutions")
    monkeypatch.chdir(tmp_path)
    assert folders() == (tmp_path / "problems", tmp_path / "solutions")


def test_solutions_here_are_for_the_problems_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "solutions")
    monkeypatch.chdir(tmp_path)
    assert folders() == (ROOT / "problems", tmp_path / "solutions")


def test_solutions_lie_beside_the_problems_that_are_given(tmp_path: Path) -> None:
    make(tmp_path, "a/problems")
    assert folders("--problems", str(tmp_path / "a/problems")) == (tmp_path / "a/problems", tmp_path / "a/solutions")


def test_a_problem_given_by_its_path_has_its_solutions_beside_its_folder(tmp_path: Path) -> None:
    make(tmp_path, "a/problems", "a/solutions", "b/problems", "b/solutions")
    first, second = (str(tmp_path / name / "problems" / "mine.py") for name in "ab")
    assert folders(first)[1] == tmp_path / "a" / "solutions"
    assert folders(first, "--solutions", str(tmp_path / "b"))[1] == tmp_path / "b"
    with pytest.raises(UsageError, match="choose one with --solutions"):
        parse([first, second])


def test_a_run_elsewhere_says_which_folders_it_uses(tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        command = [sys.executable, "-m", "inlinebench.cli.main", "run", "no_such_problem", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
                              env={**os.environ, "PYTHONPATH": PYTHONPATH})
        assert done.returncode == 2
        return done.stderr

    assert f"problems: {ROOT / 'problems'}; solutions: {ROOT / 'solutions'}\n" in said()
    assert "problems:" not in said("--quiet")


@pytest.mark.parametrize(("command", "flag"), [(CHECK, "--check"), (BUILD, "--build-only")])
def test_a_command_is_run_with_its_flag(command: object, flag: str) -> None:
    arguments = ["matmul_diag", "--jobs", "3", "--set", "M=4", "--arch", "90"]
    assert parse(arguments, command=command) == parse([*arguments, flag], command=RUN)  # type: ignore[arg-type]
