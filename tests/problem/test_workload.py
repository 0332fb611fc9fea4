from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inlinebench.messages import ProblemAt
from inlinebench.problem.probe.probe import run_probe
from inlinebench.problem.probe.records import ProbeResult
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload

CPU = torch.device("cpu")
PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {construct}

    def forward(self, x, cache):
        cache.add_(x)
        return x * 2


def get_inputs():
    return [torch.randn(3, 5), torch.randn(3, 5)]


def get_init_inputs():
    return []
"""


def workload(folder: Path, construct: str = "pass") -> Workload:
    """Returns a problem that changes its second input."""
    path = folder / "problem.py"
    path.write_text(PROBLEM.format(construct=construct))
    problem = ProblemAt(path, "full", {})
    probed = run_probe(problem, CPU, False, (), report=lambda trial: None)
    assert isinstance(probed, ProbeResult) and set(probed.mutated) == {1}
    return Workload(problem, probed, CPU, folder)


@pytest.mark.parametrize("index", [0, 1])
def test_a_changed_input_is_found_unless_the_reference_changes_it(tmp_path: Path, index: int) -> None:
    made = workload(tmp_path)
    private, _ = made.draw(0, 1, Variant.PLAIN)
    made.hand_over(0)
    assert made.inputs_equal(0, private)
    shared = made.inputs(0)[index]
    shared[2, 4] = -shared[2, 4]
    assert made.inputs_equal(0, private) == (index == 1)


def test_inputs_that_a_batch_wrote_itself_are_compared_with_its_own(tmp_path: Path) -> None:
    made = workload(tmp_path)
    drawn, _ = made.draw(0, 1, Variant.PLAIN)
    made.hand_over(0)
    own = [torch.full_like(tensor, float("nan")) for tensor in drawn]
    for shared, tensor in zip(made.inputs(0), own, strict=True):
        shared.copy_(tensor)
    assert made.inputs_equal(0, own) and not made.inputs_equal(0, drawn)


@pytest.mark.parametrize(("construct", "expected"), [
    ("pass", False), ("self.weight = nn.Parameter(torch.ones(2))", True),
    ("self.register_buffer('mean', torch.zeros(2))", True),
])
def test_a_reference_has_weights_if_it_has_parameters_or_buffers(
    tmp_path: Path, construct: str, expected: bool
) -> None:
    assert workload(tmp_path, construct).has_weights is expected


BACKWARD = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.sin(), x.sum()


def get_inputs():
    return [torch.randn(3, 5)]


def get_init_inputs():
    return []
"""


def with_backward(folder: Path) -> Workload:
    """Returns a problem with two gradients that are given, of which one is a number."""
    path = folder / "problem.py"
    path.write_text(BACKWARD)
    problem = ProblemAt(path, "full", {}, backward=True)
    probed = run_probe(problem, CPU, False, (), report=lambda trial: None)
    assert isinstance(probed, ProbeResult)
    return Workload(problem, probed, CPU, folder)


def test_gradients_that_come_late_are_others_before(tmp_path: Path) -> None:
    made = with_backward(tmp_path)
    private, _ = made.draw(0, 1, Variant.PLAIN)
    assert made.gradients_given == 2 and [each.shape for each in private] == [(3, 5), (3, 5), ()]
    made.hand_over(0, gradients_late=True)
    shared = made.inputs(0)
    assert torch.equal(shared[0], private[0])
    assert not (shared[1] == private[1]).any() and shared[2] == -private[2]
    assert torch.equal(shared[1].abs().flatten().sort().values, private[1].abs().flatten().sort().values)
    made.hand_over_gradients(0)
    assert made.inputs_equal(0, private)


def test_gradients_that_are_in_time_are_there_at_once(tmp_path: Path) -> None:
    made = with_backward(tmp_path)
    private, _ = made.draw(0, 1, Variant.PLAIN)
    made.hand_over(0)
    assert made.inputs_equal(0, private)


def test_without_a_backward_no_gradients_are_given(tmp_path: Path) -> None:
    assert workload(tmp_path).gradients_given == 0
