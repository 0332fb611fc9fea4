"""What earlier calls say about the scale on which a later one is compared."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inlinebench.evaluation.checks import CallCheck, Checker
from inlinebench.problem.forward import Output


class FakeStage:
    """Holds what a candidate would have written: an output and one state."""

    def __init__(self, oracle: Any = None) -> None:
        spec = SimpleNamespace(torch_dtype=torch.float32)
        self.probed = SimpleNamespace(outputs=Output.of(torch.zeros(1)).metas)
        self.sets = [SimpleNamespace(outputs=[spec])]
        self.states = {"mean": None}
        self.out, self.written = torch.zeros(1), torch.zeros(4)
        self.problem = SimpleNamespace(path="a problem")
        self._oracle = oracle

    def oracle(self) -> Any:
        return self._oracle

    def outputs(self, number: int) -> list[torch.Tensor]:
        return [self.out]

    def state(self, name: str) -> torch.Tensor:
        return self.written


def look(workload: FakeStage, checker: Checker, outputs: tuple[float, float], states: tuple[float, float]) -> str:
    """What the checker says about a call, given the reference's output and state and the candidate's."""
    workload.out, workload.written = torch.tensor([outputs[1]]), torch.full((4,), states[1])
    before, after = {"mean": torch.zeros(4)}, {"mean": torch.full((4,), states[0])}
    return checker.check(CallCheck([], (), 0, before, Output.of(torch.tensor([outputs[0]])), after, (), {}))


def checker_of(workload: FakeStage) -> Checker:
    return Checker(workload, {"mean": "mean"}, None, random.Random(1))  # type: ignore[arg-type]


def test_a_state_that_comes_to_nothing_keeps_the_rounding_of_when_it_was_large() -> None:
    workload = FakeStage()
    checker = checker_of(workload)
    rounding = 2e-6
    assert look(workload, checker, (1.0, 1.0), (1.0, 1.0 + rounding)) == ""
    assert look(workload, checker, (1.0, 1.0), (1e-3, 1e-3 + rounding)) == ""


def test_a_state_that_was_never_large_has_no_such_allowance() -> None:
    workload = FakeStage()
    assert "buffer mean" in look(workload, checker_of(workload), (1.0, 1.0), (1e-3, 1e-3 + 2e-6))


@pytest.mark.parametrize("error", [5e-5, 1e-3])
def test_a_biased_state_is_found_at_its_own_size(error: float) -> None:
    workload = FakeStage()
    assert "buffer mean" in look(workload, checker_of(workload), (1.0, 1.0), (1.0, 1.0 + error))


def test_a_single_sum_that_comes_to_nothing_is_held_against_the_size_of_earlier_ones() -> None:
    workload = FakeStage()
    checker = checker_of(workload)
    assert look(workload, checker, (100.0, 100.0), (1.0, 1.0)) == ""
    assert look(workload, checker, (1e-3, 2e-3), (1.0, 1.0)) == ""
    assert "elements differ" in look(workload, checker, (1e-3, 0.1), (1.0, 1.0))


def test_the_first_single_sum_stands_alone() -> None:
    workload = FakeStage()
    assert "elements differ" in look(workload, checker_of(workload), (1e-3, 2e-3), (1.0, 1.0))


class Rounded:
    """An oracle whose outputs are told beforehand."""

    def __init__(self) -> None:
        self.output = torch.zeros(0)

    def run(self, *_: Any) -> Output:
        return Output.of(self.output)

    def states(self) -> dict[str, torch.Tensor]:
        return {}


def test_what_an_oracle_told_of_clamped_values_loosens_no_later_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call whose values are nearly all clamped, and then one without an oracle whose values are not."""
    monkeypatch.setattr("inlinebench.evaluation.checks.ORACLE_SHARE", 0.0)
    oracle = Rounded()
    workload = FakeStage(oracle)
    values = torch.rand(100_000, dtype=torch.float64)
    workload.probed.outputs = Output.of(values.bfloat16()).metas
    workload.sets[0].outputs[0].torch_dtype = torch.bfloat16

    def check(exact: torch.Tensor, candidate: torch.Tensor) -> str:
        oracle.output, workload.out = exact, candidate
        return checker.check(CallCheck([], (), 0, {}, Output.of(exact.bfloat16()), {}, (), {}))

    checker = checker_of(workload)
    clamped = (values - 0.999).clamp(min=0)
    assert check(clamped, clamped.bfloat16()) == ""
    assert check(values, values.bfloat16()) == ""
    assert "elements differ" in check(values, (values * 1.1).bfloat16())
    assert "elements differ" in check(values, (values + 0.1).bfloat16())
    assert check(clamped, (clamped + torch.where(clamped > 0, 1e-6, 0.0)).bfloat16()) == ""
