from __future__ import annotations

from pathlib import Path

import pytest

from harness.catalog import Catalog, find_problem, read, read_problem, select
from harness.errors import UsageError

from .running import ROOT, TESTS


@pytest.fixture
def known(tmp_path: Path) -> Catalog:
    """Two problems, one of them with two solutions; a broken file, helpers, and a solution of no problem."""
    files = {
        "problems/matmul.py": 'N, M = 4, 5\nSHAPES = {"small": {"N": 2}, "odd": {"N": 3}}\nK: int = 2\n',
        "problems/relu.py": "raise SystemExit('never run')\n",
        "problems/broken.py": "def f(:\n",
        "problems/_helper.py": "",
        "solutions/matmul/naive.py": "raise SystemExit('never run')\n",
        "solutions/matmul/fast.py": "",
        "solutions/matmul/_helper.py": "",
        "solutions/relu/naive.py": "",
        "solutions/lost/naive.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read(tmp_path / "problems", tmp_path / "solutions")


def names(known: Catalog, *wanted: str) -> list[str]:
    return [str(solution) for _, solution in select(known, wanted)]


def test_files_are_read_as_text(known: Catalog) -> None:
    assert list(known.problems) == ["broken", "matmul", "relu"]
    matmul = known.problems["matmul"]
    assert (matmul.shapes, matmul.constants) == (("small", "odd"), ("N", "M", "K"))
    assert "line 1" in known.problems["broken"].error
    assert list(map(str, known.solutions)) == ["lost/naive", "matmul/fast", "matmul/naive", "relu/naive"]


def test_a_file_that_is_no_text_has_an_error(tmp_path: Path) -> None:
    (tmp_path / "binary.py").write_bytes(b"\xff\x00")
    assert "binary.py" in read_problem(tmp_path / "binary.py").error
    assert "none.py" in read_problem(tmp_path / "none.py").error


def test_no_folder_of_problems_is_a_usage_error_and_none_of_solutions_is_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--problems"):
        read(tmp_path / "none", tmp_path)
    assert read(tmp_path, tmp_path / "none").solutions == ()


@pytest.mark.parametrize(("wanted", "expected"), [
    ([], ["lost/naive", "matmul/fast", "matmul/naive", "relu/naive"]),
    (["matmul"], ["matmul/fast", "matmul/naive"]),
    (["matmul/naive"], ["matmul/naive"]),
    (["relu/naive", "matmul/naive"], ["matmul/naive", "relu/naive"]),
    (["*/naive"], ["lost/naive", "matmul/naive", "relu/naive"]),
    (["m*"], ["matmul/fast", "matmul/naive"]),
    (["matmul", "matmul/naive"], ["matmul/fast", "matmul/naive"]),
    (["matmul/@reference"], ["matmul/@reference"]),
    (["*/@reference"], ["broken/@reference", "matmul/@reference", "relu/@reference"]),
    (["lost"], ["lost/naive"]),
])
def test_what_names_select(known: Catalog, wanted: list[str], expected: list[str]) -> None:
    assert names(known, *wanted) == expected


def test_the_path_of_a_problem_file_is_a_name(known: Catalog) -> None:
    path = str(known.problems["matmul"].path)
    assert names(known, path) == ["matmul/fast", "matmul/naive"]
    assert find_problem(known, path).name == "matmul"


@pytest.mark.parametrize(("wanted", "said"), [
    ("matmu", "no problem 'matmu'; did you mean matmul?"),
    ("matmul/navie", "no solution 'matmul/navie'; did you mean matmul/naive"),
    ("zzz", "--list shows what there is"),
    ("matmu/@reference", "did you mean matmul?"),
    ("broken", "has no solution yet; --solution FILE names one anywhere, broken/@reference tries its own"),
    ("no/such/file.py", "no problem"),
])
def test_a_name_that_means_nothing_is_refused_with_the_nearest(known: Catalog, wanted: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(known, [wanted])
    assert said in str(caught.value)


def test_a_problem_file_without_solutions_says_how_to_name_one(known: Catalog) -> None:
    with pytest.raises(UsageError, match="--solution FILE"):
        select(known, [str(known.problems["broken"].path)])


def test_an_unknown_problem_for_a_solution_file_is_refused_with_the_nearest(known: Catalog) -> None:
    with pytest.raises(UsageError, match="did you mean matmul"):
        find_problem(known, "matmull")


@pytest.mark.parametrize(("text", "level", "tags"), [
    ("LEVEL = 2\nTAGS = ('scan', 'fusion')", 2, ("scan", "fusion")), ("TAGS = ['scan']", None, ("scan",)),
    ("LEVEL = 1 + 1\nTAGS = make()", None, ()), ("LEVEL = 'high'\nTAGS = 3", None, ()), ("", None, ()),
])
def test_level_and_tags_are_read_where_they_are_literals(
    tmp_path: Path, text: str, level: int | None, tags: tuple[str, ...]
) -> None:
    (tmp_path / "p.py").write_text(f"N = 4\n{text}\n")
    problem = read_problem(tmp_path / "p.py")
    assert (problem.level, problem.tags, problem.constants) == (level, tags, ("N",))


def test_no_problem_of_the_tests_has_a_bundled_ones_name() -> None:
    """tests/planted.py puts both into one folder."""
    bundled, own = ({path.name for path in (place / "problems").glob("*.py")} for place in (ROOT, TESTS))
    assert bundled and own and not bundled & own
