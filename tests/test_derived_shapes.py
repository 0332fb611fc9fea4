"""Problems that declare no shapes, on the CPU: a small shape is derived, and says so wherever it decides something."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from inlinebench.results.result import Verdict

from .running import Run, run_eval

pytestmark = pytest.mark.slow

PROBLEM = """
import torch
from torch import nn

batch_size = 65536
features = 65536

class Model(nn.Module):
    def forward(self, x):
        {check}
        return x * 2

def get_inputs():
    return [torch.rand(batch_size, features)]

def get_init_inputs():
    return []
"""
SOLUTION = """
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        return x * {factor}
"""
GROUPS = """
import torch
from torch import nn

batch_size = 1024
features = 8192
num_groups = 256

class Model(nn.Module):
    def __init__(self, features, num_groups):
        super().__init__()
        self.norm = nn.GroupNorm(num_groups, features)

    def forward(self, x):
        return self.norm(x)

def get_inputs():
    return [torch.rand(batch_size, features)]

def get_init_inputs():
    return [features, num_groups]
"""
MOMENTS = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self, features, num_groups):
        super().__init__()
        self.norm = nn.GroupNorm(num_groups, features)

    def forward(self, x):
        groups = x.view(len(x), self.norm.num_groups, -1)
        mean = groups.mean(2, keepdim=True)
        variance = (groups * groups).mean(2, keepdim=True) - mean * mean
        normal = ((groups - mean) * (variance {spread}).rsqrt()).view_as(x)
        return normal * self.norm.weight + self.norm.bias
"""
ENDING = """
import os, time
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        {called}
        return x * 2

{imported}
"""
ENDS = {
    "dies": (Verdict.CRASHED, "os._exit(3)", ""),
    "dies_at_import": (Verdict.CRASHED, "", "os._exit(3)"),
    "hangs": (Verdict.TIMED_OUT, "time.sleep(60)", ""),
    "hangs_at_import": (Verdict.TIMED_OUT, "", "time.sleep(60)"),
    "ends_well": (Verdict.PASSED, "", ""),
}
"""Verdicts of solutions, and what they do when they are called and imported."""
SMALL_RUN = ("--device", "cpu", "--check", "--min-calls", "2", "--allow-library")
FILES = {
    "problems/huge.py": PROBLEM.format(check=""),
    "problems/particular.py": PROBLEM.format(check="assert x.shape[1] >= 500"),
    "problems/rigid.py": PROBLEM.format(check="assert batch_size == features == 65536").replace("(batch_size", "(1"),
    "problems/broken.py": PROBLEM.format(check="raise ValueError('never')").replace("(batch_size", "(1"),
    "problems/groups.py": GROUPS,
    "solutions/groups/moments.py": MOMENTS.format(spread="+ 1e-5"),
    "solutions/groups/of_a_sample.py": MOMENTS.format(spread="* groups.shape[2] / (groups.shape[2] - 1) + 1e-5"),
    "problems/written_out.py": PROBLEM.format(check="").replace("torch.rand(batch_size, features)",
                                                                "torch.rand(16, 3, 2240, 2240)"),
    "problems/declares.py": PROBLEM.format(check="") + 'SHAPES = {"small": {"batch_size": 8, "features": 8}}\n',
    "solutions/huge/right.py": SOLUTION.format(factor="2"),
    "solutions/huge/wrong.py": SOLUTION.format(factor="(2 if x.shape[0] == 65536 else 3)"),
    "solutions/huge/for_wide_rows.py": SOLUTION.format(factor="(2 if x.shape[1] >= 4096 else 3)"),
    "solutions/particular/right.py": SOLUTION.format(factor="2"),
    "solutions/rigid/wrong.py": SOLUTION.format(factor="3"),
    "solutions/broken/right.py": SOLUTION.format(factor="2"),
    "solutions/written_out/right.py": SOLUTION.format(factor="(2 if x.shape[2] < 2240 else 3)"),
    "solutions/declares/right.py": SOLUTION.format(factor="2"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("derived")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def everything(folder: Path, cache: Path) -> Run:
    """One run of all solutions."""
    return evaluate(folder, cache)


def evaluate(folder: Path, cache: Path, *arguments: str) -> Run:
    return run_eval("--problems", folder / "problems", "--cache", cache, *SMALL_RUN, *arguments,
                    out=folder / "out.jsonl")


def test_a_problem_for_a_gpu_is_evaluated_at_a_derived_shape(everything: Run) -> None:
    row = everything.row("huge", "right")
    assert (row.verdict, row.shape, row.constants) == (
        Verdict.PASSED, "derived", ("batch_size=256", "features=256")), row.reason


def test_a_failure_at_a_derived_shape_says_so_and_is_counted_apart(everything: Run) -> None:
    row = everything.row("huge", "wrong")
    assert row.verdict is Verdict.WRONG and row.mismatch is not None
    first = row.reason.splitlines()[0]
    assert first.startswith("at the derived shape batch_size=256, features=256: ")
    assert first.endswith("; also wrong at batch_size=2")
    assert "failed derived" in everything.out and "2 failed at a derived shape" in everything.out


def test_a_failure_with_small_sizes_is_tried_again_with_sizes_near_those_of_the_file(everything: Run) -> None:
    row = everything.row("huge", "for_wide_rows")
    assert (row.verdict, row.constants) == (Verdict.PASSED, ("batch_size=2",)), row.reason
    assert row.check is not None
    assert "wrong with smaller sizes: at the derived shape batch_size=256, features=256: " in row.check.notes[-1]


def test_a_solution_that_dies_or_hangs_at_a_derived_shape_says_so_everywhere(folder: Path, cache: Path) -> None:
    for name, (_, called, imported) in ENDS.items():
        (folder / f"{name}.py").write_text(ENDING.format(called=called, imported=imported))
    files = [word for name in ENDS for word in ("--solution", str(folder / f"{name}.py"))]
    run = run_eval("huge", *files, "--problems", folder / "problems", "--cache", cache, *SMALL_RUN, "--timeout", "4",
                   "--junit", folder / "out.xml", out=folder / "ends.jsonl")
    assert run.status == 0 and "4 failed at a derived shape" in run.out
    cases = {case.get("name"): case.find("failure") for case in ElementTree.parse(folder / "out.xml").iter("testcase")}
    assert cases.keys() == {f"{name}[derived]" for name in ENDS}
    for name, (verdict, *_) in ENDS.items():
        row, failure = run.row("huge", name), cases[f"{name}[derived]"]
        assert (row.verdict, row.failed_derived) == (verdict, verdict is not Verdict.PASSED), row.reason
        assert (failure is None) == (verdict is Verdict.PASSED)
        if failure is not None:
            assert row.reason.startswith("at the derived shape batch_size=256, features=256: ")
            assert row.reason.endswith(f"; also {verdict} at batch_size=2")
            assert failure.get("message") == f"{verdict}: {row.reason}"
            assert f"huge/{name}: {verdict}: {row.reason}" in run.out


def test_the_first_shape_that_the_reference_runs_is_taken(everything: Run) -> None:
    row = everything.row("particular", "right")
    assert row.verdict is Verdict.PASSED and row.constants == ("batch_size=2",), row.reason


def test_a_reference_that_runs_only_as_written_is_evaluated_so_and_decides(everything: Run) -> None:
    row = everything.row("rigid", "wrong")
    assert (row.verdict, row.constants, row.failed_derived) == (Verdict.WRONG, None, False)
    assert "derived" not in row.reason


def test_a_reference_that_never_runs_is_a_problem_error(everything: Run) -> None:
    row = everything.row("broken", "right")
    assert row.verdict is Verdict.PROBLEM_ERROR and "ValueError: never" in row.reason


def test_groups_stay_large_enough_for_the_difference_of_moments_and_small_enough_for_wrong_variances(
    everything: Run
) -> None:
    right, wrong = everything.row("groups", "moments"), everything.row("groups", "of_a_sample")
    assert right.verdict is Verdict.PASSED, right.reason
    assert right.constants == ("batch_size=256", "features=256", "num_groups=8")
    assert wrong.verdict is Verdict.WRONG


def test_sizes_that_get_inputs_writes_out_become_smaller(everything: Run) -> None:
    row = everything.row("written_out", "right")
    assert row.verdict is Verdict.PASSED and row.constants is not None and "2240=64" in row.constants, row.constants


def test_declared_shapes_come_first(everything: Run) -> None:
    row = everything.row("declares", "right")
    assert (row.verdict, row.shape, row.constants) == (Verdict.PASSED, "small", None)


def test_only_strict_runs_fail_for_a_derived_shape(folder: Path, cache: Path, everything: Run) -> None:
    assert everything.status == 1  # for the problems `rigid` and `broken`
    only_derived = evaluate(folder, cache, "huge", "--resume")
    assert only_derived.status == 0 and "wrong" in only_derived.out
    assert evaluate(folder, cache, "huge", "--resume", "--strict").status == 1


def test_the_list_shows_the_constants_of_a_derived_shape(folder: Path) -> None:
    said = run_eval("--problems", folder / "problems", "--list").out
    assert "full derived (batch_size=256, features=256)" in said
    assert any(line.split()[:3] == ["declares", "full", "small"] for line in said.splitlines())


def test_set_applies_where_the_constant_exists_and_names_the_other_problems(folder: Path, cache: Path) -> None:
    (folder / "problems/other.py").write_text(PROBLEM.format(check="").replace("features", "width"))
    try:
        run = run_eval("--problems", folder / "problems", "--cache", cache, *SMALL_RUN, "--set", "width=8", "--set",
                       "batch_size=4", "huge/@reference", "other/@reference", out=folder / "set.jsonl")
    finally:
        (folder / "problems/other.py").unlink()
    assert "--set width: not applied to huge (no such constant)\n" in run.err
    assert {row.problem: row.shape for row in run.results} == {
        "huge": "batch_size=4", "other": "width=8,batch_size=4"}
    assert {row.verdict for row in run.results} == {Verdict.PASSED}
