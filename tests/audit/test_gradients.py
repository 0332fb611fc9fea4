"""The reference's own gradient: a wrong one is named, and honest ones with kinks and zeros are not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inlinebench.audit.audit import audit
from inlinebench.audit.records import Flaw
from inlinebench.messages import ProblemAt

PROBLEM = """
import torch
import torch.nn.functional as F
from torch import nn

class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()
    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return gradient * x.cos() * SCALE

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(40, 24))
    def forward(self, x, labels):
        return FORWARD

def get_inputs():
    return [torch.randn(16, 40), torch.randint(0, 24, (16,))]

def get_init_inputs():
    return []
"""


def faults(folder: Path, forward: str, scale: str = "1") -> list[str]:
    """Returns the texts of the faults that are about gradients, those of the probe too."""
    path = folder / "problem.py"
    path.write_text(PROBLEM.replace("FORWARD", forward).replace("SCALE", scale))
    found = audit(ProblemAt(path, "full", {}, backward=True), torch.device("cpu"))
    return [each.text for each in found if isinstance(each, Flaw) and "is not that of forward" in each.text]


@pytest.mark.parametrize(("forward", "name"), [
    ("Half.apply(x) @ self.w", "input 0"), ("x @ Half.apply(self.w)", "w"), ("Half.apply(x @ self.w)", "input 0"),
])
def test_a_wrong_autograd_function_is_named(tmp_path: Path, forward: str, name: str) -> None:
    found = faults(tmp_path, forward, "0.9")
    assert len(found) == 1 and f"the gradient of {name} is not that of forward" in found[0]


def test_a_value_that_is_detached_is_named_and_may_be_intended(tmp_path: Path) -> None:
    text, = faults(tmp_path, "(x.exp() / x.detach().exp().sum(1, keepdim=True)) @ self.w")
    assert "gradient of input 0" in text and "if that is intended" in text


@pytest.mark.parametrize("forward", [
    "Half.apply(x @ self.w)", "torch.relu(x @ self.w)", "F.cross_entropy(x @ self.w, labels)",
    "F.max_pool1d(torch.relu(x @ self.w), 3)", "torch.softmax(x @ self.w, -1)", "F.layer_norm(x @ self.w, (24,))",
    "(labels + 1, (x @ self.w).amax(1), (x @ self.w).argmax(1))", "x.sum() * self.w", "F.dropout(x @ self.w, 0.5)",
])
def test_an_honest_gradient_is_not_named(tmp_path: Path, forward: str) -> None:
    assert faults(tmp_path, forward) == []
