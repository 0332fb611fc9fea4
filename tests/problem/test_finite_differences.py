"""A reference that defines a gradient itself must define that of its forward. Kinks are accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from inlinebench.messages import ProblemAt
from inlinebench.problem.finite_differences import Slopes, defines_gradients, slopes
from inlinebench.problem.probe.probe import run_probe
from inlinebench.problem.probe.records import CannotRun, ProbeResult

PROBLEM = """
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return {VALUE}
    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return {GRADIENTS}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(24))
    def forward(self, x):
        out = {FORWARD}
        return out, out.argmax(1)

def get_inputs():
    return [torch.randn(40, 24)]
"""
OWN = "Own.apply(x, self.weight)"
PRODUCT, ITS_GRADIENTS = "x * weight", "gradient * weight, (gradient * x).sum(0)"


def probed(
    folder: Path, value: str = PRODUCT, gradients: str = ITS_GRADIENTS, forward: str = OWN, also: str = ""
) -> ProbeResult | CannotRun:
    text = PROBLEM.replace("{VALUE}", value).replace("{GRADIENTS}", gradients).replace("{FORWARD}", forward)
    path = folder / "problem.py"
    path.write_text(text + also)
    return run_probe(ProblemAt(path, "full", {}, backward=True), torch.device("cpu"), False, (), report=lambda _: None)


@pytest.mark.parametrize(("value", "gradients", "name"), [
    (PRODUCT, "gradient * weight * 1.05, (gradient * x).sum(0)", "gradient of input 0"),
    (PRODUCT, "gradient * weight, (gradient * x).mean(0)", "gradient of weight"),
    (PRODUCT, "gradient * weight, None", "gradient of weight"),
    ("(x * weight).relu()", ITS_GRADIENTS, "gradient of input 0"),
    ("x.exp() + weight", "gradient, gradient.sum(0)", "gradient of input 0"),
])
def test_a_wrong_gradient_is_a_problem_error(tmp_path: Path, value: str, gradients: str, name: str) -> None:
    found = probed(tmp_path, value, gradients)
    assert isinstance(found, CannotRun) and found.own_fault
    assert f"the {name} is not that of forward: along a random direction" in found.reason


@pytest.mark.parametrize(("value", "gradients"), [
    (PRODUCT, ITS_GRADIENTS), ("x.relu() + 0 * weight", "gradient * (x > 0), 0 * weight"),
    ("x.abs() + weight", "gradient * x.sign(), gradient.sum(0)"), ("x + weight.sign()", "gradient, None"),
    ("x.clamp(-0.5, 0.5) * weight",
     "gradient * weight * (x.abs() < 0.5), (gradient * x.clamp(-0.5, 0.5)).sum(0)"),
    ("x.amax(1, keepdim=True) + weight.expand(40, 24)",
     "(x == x.amax(1, keepdim=True)) * gradient.sum(1, keepdim=True), gradient.sum(0)"),
])
def test_a_right_gradient_is_accepted_at_kinks_too(tmp_path: Path, value: str, gradients: str) -> None:
    found = probed(tmp_path, value, gradients)
    assert isinstance(found, ProbeResult), found.reason
    assert found.gradients is not None and found.gradients.own


@pytest.mark.parametrize("forward", [
    "checkpoint(torch.sin, x * self.weight, use_reentrant=False)", "x * self.weight", "F.relu(x * self.weight)",
    "x + (x.round() - x).detach() + self.weight", "x.detach() * self.weight * x",
    "F.max_pool1d(x * self.weight, 3).repeat_interleave(3, 1)", "F.dropout(x * self.weight, 0.5)",
])
def test_gradients_that_autograd_defines_are_not_checked(tmp_path: Path, forward: str) -> None:
    found = probed(tmp_path, forward=forward)
    assert isinstance(found, ProbeResult), found.reason
    assert found.gradients is not None and not found.gradients.own


def test_an_intended_difference_needs_a_word_in_the_problem(tmp_path: Path) -> None:
    straight_through = ("x.round() * weight", "gradient * weight, (gradient * x.round()).sum(0)")
    found = probed(tmp_path, *straight_through)
    assert isinstance(found, CannotRun) and "set GRADIENT_CHECK = False in the problem" in found.reason
    assert isinstance(probed(tmp_path, *straight_through, also="GRADIENT_CHECK = False\n"), ProbeResult)


def test_nothing_is_said_about_a_reference_that_draws_random_numbers(tmp_path: Path) -> None:
    found = probed(tmp_path, "x * weight * torch.rand(())", "gradient, None")
    assert isinstance(found, ProbeResult)


def test_an_operator_with_a_registered_backward_defines_its_gradient() -> None:
    with torch.library._scoped_library("inlinebench_tests", "FRAGMENT"):
        @torch.library.custom_op("inlinebench_tests::doubled", mutates_args=())
        def doubled(x: torch.Tensor) -> torch.Tensor:
            return 2 * x

        doubled.register_autograd(lambda _, gradient: 2 * gradient)
        x = torch.ones(3, requires_grad=True)
        assert defines_gradients([F.relu(doubled(x)).sum()])
    assert not defines_gradients([F.relu(2 * x).sum(), x])


def test_slopes_differ_beyond_rounding_only() -> None:
    assert Slopes(1.0, 1.02, 0.0).differ and not Slopes(1.0, 1.001, 0.0).differ
    assert not Slopes(0.0, 1e-8, 1e-7).differ and Slopes(0.0, 1e-6, 1e-7).differ


@pytest.mark.parametrize(("value", "gradients"), [
    ("torch.complex(x, x * weight)", "gradient.real + gradient.imag * weight, (gradient.imag * x).sum(0)"),
    ("x * weight if bool((x == x.float()).all()) else 1 / 0", ITS_GRADIENTS),
])
def test_what_cannot_be_moved_or_weighted_is_not_checked(tmp_path: Path, value: str, gradients: str) -> None:
    found = probed(tmp_path, value, gradients, also="Model.forward = lambda self, x: Own.apply(x, self.weight)\n")
    assert isinstance(found, ProbeResult), found.reason
    assert found.gradients is not None and found.gradients.own


def test_no_slopes_follow_where_the_forward_fails() -> None:
    source = torch.ones(3, dtype=torch.float64)
    assert list(slopes(source, source, lambda moved: None, 1.0, 0)) == []
    assert len(list(slopes(2 * source, source, lambda moved: float(moved.square().sum()), 3.0, 0))) == 3
