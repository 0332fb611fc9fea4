"""Problems whose calls have a backward: what is differentiated, and what a problem without a gradient is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inlinebench.messages import ProblemAt
from inlinebench.problem.gradients import with_gradients
from inlinebench.problem.probe.probe import run_probe
from inlinebench.problem.probe.records import CannotRun, ProbeResult

CPU = torch.device("cpu")
PROBLEM = """
import torch
from torch import nn

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    def backward(ctx, gradient):
        raise NotImplementedError("no backward yet")

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.frozen = nn.Parameter(torch.ones(4), requires_grad=False)
        self.kept = torch.zeros(4)
    def keep(self, value):
        self.kept = self.kept + value
        return self.kept
    def forward(self, x, labels):
        return {FORWARD}

def get_inputs():
    return [torch.randn(8, 4), torch.randint(0, 4, (8,))]

def get_init_inputs():
    return []

def work():
    return {"bytes": 1, "flops": 1}
"""


def probed(folder: Path, forward: str, *, backward: bool = True, also: str = "") -> ProbeResult | CannotRun:
    path = folder / "problem.py"
    path.write_text(PROBLEM.replace("{FORWARD}", forward) + also)
    return run_probe(ProblemAt(path, "full", {}, backward=backward), CPU, True, (), report=lambda _: None)


def test_the_gradients_of_all_floating_point_inputs_and_parameters_are_outputs(tmp_path: Path) -> None:
    found = probed(tmp_path, "x * self.weight * self.frozen + labels[:, None]")
    assert isinstance(found, ProbeResult) and found.gradients is not None
    assert found.output_names == ("output", "gradient of input 0", "gradient of weight")
    assert [each.shape for each in found.outputs] == [(8, 4), (8, 4), (4,)]
    assert [each.dtype for each in found.inputs] == ["float32", "int64", "float32"]
    assert found.float64 and found.perturbable and not found.random
    assert all(set(positions) <= {0, 2} for positions in found.variants.values()) and found.variants


@pytest.mark.parametrize(("forward", "unused"), [
    ("x * self.weight", []), ("x + labels[:, None]", ["gradient of weight"]),
    ("self.weight * 2", ["gradient of input 0"]), ("x * self.weight.detach()", ["gradient of weight"]),
])
def test_gradients_of_which_the_reference_has_none_are_known(tmp_path: Path, forward: str, unused: list[str]) -> None:
    found = probed(tmp_path, forward)
    assert isinstance(found, ProbeResult) and found.gradients is not None
    assert [name for name, _ in found.gradients.unused] == unused
    assert found.output_names == ("output", "gradient of input 0", "gradient of weight")


def test_without_a_backward_nothing_is_differentiated(tmp_path: Path) -> None:
    found = probed(tmp_path, "x * self.weight", backward=False)
    assert isinstance(found, ProbeResult) and found.gradients is None
    assert found.output_names == ("output",) and len(found.inputs) == 2


def test_several_outputs_have_numbers(tmp_path: Path) -> None:
    found = probed(tmp_path, "(x * self.weight, x.argmax(-1))")
    assert isinstance(found, ProbeResult) and found.gradients is not None
    assert found.output_names[:2] == ("output 0", "output 1") and found.gradients.outputs == (0,)


@pytest.mark.parametrize("forward", ["x.argmax(-1)", "x.detach() * 2", "labels + 1"])
def test_a_problem_without_gradients_is_skipped_with_the_reason(tmp_path: Path, forward: str) -> None:
    found = probed(tmp_path, forward)
    assert isinstance(found, CannotRun) and not found.own_fault
    assert "there is no backward: no output depends on a floating-point input or parameter" in found.reason


@pytest.mark.parametrize(("forward", "reason"), [
    ("self.keep(x * self.weight)", "raises in its second call, with what it keeps of the first: RuntimeError: Tr"),
    ("Twice.apply(x)", "forward or backward raises NotImplementedError: no backward yet"),
    ("x.mul_(self.weight)", "forward on inputs that require gradients raises RuntimeError: a leaf Variable"),
])
def test_a_reference_that_cannot_be_differentiated_is_at_fault_itself(
    tmp_path: Path, forward: str, reason: str
) -> None:
    found = probed(tmp_path, forward)
    assert isinstance(found, CannotRun) and found.own_fault and reason in found.reason


def test_stated_work_counts_for_the_calls_that_it_is_about(tmp_path: Path) -> None:
    forward = "x * self.weight"
    for also, backward, stated in (("", False, True), ("", True, False), ("BACKWARD = True\n", True, True)):
        found = probed(tmp_path, forward, backward=backward, also=also)
        assert isinstance(found, ProbeResult) and found.work.stated is stated


def test_the_bytes_of_gradients_count(tmp_path: Path) -> None:
    forward, both = (probed(tmp_path, "x * self.weight", backward=backward, also="del work\n")
                     for backward in (False, True))
    assert isinstance(forward, ProbeResult) and isinstance(both, ProbeResult)
    assert both.work.bytes - forward.work.bytes == 4 * (32 + 32 + 4)  # incoming, and those of input and weight


def test_a_problem_without_a_backward_stays_as_it_is(tmp_path: Path) -> None:
    at = ProblemAt(tmp_path / "missing.py", "full", {})
    assert with_gradients(at, CPU) is at
