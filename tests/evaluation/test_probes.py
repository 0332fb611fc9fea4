"""What is found out about wrong outputs: functions play the solution, over a real workload on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from inlinebench.evaluation import probes as module
from inlinebench.evaluation.draws import Drawn, Draws
from inlinebench.evaluation.probes import Probes, output_number
from inlinebench.problem.probe.probe import run_probe
from inlinebench.problem.probe.records import ProbeResult
from inlinebench.problem.problem_file import ProblemAt
from inlinebench.problem.workload import Workload

CPU = torch.device("cpu")
PROBLEM = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(32, 32))
        self.bias = torch.nn.Parameter(torch.randn(32))

    def forward(self, x, y):
        return (x @ self.weight + self.bias) @ y


def get_inputs():
    return [torch.randn(24, 32), torch.randn(32, 40)]


def get_init_inputs():
    return []
"""
Solution = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
WRONG: dict[str, tuple[Solution, str]] = {
    "transposed weight": (lambda x, y, w, b: (x @ w.T + b) @ y, "is what the reference computes if weight weight were "
                                                                "transposed"),
    "no bias": (lambda x, y, w, b: x @ w @ y, "is what the reference computes if weight bias were all 0"),
    "wrong stride": (lambda x, y, w, b: (x @ w + b) @ y.reshape(40, 32).T,
                     "is what the reference computes if input 1 were read in memory as if it were transposed"),
    "lacks the last terms": (lambda x, y, w, b: (x @ w + b)[:, :24] @ y[:24],
                             "doesn't depend on rows >= 24 of input 1, but the reference's does"),
    "every other term": (lambda x, y, w, b: (x @ w + b)[:, ::2] @ y[::2],
                         "doesn't depend on every 2nd row (1, 3, 5, ...) of input 1, but the reference's does"),
}
MOVED = "row 12 of input 0 decides row 14 of the output, but row 12 of the reference's"


STATEFUL = PROBLEM.replace("        self.bias", """        self.register_buffer("count", torch.zeros(()))
        self.bias""").replace("        return (x", """        self.count += 1
        return self.count * (x""")


@pytest.fixture
def workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workload:
    monkeypatch.setattr(module, "LIMIT_S", 60.0)
    return workload_of(tmp_path, PROBLEM)


def workload_of(tmp_path: Path, source: str) -> Workload:
    path = tmp_path / "problem.py"
    path.write_text(source)
    problem = ProblemAt(path, "full", {})
    probed = run_probe(problem, CPU, False, (), report=lambda trial: None)
    assert isinstance(probed, ProbeResult)
    return Workload(problem, probed, CPU, tmp_path)


def sentences(workload: Workload, solution: Solution) -> list[str]:
    draws = Draws(workload, 1, "probes")
    weights = [each.detach() for each in workload.reference().parameters()]

    def ask(call: Drawn) -> Sequence[Tensor]:
        return [solution(*call.tensors, *weights)]

    drawn = draws.next()
    before = [tensor.clone() for tensor in drawn.tensors]
    states = {name: tensor.clone() for name, tensor in workload.reference().named_buffers()}
    found = list(Probes(workload, states, ask).sentences(drawn, 0))
    assert all(map(torch.equal, before, drawn.tensors)), "the inputs are as they were"
    return found


@pytest.mark.parametrize("name", WRONG)
def test_what_a_wrong_output_depends_on_is_said(workload: Workload, name: str) -> None:
    solution, expected = WRONG[name]
    assert f"the output {expected}" in sentences(workload, solution)


def test_rows_that_are_written_to_other_rows_are_said(workload: Workload) -> None:
    assert MOVED in sentences(workload, lambda x, y, w, b: ((x @ w + b) @ y).roll(2, 0))


def test_an_output_that_differs_from_call_to_call_is_said(workload: Workload) -> None:
    found = sentences(workload, lambda x, y, w, b: (x @ w + b) @ y * torch.rand(()))
    assert found == ["it differs from call to call on the same inputs: look for a race or uninitialized memory"]


@pytest.mark.parametrize("error", [lambda z: z, lambda z: z * 1.5, lambda z: z + 1, torch.tanh])
def test_nothing_is_said_about_an_output_that_depends_on_the_right_values(
    workload: Workload, error: Callable[[Tensor], Tensor]
) -> None:
    assert sentences(workload, lambda x, y, w, b: error((x @ w + b) @ y)) == []


def test_the_time_is_limited(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMIT_S", 0.3)
    begin = time.monotonic()

    def slow(x: Tensor, y: Tensor, w: Tensor, b: Tensor) -> Tensor:
        time.sleep(0.1)
        return x @ w @ y + 1

    sentences(workload, slow)
    assert time.monotonic() - begin < 2


@pytest.mark.parametrize("limit", ["LIMIT_S", "MOST_BYTES"])
def test_nothing_is_said_without_time_or_memory(
    workload: Workload, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    solution, _ = WRONG["no bias"]
    assert sentences(workload, solution)
    monkeypatch.setattr(module, limit, 0)
    assert sentences(workload, solution) == []


def test_nothing_is_said_if_the_reference_changes_its_state(tmp_path: Path) -> None:
    calls = iter(range(1, 1000))  # the solution counts on, and is not accused of a race
    workload = workload_of(tmp_path, STATEFUL)
    assert sentences(workload, lambda x, y, w, b: next(calls) * (x @ w) @ y) == []


def test_only_outputs_are_probed() -> None:
    assert output_number("output") == 0 and output_number("output 2") == 2
    assert output_number("buffer mean") is None and output_number("input 1, which the reference changes") is None
