"""Where a worker puts the sources of a problem that its machine lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.ray.worker import Worker

TEXT = b"import helper\n"


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    (tmp_path / "problems").mkdir()
    return tmp_path / "problems" / "p.py"


def place(worker: Worker, problem: Path, text: bytes, folder: Path) -> Path:
    folder.mkdir()
    return worker._place_problem(problem, {problem: text, problem.parent / "sub" / "helper.py": b"x = 1\n"}, folder)


def test_equal_copies_have_one_path_by_which_the_judge_knows_the_problem(problem: Path) -> None:
    worker = Worker()
    folder = Path(worker._folder.name)
    first = place(worker, problem, TEXT, folder / "1")
    assert first.read_bytes() == TEXT and (first.parent / "sub" / "helper.py").exists()
    assert place(worker, problem, TEXT, folder / "2") == first
    assert place(worker, problem, TEXT + b"\n", folder / "3") != first
    worker.close()
    assert not first.exists()


def test_a_problem_that_the_machine_has_stays_where_it_is_unless_it_differs(problem: Path) -> None:
    worker = Worker()
    folder = Path(worker._folder.name)
    problem.write_bytes(TEXT)
    (problem.parent / "sub").mkdir()
    (problem.parent / "sub" / "helper.py").write_bytes(b"x = 1\n")
    assert place(worker, problem, TEXT, folder / "1") == problem
    assert place(worker, problem, TEXT + b"\n", folder / "2") != problem
    worker.close()
