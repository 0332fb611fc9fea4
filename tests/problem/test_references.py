"""References that are hard to compare with: what the probe finds, and the verdicts of right and wrong solutions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inlinebench.messages import ProblemAt
from inlinebench.problem.probe import float64
from inlinebench.problem.probe.probe import run_probe
from inlinebench.problem.probe.records import ProbeResult
from inlinebench.problem.variants import CHANGING, Variant
from inlinebench.results.result import Verdict

from ..running import Run, run_eval

pytestmark = pytest.mark.slow

PROBLEM = """\
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = torch.zeros(64)
        self.register_buffer("kept", torch.zeros(64))

    def forward(self, x, y):
{forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
RANDOM = "torch.randn(64, 64), torch.randn(64, 64)"
POSITIVE = "torch.rand(64, 64), torch.rand(64, 64)"
FORWARDS = {
    "plain": ("return x @ y", RANDOM),
    "own_epsilon": ("return torch.log(F.relu(x) + torch.finfo(x.dtype).eps)", RANDOM),
    "plain_state": ("self.state = 0.5 * self.state + x[0]\nreturn x + self.state", RANDOM),
    "buffer": ("self.kept.mul_(0.5).add_(x[0])\nreturn x + self.kept", RANDOM),
    "cancels": ("return (x.half() - x.half().float().mean()).mean(1).float() * 1e-3", POSITIVE),
    "named": ("return torch.max(x, dim=1)", RANDOM),
    "bounds": ("return torch.nan_to_num(x / (y > 0).float())", RANDOM),
    "masked": ("return (x @ y).masked_fill(torch.ones_like(x).triu(1).bool(), -1e9)", RANDOM),
    "changes_negatives": ("return F.relu(x, inplace=True) + y", POSITIVE),
    "nothing": ("z = x.to(self.kept.dtype) / 3\nreturn (z - z.mean(1, keepdim=True)).mean(1)",
                "torch.arange(64 * 64).view(64, 64), torch.ones(64, 64)"),
    "rounding": ("return (x - x.mean(1, keepdim=True)).mean(1)", RANDOM),
    "number": ("return x @ y, float(x[0, 0]) * torch.zeros(()).numpy()[()] + 1.5", RANDOM),
    "changes_large": ("return x.clamp_(max=1.5) + y", POSITIVE),
}
SOLUTION = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.cpp_extension import load_inline

touch = load_inline(
    name="touch", functions=["touch"], cpp_sources="void touch(torch::Tensor x);",
    cuda_sources="__global__ void none() {{}}\\nvoid touch(torch::Tensor) {{ none<<<1, 1>>>(); }}",
).touch


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.state = torch.zeros(64)
        self.register_buffer("kept", torch.zeros(64))

    def forward(self, x, y):
        self.calls += 1
        touch(torch.zeros(1, device=x.device))
{forward}
"""
SOLUTIONS = {
    "own_epsilon/same": (FORWARDS["own_epsilon"][0], "passed"),
    "own_epsilon/zeros": ("return torch.zeros_like(x)", "wrong"),
    "plain_state/same": (FORWARDS["plain_state"][0], "passed"),
    "plain_state/forgets": (
        "self.state = 0.5 * self.state + x[0]\nreturn x + self.state * (self.calls < 15)", "wrong"),
    "named/as_a_tuple": ("values, indices = torch.max(x, dim=1)\nreturn values, indices", "passed"),
    "named/second": ("values, indices = torch.max(x, dim=1)\nreturn values, indices * 0", "wrong"),
    "bounds/same": (FORWARDS["bounds"][0], "passed"),
    "bounds/zeros": ("return torch.zeros_like(x)", "wrong"),
    "masked/same": (FORWARDS["masked"][0], "passed"),
    "masked/only_the_mask": (
        "return torch.zeros_like(x).masked_fill(torch.ones_like(x).triu(1).bool(), -1e9)", "wrong"),
    "rounding/in_two_halves": (
        "half = x[:, :32].sum(1) + x[:, 32:].sum(1)\nz = x - half.unsqueeze(1) / 64\n"
        "return (z[:, :32].sum(1) + z[:, 32:].sum(1)) / 64", "passed"),
    "rounding/too_much": ("return torch.full((64,), 1e-3)", "wrong"),
    "number/python_s": ("return x @ y, 1.5", "passed"),
    "number/numpy_s": ("return x @ y, torch.full((), 1.5).numpy()[()]", "passed"),
    "number/another": ("return x @ y, 2.5", "wrong"),
    "changes_negatives/another_tensor": ("return F.relu(x) + y", "passed"),
    "changes_negatives/itself": ("return F.relu(x, inplace=True) + y", "passed"),
}


def indented(text: str) -> str:
    return "".join(f"        {line}\n" for line in text.splitlines()).rstrip()


def write(folder: Path, name: str) -> Path:
    forward, inputs = FORWARDS[name]
    path = folder / f"{name}.py"
    path.write_text(PROBLEM.format(forward=indented(forward), inputs=inputs))
    return path


def probed(folder: Path, name: str) -> ProbeResult:
    problem = ProblemAt(write(folder, name), "full", {})
    found = run_probe(problem, torch.device("cpu"), True, (), report=lambda trial: None)
    assert isinstance(found, ProbeResult), found
    return found


@pytest.mark.parametrize(("name", "oracle"), [
    ("plain", True), ("buffer", True), ("cancels", True), ("rounding", True), ("nothing", True),
    ("own_epsilon", False), ("plain_state", False),
])
def test_float64_is_an_oracle_only_if_it_computes_the_same_function(tmp_path: Path, name: str, oracle: bool) -> None:
    assert probed(tmp_path, name).float64 is oracle


@pytest.mark.parametrize(("name", "oracle"), [("plain", True), ("buffer", True), ("plain_state", False)])
def test_if_float64_is_slow_the_reference_is_repeated_in_its_own_dtype_to_find_kept_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, oracle: bool
) -> None:
    monkeypatch.setattr(float64, "SLOW_S", 0.0)
    assert probed(tmp_path, name).float64 is oracle


@pytest.mark.parametrize(("name", "variants"), [
    ("plain", {*CHANGING}),
    ("changes_negatives", {*CHANGING} - {Variant.ONE_SIGN, Variant.SIGNS}),
    ("changes_large", {Variant.ONE_SIGN, Variant.SCALED_DOWN, Variant.SIGNS}),
])
def test_variants_for_which_the_reference_changes_more_inputs_are_not_admitted(
    tmp_path: Path, name: str, variants: set[Variant]
) -> None:
    assert {variant for variant, inputs in probed(tmp_path, name).variants.items() if 0 in inputs} == variants


@pytest.fixture(scope="module")
def run(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("references")
    (folder / "problems").mkdir()
    for name in FORWARDS:
        write(folder / "problems", name)
    for name, (forward, _) in SOLUTIONS.items():
        path = folder / "solutions" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SOLUTION.format(forward=indented(forward)))
    return run_eval("--problems", folder / "problems", "--solutions", folder / "solutions", "--device", "cpu",
                    "--check", "--cache", cache, out=folder / "out.jsonl")


@pytest.mark.parametrize("name", SOLUTIONS)
def test_only_right_solutions_pass(run: Run, name: str) -> None:
    row = run.row(*name.split("/"))
    assert row.verdict is Verdict(SOLUTIONS[name][1]), row.reason


def test_constructor_arguments_that_are_too_large_for_a_message_are_a_problem_error(
    cache: Path, tmp_path: Path
) -> None:
    problem = tmp_path / "large.py"
    text = PROBLEM.format(forward=indented("return x + y"), inputs=RANDOM)
    problem.write_text(text.replace("def __init__(self):", "def __init__(self, table):").replace(
        "return []", "return [torch.zeros(2048, 2048)]"))
    run = run_eval("large/@reference", "--problems", tmp_path, "--device", "cpu", "--check", "--allow-library",
                   "--cache", cache, "--shape", "full", out=tmp_path / "out.jsonl")
    (row,) = run.results
    assert row.verdict is Verdict.PROBLEM_ERROR and "pass large data as tensors" in row.reason
