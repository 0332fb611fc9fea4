"""Verdicts and reasons of solutions that are right, or wrong, only on changed inputs. One run evaluates all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inlinebench.results.result import Verdict

from ..running import Run, run_eval

pytestmark = pytest.mark.slow

PROBLEM = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, gate):
        {forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
SOLUTION = """\
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, gate):
        {forward}
"""
PROBLEMS = {
    "product": ("return x * gate", "torch.rand(64, 64), torch.rand(64, 64)"),
    "gated": ("return x * gate", "torch.rand(64, 64), torch.sigmoid(torch.randn(64, 64))"),
    "numpy": ("return x * gate", "torch.rand(64, 64), torch.from_numpy(__import__('numpy').random.rand(64, 64))"),
    "far": ("return nn.functional.layer_norm(x, x.shape[-1:]) * gate",
            "1000 + 0.1 * torch.randn(64, 256), torch.rand(64, 256)"),
}
SOLUTIONS = {
    "product/right": "return x * gate",
    "product/needs_positive_x": "return x.abs() * gate",
    "product/needs_positive_inputs": "return (x * gate).abs()",
    "product/needs_small_x": "return x.clamp(-1, 1) * gate",
    "product/wrong": "return x * gate + 1",
    "gated/needs_positive_gate": "return x * gate.abs()",
    "gated/needs_a_gate_below_one": "return x * gate.clamp(max=1)",
    "gated/needs_positive_x": "return x.abs() * gate",
    "numpy/needs_positive_gate": "return x * gate.abs()",
    "far/exact": "return nn.functional.layer_norm(x.double(), x.shape[-1:]).float() * gate",
    "far/wrong": "return nn.functional.layer_norm(x, x.shape[-1:], eps=1e-1) * gate",
}
ADVICE = "matches on inputs as drawn"


@pytest.fixture(scope="module")
def run(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("changed")
    for name, (forward, inputs) in PROBLEMS.items():
        path = folder / "problems" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(PROBLEM.format(forward=forward, inputs=inputs))
    for name, forward in SOLUTIONS.items():
        path = folder / "solutions" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SOLUTION.format(forward=forward))
    return run_eval("--problems", folder / "problems", "--solutions", folder / "solutions", "--device", "cpu",
                    "--check", "--allow-library", "--cache", cache, out=folder / "out.jsonl")


@pytest.mark.parametrize("name", [
    "product/right", "gated/needs_positive_gate", "gated/needs_a_gate_below_one", "numpy/needs_positive_gate",
    "far/exact",
])
def test_inputs_keep_a_range_that_has_a_meaning(run: Run, name: str) -> None:
    row = run.row(*name.split("/"))
    assert row.verdict is Verdict.PASSED, row.reason


@pytest.mark.parametrize("name", [
    "product/needs_positive_x", "product/needs_positive_inputs", "product/needs_small_x", "gated/needs_positive_x",
])
def test_the_reason_says_if_only_changed_inputs_differ(run: Run, name: str) -> None:
    row = run.row(*name.split("/"))
    assert row.verdict is Verdict.WRONG
    assert re.match(r"call \d+ \((random signs of )?inputs? [01]", row.reason), row.reason
    assert row.reason.endswith("if changed inputs are not meaningful here, set INPUT_VARIANTS = False in the problem")


@pytest.mark.parametrize("name", ["product/wrong", "far/wrong"])
def test_a_solution_that_is_wrong_on_inputs_as_drawn_is_wrong_without_that_advice(run: Run, name: str) -> None:
    row = run.row(*name.split("/"))
    assert row.verdict is Verdict.WRONG and "(inputs as drawn" in row.reason
    assert ADVICE not in row.reason
