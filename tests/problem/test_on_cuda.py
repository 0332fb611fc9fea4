"""A problem that names "cuda" is evaluated on the CPU: at module level, in its inputs and in its model."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.results.result import Verdict
from tests.running import run_eval

PROBLEM = """
import torch
from torch import nn

N = 300
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.full((N,), 2.0, device="cuda"))
        self.layer = nn.Linear(N, N).cuda()

    def forward(self, x, y):
        assert x.is_cuda and x.get_device() == torch.cuda.current_device()
        shifted = torch.ones(N, device=x.device) + torch.zeros(N, device="cuda:0")
        torch.cuda.synchronize()
        assert not isinstance(x, torch.cuda.StreamContext) and isinstance(torch.Generator("cuda"), torch.Generator)
        return self.layer(x.cuda()) * self.scale + y.to("cuda") * shifted


def get_inputs():
    generator = torch.Generator(device="cuda").manual_seed(0)
    return [torch.rand(8, N, device="cuda", generator=generator), torch.rand(8, N).cuda()]


def get_init_inputs():
    return []
"""
SOLUTION = PROBLEM.replace("class Model(", "class ModelNew(")
WRONG = SOLUTION.replace("* shifted", "* 1.1")


@pytest.mark.slow
def test_a_problem_on_cuda_runs_on_the_cpu(tmp_path: Path) -> None:
    for name, text in {"problems/on_cuda": PROBLEM, "on_cuda/same": SOLUTION, "on_cuda/wrong": WRONG}.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    run = run_eval("--problems", tmp_path / "problems", "--solutions", tmp_path, "--device", "cpu", "--check",
                   "--allow-library", "--min-calls", "3", out=tmp_path / "out.jsonl")
    assert run.row("on_cuda", "same").verdict is Verdict.PASSED, run.row("on_cuda", "same").reason
    assert run.row("on_cuda", "wrong").verdict is Verdict.WRONG
