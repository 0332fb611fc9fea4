"""Solutions that read and write files: their folder is a private copy, and the reason says what the sandbox refused.

A reference that is evaluated as a solution reads the files of the problem's folder in the same way.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.results.result import Verdict
from inlinebench.sandbox.policy import REQUIRED
from inlinebench.sandbox.self_test import available

from .running import TESTS, Run, run_eval

in_a_sandbox = pytest.mark.skipif(
    not set(REQUIRED) <= set(available()), reason="this machine offers no whole sandbox"
)
pytestmark = pytest.mark.slow

BEGIN = """
import os
from pathlib import Path
import torch
HERE = Path(__file__).resolve().parent
"""
MODEL = """
class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)
"""
HONEST = {
    "writes": """# cpp_extension: so that it is also constructed ahead of its evaluation
for path in ("build", "left.txt"):
    assert not (HERE / path).exists(), f"another process left {path}"
os.makedirs(os.path.join(os.path.dirname(__file__), "build"))
os.makedirs("cuda_extensions")
(HERE / "left.txt").write_text("left")
(HERE / "data.txt").write_text("changed")
(HERE / "folder" / "inner.txt").unlink()
torch.utils.cpp_extension._get_build_directory("name", False)
""",
    "reads": """
import sys
assert (HERE / "data.txt").read_text() == "data" and (HERE / "folder" / "inner.txt").read_text() == "inner"
assert (HERE / "linked.txt").read_text() == "shared"
assert not (HERE / ".." / "shared.txt").exists()
sys.path.insert(0, str(HERE))
import _helper
assert _helper.VALUE == 3
""",
}
"""Solutions that must pass at all shapes, with and without a sandbox."""
REFUSED = {
    "writes_the_real_folder": ("open(SOLUTIONS + '/level1_matmul/data.txt', 'w')", "may write only to its own folder"),
    "makes_a_folder_there": ("os.mkdir(SOLUTIONS + '/level1_matmul/new')", "may write only to its own folder"),
    "reads_elsewhere": ("open(ELSEWHERE).read()", "may read only its own folder"),
    "reads_by_a_link": ("(HERE / 'link').symlink_to(ELSEWHERE); (HERE / 'link').read_text()", "may read only"),
    "raises_its_own": ("try:\n    open(ELSEWHERE)\nexcept OSError:\n    raise RuntimeError('no data')", "may read"),
}
NOT_REFUSED = {
    "by_its_own_mode": "os.mkdir(HERE / 'shut', 0o500); open(HERE / 'shut' / 'file', 'w')",
    "raised_by_itself": "raise PermissionError(13, 'Permission denied', str(HERE / 'data.txt'))",
    "not_there": "open('/nowhere')",
}

PROBLEM = """
from pathlib import Path
import torch
N = 4
SHAPES = {"small": {"N": 2}}
HERE = Path(__file__).resolve().parent
class Model(torch.nn.Module):
    def forward(self, x):
        return x * SCALE
def get_inputs():
    return [torch.rand(N)]
def get_init_inputs():
    return []
"""
READS = {
    "from_its_folder": "SCALE = float((HERE / 'scales' / 'scale.txt').read_text())",
    "by_its_own_name": "SCALE = float(Path(__file__).with_suffix('.txt').read_text())",
}
"""Problems whose reference must pass as a solution, at all shapes."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a folder of solutions with a few other files, and a file outside of it."""
    place = tmp_path_factory.mktemp("files")
    own = place / "solutions" / "level1_matmul"
    (own / "folder").mkdir(parents=True)
    (own / "data.txt").write_text("data")
    (own / "folder" / "inner.txt").write_text("inner")
    (own / "_helper.py").write_text("VALUE = 3\n")
    (own.parent / "shared.txt").write_text("shared")
    (own / "linked.txt").symlink_to("../shared.txt")
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / "other.py").write_text("token")
    names = f"SOLUTIONS, ELSEWHERE = {str(own.parent)!r}, {str(place / 'elsewhere' / 'other.py')!r}\n"
    bodies = {**HONEST, **{name: body for name, (body, _) in REFUSED.items()}, **NOT_REFUSED}
    for name, body in bodies.items():
        (own / f"{name}.py").write_text(f"{BEGIN}{names}{body}\n{MODEL}")
    return place


def evaluate(folder: Path, cache: Path, out: str, *arguments: str) -> Run:
    """Makes a run, and asserts that it did not change the folder of solutions."""
    before = tree(folder / "solutions")
    run = run_eval(*arguments, "--problems", TESTS / "problems", "--solutions", folder / "solutions", "--device", "cpu",
                   "--check", "--min-calls", "3", "--allow-library", "--cache", cache, out=folder / out)
    assert tree(folder / "solutions") == before
    return run


