from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from inlinebench.catalog import Catalog, read, read_problem
from inlinebench.catalog.natural_sort import natural
from inlinebench.catalog.selection import find_problem, select
from inlinebench.errors import UsageError

from ..running import ROOT, TESTS


@pytest.fixture
def known(tmp_path: Path) -> Catalog:
    """Two problems, one of them with two solutions; a broken file, helpers, a common header, and a solution without a
    problem."""
    files = {
        "problems/matmul.py": 'N, M = 4, 5\nSHAPES = {"small": {"N": 2}, "odd": {"N": 3}}\nK: int = 2\n',
        "problems/relu.py": "raise SystemExit('never run')\n",
        "problems/broken.py": "def f(:\n",
        "problems/_helper.py": "",
        "solutions/matmul/naive.py": "raise SystemExit('never run')\n",
        "solutions/matmul/fast.py": "",
        "solutions/matmul/library.py": "",
        "solutions/matmul/_helper.py": "",
        "solutions/relu/naive.py": "",
        "solutions/lost/naive.py": "",
        "solutions/common/sum.cuh": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read(tmp_path / "problems", tmp_path / "solutions")


def names(known: Catalog, *wanted: str) -> list[str]:
    return [str(solution) for _, solution in select(known, wanted)]


def test_problem_files_are_parsed_without_running_them(known: Catalog) -> None:
    assert list(known.problems) == ["broken", "matmul", "relu"]
    matmul = known.problems["matmul"]
    assert (matmul.shapes, matmul.constants) == (("small", "odd"), ("N", "M", "K"))
    assert "line 1" in known.problems["broken"].error
    assert list(map(str, known.solutions)) == [
        "lost/naive", "matmul/fast", "matmul/library", "matmul/naive", "relu/naive"]


def test_an_unreadable_problem_file_has_an_error(tmp_path: Path) -> None:
    (tmp_path / "binary.py").write_bytes(b"\xff\x00")
    assert "binary.py" in read_problem(tmp_path / "binary.py").error
    assert "none.py" in read_problem(tmp_path / "none.py").error


def test_python_does_not_warn_about_a_problem_file(tmp_path: Path) -> None:
    """Its warnings print a line of the file, which a CI service may obey."""
    (tmp_path / "escape.py").write_text('N = 4\nx = [0][\n::len("\\d::")]\n')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_problem(tmp_path / "escape.py").error == ""


def test_a_missing_problems_folder_is_an_error_and_a_missing_solutions_folder_is_empty(tmp_path: Path) -> None:
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
    (["matmul/*"], ["matmul/fast", "matmul/naive"]),
    (["*/library"], ["matmul/library"]),
    (["matmul", "matmul/library"], ["matmul/fast", "matmul/library", "matmul/naive"]),
])
def test_names_select_solutions(known: Catalog, wanted: list[str], expected: list[str]) -> None:
    assert names(known, *wanted) == expected


def test_the_path_of_a_problem_file_selects_the_problem(known: Catalog) -> None:
    path = str(known.problems["matmul"].path)
    assert names(known, path) == ["matmul/fast", "matmul/naive"]
    assert find_problem(known, path).name == "matmul"


