from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from inlinebench.messages import Evaluate, ProblemAt
from inlinebench.records.options import Options
from inlinebench.records.result import Environment
from inlinebench.scheduler.identity import DECIDING, identity

ON = Environment("2.11", "0.1", gpu="H100", driver="580", cuda="13.0")


@pytest.fixture
def job(tmp_path: Path) -> Evaluate:
    """A solution that imports a file and loads another, which includes a third; and a neighbour that nothing names."""
    texts = {
        "problems/p.py": "N = 4\n", "solutions/p/s.py": "import helper\nload(['kernels/k.cu'])\n",
        "solutions/p/helper.py": "X = 1\n", "solutions/p/kernels/k.cu": '#include "k.cuh"\n',
        "solutions/p/kernels/k.cuh": "// of k.cu\n", "solutions/p/other.py": "Y = 2\n",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Evaluate("p", "s", ProblemAt(tmp_path / "problems/p.py", "full", {}), tmp_path / "solutions/p/s.py", "full")


def key(job: Evaluate, environment: Environment = ON, **options: object) -> str:
    found = identity(job, Options(**options), environment)  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize("name", [
    "problems/p.py", "solutions/p/s.py", "solutions/p/helper.py", "solutions/p/kernels/k.cu",
    "solutions/p/kernels/k.cuh",
])
def test_every_named_source_changes_the_key(job: Evaluate, tmp_path: Path, name: str) -> None:
    before = key(job)
    with (tmp_path / name).open("a") as file:
        file.write("# changed\n")
    assert key(job) != before


def test_the_file_name_and_unnamed_neighbours_do_not_change_the_key(job: Evaluate, tmp_path: Path) -> None:
    before = key(job)
    (tmp_path / "solutions/p/other.py").write_text("Y = 3\n")
    assert job.solution is not None
    renamed = job.solution.rename(job.solution.with_name("t.py"))
    assert key(replace(job, solution=renamed, solution_name="t", shape_name="full")) == before


def test_the_sources_of_rivals_change_the_key(job: Evaluate) -> None:
    assert len({key(job), key(replace(job, rivals=("a",))), key(replace(job, rivals=("b",)))}) == 3


def test_a_library_solution_has_another_key_than_the_same_file_under_another_name(job: Evaluate) -> None:
    assert key(replace(job, solution_name="library")) != key(job)


@pytest.mark.parametrize("options", [
    {"check": True}, {"calls": 3}, {"tolerance": 0.1}, {"tf32": True}, {"seed": 5}, {"baselines": ("compile",)},
    {"allow_library": True}, {"trust": True}, {"full_headers": True},
])
def test_options_that_affect_the_result_change_the_key(job: Evaluate, options: dict[str, object]) -> None:
    assert key(job, **options) != key(job)


@pytest.mark.parametrize("options", [
    {"quiet": True}, {"out": Path("x")}, {"jobs": 3}, {"resume": True, "out": Path("y")}, {"shard": (1, 2)},
    {"device": "cuda:1"},
])
def test_options_that_do_not_affect_the_result_do_not_change_the_key(job: Evaluate, options: dict[str, object]) -> None:
    assert key(job, **options) == key(job)


def test_shape_precision_gpu_and_versions_change_the_key(job: Evaluate) -> None:
    others = [key(replace(job, problem=replace(job.problem, shape="odd"))),
              key(replace(job, problem=replace(job.problem, constants={"N": 5}))),
              key(replace(job, problem=replace(job.problem, precision="fp16"))),
              key(replace(job, solution=None)), key(job, replace(ON, gpu="A100")), key(job, replace(ON, torch="2.12"))]
    assert len({key(job), *others}) == len(others) + 1
    assert key(job, replace(ON, peaks="4 TB/s")) == key(job)


def test_a_missing_file_has_no_key(job: Evaluate) -> None:
    job.problem.path.unlink()
    assert identity(job, Options(), ON) is None


NOT_DECIDING = {
    "names", "solution_files", "response", "all_blocks", "responses", "list_only", "levels", "tags", "shapes",
    "constants",
    "precision", "device", "devices", "profile", "require_sandbox", "jobs", "build_only", "executor", "ray_address",
    "cache", "cache_limit", "problems", "solutions", "out", "resume", "shard", "junit", "strict", "feedback", "verbose",
    "quiet", "fail_fast", "last_failed",
}
"""Options that select what is evaluated, which the key has from the job, and options for where and how it runs."""


def test_every_option_is_listed_as_affecting_the_result_or_not() -> None:
    every = {each.name for each in fields(Options)}
    assert not every - NOT_DECIDING - set(DECIDING) and not NOT_DECIDING & set(DECIDING)
    assert every == NOT_DECIDING | set(DECIDING)


def test_files_that_name_each_other_have_a_key(job: Evaluate, tmp_path: Path) -> None:
    (tmp_path / "solutions/p/helper.py").write_text("import s\nimport helper\n")
    assert key(job)