def tree(folder: Path) -> dict[Path, str]:
    return {path: path.read_text() if path.is_file() else "" for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def run(folder: Path, cache: Path) -> Run:
    return evaluate(folder, cache, "out.jsonl", "level1_matmul")


@pytest.mark.parametrize("name", HONEST)
def test_a_solution_can_read_and_write_files_in_its_folder(run: Run, name: str) -> None:
    row = run.row("level1_matmul", name)
    assert row.verdict is Verdict.PASSED, row.reason


def test_a_solution_can_read_and_write_files_without_a_sandbox(folder: Path, cache: Path) -> None:
    names = [f"level1_matmul/{name}" for name in HONEST]
    run = evaluate(folder, cache, "trusted.jsonl", *names, "--trust")
    assert [row.verdict for row in run.results] == [Verdict.PASSED] * len(names), [row.reason for row in run.results]


@in_a_sandbox
@pytest.mark.parametrize("name", REFUSED)
def test_the_reason_says_what_the_sandbox_refused(run: Run, name: str) -> None:
    row = run.row("level1_matmul", name)
    assert row.verdict is Verdict.INVALID
    assert f"({name}.py, line " in row.reason and "the sandbox refused '" in row.reason
    assert REFUSED[name][1] in row.reason


@in_a_sandbox
@pytest.mark.parametrize("name", NOT_REFUSED)
def test_the_reason_does_not_mention_the_sandbox_for_other_errors(run: Run, name: str) -> None:
    row = run.row("level1_matmul", name)
    assert row.verdict is Verdict.INVALID
    assert "Error: " in row.reason and "sandbox" not in row.reason


def test_reasons_and_logs_have_the_author_s_paths(run: Run, folder: Path) -> None:
    row = run.row("level1_matmul", "raised_by_itself")
    own = folder / "solutions" / "level1_matmul"
    assert f"'{own / 'data.txt'}'" in row.reason
    assert f'File "{own / "raised_by_itself.py"}", line ' in (row.log or "")


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Run:
    """A run of references that read files. One of the problems is a link to a file in another folder."""
    place = tmp_path_factory.mktemp("references")
    problems, published = place / "problems", place / "published"
    for folder in (problems, published):
        (folder / "scales").mkdir(parents=True)
        (folder / "scales" / "scale.txt").write_text("3.0")
        (folder / "by_its_own_name.txt").write_text("3.0")
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / "scale.txt").write_text("3.0")
    elsewhere = f"SCALE = float(Path({str(place / 'elsewhere' / 'scale.txt')!r}).read_text())"
    for name, body in {**READS, "elsewhere": elsewhere}.items():
        (problems / f"{name}.py").write_text(f"{PROBLEM}{body}\n")
    (published / "linked.py").write_text(f"{PROBLEM}{READS['from_its_folder']}\n")
    (problems / "linked.py").symlink_to(published / "linked.py")
    return run_eval("*/@reference", "--problems", problems, "--device", "cpu", "--check", "--min-calls", "3",
                    "--allow-library", "--shape", "full", "--shape", "small", "--cache", cache, out=place / "out.jsonl")


@pytest.mark.parametrize("shape", ["full", "small"])
@pytest.mark.parametrize("name", [*READS, "linked"])
def test_a_reference_with_files_in_its_folder_matches_itself(references: Run, name: str, shape: str) -> None:
    row = references.row(name, "@reference", shape)
    assert row.verdict is Verdict.PASSED, row.reason


@in_a_sandbox
def test_a_reference_cannot_read_other_folders_as_a_solution(references: Run) -> None:
    row = references.row("elsewhere", "@reference", "full")
    assert row.verdict is Verdict.INVALID and "may read only its own folder" in row.reason


BUILT = """
from torch.utils.cpp_extension import load_inline
load_inline("sample", '#include "_helper.h"', functions=[], extra_include_paths=[str(HERE)])
"""
SAMPLES = {
    "level_1_problem_1_sample_0_kernel.py": ("assert len(set(os.listdir(HERE)) - {'__pycache__'}) == 1", ""),
    "level_1_problem_1_sample_1_kernel.py": ("(HERE / '_helper.h').read_text()", "FileNotFoundError"),
    "level_1_problem_1_sample_2_kernel.py": (BUILT, "_helper.h: Permission denied"),
    "level_1_problem_1_sample_3_kernel.py": ("open(FOLDER + '/_helper.h')", "may read only its own folder"),
}
"""Samples in one folder with a file `_helper.h`, and what the reason of each contains."""


@in_a_sandbox
def test_a_sample_of_kernelbench_s_layout_is_given_only_its_own_file(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "problems" / "level1").mkdir(parents=True)
    (tmp_path / "problems" / "level1" / "1_Triple.py").write_text(f"{PROBLEM}SCALE = 3.0\n")
    folder = tmp_path / "samples"
    folder.mkdir()
    (folder / "_helper.h").write_text("// shared")
    model = "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x * 3\n"
    for name, (body, _) in SAMPLES.items():
        (folder / name).write_text(f"{BEGIN}FOLDER = {str(folder)!r}\n{body}\n{model}")
    run = run_eval("--problems", tmp_path / "problems", "--solutions", folder, "--device", "cpu", "--check",
                   "--min-calls", "3", "--shape", "small", "--allow-library", "--cache", cache,
                   out=tmp_path / "out.jsonl")
    reasons = {row.solution: row.reason for row in run.results}
    assert len(reasons) == len(SAMPLES) and reasons["sample_0"] == "", run.err
    for number, (_, reason) in enumerate(SAMPLES.values()):
        assert reason in reasons[f"sample_{number}"]