@pytest.mark.parametrize(("wanted", "said"), [
    ("matmu", "no problem 'matmu'; did you mean matmul?"),
    ("matmul/navie", "no solution 'matmul/navie'; did you mean matmul/naive"),
    ("zzz", "`inlinebench list` shows all names"),
    ("matmu/@reference", "did you mean matmul?"),
    ("broken", "has no solution yet; use --solution FILE, or broken/@reference to evaluate its own reference"),
    ("no/such/file.py", "no problem"),
])
def test_an_unknown_name_is_rejected_with_the_nearest_names(known: Catalog, wanted: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(known, [wanted])
    assert said in str(caught.value)


def test_the_error_for_a_problem_file_without_solutions_suggests_an_option(known: Catalog) -> None:
    with pytest.raises(UsageError, match="--solution FILE"):
        select(known, [str(known.problems["broken"].path)])


def test_an_unknown_problem_for_a_solution_file_is_rejected_with_the_nearest_name(known: Catalog) -> None:
    with pytest.raises(UsageError, match="did you mean matmul"):
        find_problem(known, "matmull")


@pytest.mark.parametrize(("text", "level", "tags"), [
    ("LEVEL = 2\nTAGS = ('scan', 'fusion')", 2, ("scan", "fusion")), ("TAGS = ['scan']", None, ("scan",)),
    ("LEVEL = 1 + 1\nTAGS = make()", None, ()), ("LEVEL = 'high'\nTAGS = 3", None, ()), ("", None, ()),
])
def test_level_and_tags_are_read_if_they_are_literals(
    tmp_path: Path, text: str, level: int | None, tags: tuple[str, ...]
) -> None:
    (tmp_path / "p.py").write_text(f"N = 4\n{text}\n")
    problem = read_problem(tmp_path / "p.py")
    assert (problem.level, problem.tags, problem.constants) == (level, tags, ("N",))


def test_problems_of_the_tests_and_bundled_problems_have_different_names() -> None:
    """tests/planted.py puts both into the same folder."""
    bundled, own = ({path.name for path in (place / "problems").glob("*.py")} for place in (ROOT, TESTS))
    assert bundled and own and not bundled & own


@pytest.fixture
def kernelbench(tmp_path: Path) -> Path:
    """Files with KernelBench's names and layout."""
    for name in ("KB/level1/9_Tall.py", "KB/level1/12_Diagonal_.py", "KB/level1/100_Hinge.py", "KB/level2/12_Gemm.py",
                 "KB/changelog/v0.py", "runs/a/level_1_problem_12_sample_10_kernel.py",
                 "runs/a/level_1_problem_12_sample_2_kernel.py", "runs/a/level_2_problem_12_sample_0_kernel.py",
                 "runs/a/level_1_problem_7_sample_0_kernel.py", "runs/a/level_1_problem_12_sample_0_prompt.txt",
                 "runs/a/level_1_problem_12_sample_x_kernel.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return tmp_path


def test_a_folder_of_levels_has_the_problems_of_all_levels(kernelbench: Path) -> None:
    known = read(kernelbench / "KB", kernelbench / "none")
    assert [(each.name, each.number, each.level) for each in known.problems.values()] == [
        ("9_Tall", 9, 1), ("12_Diagonal_", 12, 1), ("100_Hinge", 100, 1), ("12_Gemm", 12, 2)]


def test_a_kernelbench_sample_belongs_to_the_problem_with_its_level_and_number(kernelbench: Path) -> None:
    known = read(kernelbench / "KB", kernelbench / "runs" / "a")
    assert [str(each) for each in known.solutions] == [
        "level_1_problem_7/sample_0", "12_Diagonal_/sample_2", "12_Diagonal_/sample_10", "12_Gemm/sample_0"]
    one_level = read(kernelbench / "KB" / "level2", kernelbench / "runs" / "a")
    assert [str(each) for each in one_level.solutions] == ["12_Gemm/sample_0"]


@pytest.mark.parametrize(("wanted", "expected"), [
    ("12", ["12_Diagonal_/sample_2", "12_Diagonal_/sample_10", "12_Gemm/sample_0"]),
    ("12/sample_2", ["12_Diagonal_/sample_2"]),
    ("9/@reference", ["9_Tall/@reference"]),
    ("9-12/@reference", ["12_Diagonal_/@reference", "12_Gemm/@reference", "9_Tall/@reference"]),
])
def test_a_number_or_a_range_selects_problems(kernelbench: Path, wanted: str, expected: list[str]) -> None:
    assert names(read(kernelbench / "KB", kernelbench / "runs" / "a"), wanted) == expected


@pytest.mark.parametrize(("wanted", "said"), [
    ("13", "no problem '13'"), ("13-20/@reference", "no problem '13-20'"), ("9", "no solution yet"),
])
def test_an_unknown_number_is_rejected(kernelbench: Path, wanted: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        select(read(kernelbench / "KB", kernelbench / "none"), [wanted])


def test_a_number_of_two_problems_is_ambiguous_where_one_is_needed(kernelbench: Path) -> None:
    known = read(kernelbench / "KB", kernelbench / "none")
    assert find_problem(known, "9").name == "9_Tall"
    with pytest.raises(UsageError, match="12_Diagonal_ and of 12_Gemm"):
        find_problem(known, "12")


def test_two_problems_with_the_same_name_are_rejected(kernelbench: Path) -> None:
    (kernelbench / "KB" / "level2" / "9_Tall.py").write_text("")
    with pytest.raises(UsageError, match="have the same name"):
        read(kernelbench / "KB", kernelbench / "none")


def test_natural_order_compares_digits_as_numbers() -> None:
    assert sorted(["b", "a10", "a9", "10_a", "9_z", "a", ""], key=natural) == ["", "9_z", "10_a", "a", "a9", "a10", "b"]
