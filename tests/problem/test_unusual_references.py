"""References that draw random numbers, give nothing that can be compared, have lazy modules or unusual inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inlinebench.messages import ProblemAt
from inlinebench.problem.own_code import TorchSettings
from inlinebench.problem.probe.probe import run_probe
from inlinebench.problem.probe.records import CannotRun, ProbeResult
from inlinebench.problem.problem_file import ProblemError, construct, load

PROBLEM = """\
import random
import numpy
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
LAZY = "self.layers = nn.Sequential(nn.LazyLinear(6), nn.LazyBatchNorm1d(), nn.Linear(6, 2))"


def write(folder: Path, forward: str, init: str = "pass", inputs: str = "torch.randn(8, 4)") -> Path:
    path = folder / "problem.py"
    path.write_text(PROBLEM.format(init=init, forward=forward, inputs=inputs))
    return path


def probe(path: Path) -> ProbeResult | CannotRun:
    return run_probe(ProblemAt(path, "full", {}), torch.device("cpu"), False, (), report=lambda trial: None)


@pytest.mark.parametrize(("forward", "random"), [
    ("return nn.functional.dropout(x)", True), ("return x + torch.rand_like(x)", True),
    ("return x * random.random()", True), ("return x * float(numpy.random.rand())", True),
    ("x.add_(torch.rand_like(x))", True), ("return x + 1, random.random()", True),
    ("return nn.functional.dropout(x, 0.0)", False), ("torch.rand(3)\n        return 2 * x", False),
    ("torch.manual_seed(0)\n        return x + torch.rand_like(x)", False), ("return 2 * x", False),
])
def test_the_probe_finds_whether_the_outputs_depend_on_draws(tmp_path: Path, forward: str, random: bool) -> None:
    found = probe(write(tmp_path, forward))
    assert isinstance(found, ProbeResult), found
    assert found.random is random


@pytest.mark.parametrize(("forward", "reason"), [
    ("return x / 0 * 0", "returns only NaN; change the inputs or the sizes"),
    ("return x.abs() / 0", "returns only infinities and NaN; change the inputs or the sizes"),
    ("return x.half() / 0, (x.abs() / 0).to(torch.float8_e5m2)", "returns only infinities and NaN"),
    ("x + 1", "returns no value; it must return its outputs"), ("return ()", "returns no value"),
    ("return x.to_sparse()", "returns a sparse, nested or quantized tensor; outputs must be"),
    ("return x, x.numpy()", "returns ndarray; outputs must be dense tensors, numbers and text"),
])
def test_a_reference_without_a_meaningful_output_cannot_run(tmp_path: Path, forward: str, reason: str) -> None:
    found = probe(write(tmp_path, forward))
    assert isinstance(found, CannotRun) and found.own_fault
    assert reason in found.reason


@pytest.mark.parametrize(("forward", "init"), [
    ("return x / 0 * 0, x", "pass"), ("return x.sqrt()", "pass"), ("return x[:0]", "pass"),
    ("return x + 1, None", "pass"),
    ("x.add_(1)", "pass"), ("self.kept.add_(x)", "self.register_buffer('kept', torch.zeros(8, 4))"),
    ("return x.to(torch.float8_e4m3fn)", "pass"), ("return (x > 0)", "pass"), ("return x.numel()", "pass"),
])
def test_a_reference_with_something_to_compare_can_run(tmp_path: Path, forward: str, init: str) -> None:
    found = probe(write(tmp_path, forward, init))
    assert isinstance(found, ProbeResult), found


@pytest.mark.parametrize("inputs", [
    "torch.randn(8, 8)[:, ::2]", "torch.randn(8, 1).expand(8, 4)", "torch.randn(4, 8).t()",
    "(torch.rand(8, 4) - 0.5).to(torch.float8_e4m3fn)", "torch.randn(8, 4, requires_grad=True)",
])
def test_inputs_of_any_layout_and_dtype_can_be_probed(tmp_path: Path, inputs: str) -> None:
    path = write(tmp_path, "return x.float() * 2", inputs=inputs)
    found = run_probe(ProblemAt(path, "full", {}), torch.device("cpu"), True, (), report=lambda trial: None)
    assert isinstance(found, ProbeResult), found
    assert found.inputs[0].shape == (8, 4) and found.mutated == ()


def test_sparse_inputs_are_a_fault_of_the_problem(tmp_path: Path) -> None:
    found = probe(write(tmp_path, "return x @ x.T", inputs="torch.eye(8).to_sparse()"))
    assert isinstance(found, CannotRun)
    assert "get_inputs() returns a sparse, nested or quantized tensor" in found.reason


def test_settings_that_a_problem_makes_can_be_restored() -> None:
    settings = TorchSettings()
    try:
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_grad_enabled(False)
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.allow_tf32 = not torch.backends.cudnn.allow_tf32
    finally:
        settings.restore()
    made = torch.zeros(1)
    assert (made.dtype, made.device.type, torch.is_grad_enabled()) == (torch.float32, "cpu", True)
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("text", ["import _beside", "from _beside import twice", "from ._beside import twice"])
def test_a_problem_that_imports_a_file_beside_it_is_told_to_contain_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "_beside.py").write_text("twice = 2")
    path = tmp_path / "problem.py"
    path.write_text(f"{text}\n")
    with pytest.raises(ProblemError, match="a problem is a single file: copy what it imports into it"):
        load(path)


def test_lazy_modules_get_the_same_weights_in_every_model(tmp_path: Path) -> None:
    path = write(tmp_path, "return self.layers(x)", LAZY)
    one, other = construct(load(path)).state_dict(), construct(load(path)).state_dict()
    assert one["layers.0.weight"].shape == (6, 4)
    assert list(one) == list(other) and all(torch.equal(one[name], other[name]) for name in one)


def test_the_call_that_gives_lazy_modules_their_shapes_changes_neither_buffers_nor_modes(tmp_path: Path) -> None:
    model = construct(load(write(tmp_path, "return self.layers(x)", f"{LAZY}; self.layers[2].eval()")))
    state = model.state_dict()
    assert torch.equal(state["layers.1.running_mean"], torch.zeros(6)) and state["layers.1.num_batches_tracked"] == 0
    assert [each.training for each in model.children()] == [True] and not model.get_submodule("layers.2").training


def test_a_reference_with_lazy_modules_has_an_oracle(tmp_path: Path) -> None:
    found = probe(write(tmp_path, "return self.layers(x)", LAZY))
    assert isinstance(found, ProbeResult) and found.float64


@pytest.mark.parametrize(("forward", "reason"), [
    ("return self.layers(x) + torch.ones(3)", "the call that initializes lazy modules raises RuntimeError"),
    ("return x", "does not initialize the lazy layers.0.weight, layers.0.bias"),
])
def test_lazy_modules_without_shapes_are_a_fault_of_the_problem(tmp_path: Path, forward: str, reason: str) -> None:
    with pytest.raises(ProblemError, match=reason):
        construct(load(write(tmp_path, forward, LAZY)))
