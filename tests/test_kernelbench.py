"""Files in KernelBench's layout, written for this test: problem numbers, levels, samples, precision, missing packages.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.results.result import Verdict

from .running import Run, run_eval

pytestmark = pytest.mark.slow

PROBLEM = """import torch
import torch.nn as nn
{imports}

class Model(nn.Module):
    def __init__(self, features):
        super(Model, self).__init__()
        self.scale = nn.Parameter(torch.randn(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return {body}

batch_size = {rows}
features = 24

def get_inputs():
    return [torch.rand(batch_size, features)]

def get_init_inputs():
    return [features]
"""
SAMPLE = """import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, features):
        super(ModelNew, self).__init__()
        self.scale = nn.Parameter(torch.randn(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.dtype == self.scale.dtype == {dtype}
        return {body}
"""
FLOAT, BFLOAT16 = "torch.float32", "torch.bfloat16"
SAMPLES = {
    "one/level_1_problem_2_sample_0": ("x * self.scale", FLOAT),
    "one/level_1_problem_2_sample_1": ("x + self.scale", FLOAT),
    "one/level_1_problem_10_sample_0": ("self.scale.mul(x).clamp(min=0)", FLOAT),
    "one/level_1_problem_10_sample_1": ("x.mul(self.scale).relu()", FLOAT),
    "half/level_1_problem_2_sample_0": ("x * self.scale", BFLOAT16),
    "half/level_1_problem_2_sample_1": ("(x.float() * self.scale).half()", BFLOAT16),
}
FILES = {
    "KB/level1/2_Scale.py": PROBLEM.format(imports="", body="x * self.scale", rows=16),
    "KB/level1/10_Relu_.py": PROBLEM.format(imports="", body="torch.relu(x * self.scale)", rows=16),
    "KB/level1/11_Huge_.py": PROBLEM.format(imports="", body="x * self.scale", rows="int(2e10)"),
    "KB/level2/10_Packages.py": PROBLEM.format(imports="import not_installed.parts", body="x", rows=16),
    "KB/level2/11_Broken.py": PROBLEM.format(imports="import torch.not_there", body="x", rows=16),
    "KB/changelog/notes.py": "raise SystemExit",
    **{f"runs/{name}_kernel.py": SAMPLE.format(body=body, dtype=dtype) for name, (body, dtype) in SAMPLES.items()},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernelbench")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def evaluate(folder: Path, cache: Path, *arguments: str | Path) -> Run:
    out = folder / "out.jsonl"
    out.unlink(missing_ok=True)
    return run_eval("--problems", folder / "KB", "--device", "cpu", "--min-calls", "3", "--allow-library", "--cache",
                    cache, *arguments, out=out)


def test_a_folder_of_samples_is_evaluated_against_the_problems_of_its_level(folder: Path, cache: Path) -> None:
    run = evaluate(folder, cache, "--solutions", folder / "runs" / "one")
    verdicts = {(row.problem, row.solution): row.verdict for row in run.results}
    assert verdicts == {
        ("2_Scale", "sample_0"): Verdict.PASSED, ("2_Scale", "sample_1"): Verdict.WRONG,
        ("10_Relu_", "sample_0"): Verdict.PASSED, ("10_Relu_", "sample_1"): Verdict.PASSED,
    }
    assert {row.level for row in run.results} == {1}
    shown = run.out[run.out.index("pass@1"):].splitlines()
    assert shown[2].split()[:4] == ["1", "2", "4", "75%"]
    assert [line.split()[0] for line in run.out.splitlines()[2:6]] == ["2_Scale", "2_Scale", "10_Relu_", "10_Relu_"]


def test_precision_casts_inputs_and_weights(folder: Path, cache: Path) -> None:
    half = ("--solutions", folder / "runs" / "half", "--precision", "bf16")
    run = evaluate(folder, cache, *half)
    passed, wrong = run.row("2_Scale", "sample_0"), run.row("2_Scale", "sample_1")
    assert passed.verdict is Verdict.PASSED, passed.reason
    assert passed.check is not None and passed.check.tolerance == 1e-2
    assert wrong.verdict is Verdict.WRONG and "float16; the reference's is bfloat16" in wrong.reason
    as_written = evaluate(folder, cache, "--solutions", folder / "runs" / "half").row("2_Scale", "sample_0")
    assert as_written.verdict is Verdict.CRASHED


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_a_reference_passes_against_itself_in_every_precision(folder: Path, cache: Path, precision: str) -> None:
    run = evaluate(folder, cache, "2/@reference", "--precision", precision)
    assert run.row("2_Scale", "@reference").verdict is Verdict.PASSED


def test_problems_that_need_a_package_or_more_memory_are_skipped_with_the_reason(folder: Path, cache: Path) -> None:
    run = evaluate(folder, cache, "10-11/@reference")
    packages, broken = run.row("10_Packages", "@reference"), run.row("11_Broken", "@reference")
    assert packages.verdict is Verdict.SKIPPED and "install the package not_installed" in packages.reason
    assert broken.verdict is Verdict.PROBLEM_ERROR and "torch.not_there" in broken.reason
    huge = run.row("11_Huge_", "@reference")
    assert huge.verdict is Verdict.SKIPPED and "GiB on cpu" in huge.reason and "are free there" in huge.reason
    assert run.row("10_Relu_", "@reference").verdict is Verdict.PASSED


def test_max_memory_lowers_the_limit(folder: Path, cache: Path) -> None:
    large = ("2/@reference", "--set", "batch_size=4194304")
    row = evaluate(folder, cache, *large, "--max-memory", "0.1").row("2_Scale", "@reference")
    assert row.verdict is Verdict.SKIPPED
    assert "GiB on cpu; 0.1 GiB are allowed by --max-memory" in row.reason
    enough = evaluate(folder, cache, "2/@reference", "--max-memory", "0.1").row("2_Scale", "@reference")
    assert enough.verdict is Verdict.PASSED
