"""How earlier calls determine the scale that a later call is compared with."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inlinebench.evaluation.checks import CallCheck, Checker
from inlinebench.problem.forward import Output


class FakeWorkload:
    """Holds the output and the state that a candidate would have written."""

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


def check_call(
    workload: FakeWorkload, checker: Checker, outputs: tuple[float, float], states: tuple[float, float]
) -> str:
    """Checks a call with the output and the state of the reference and of the candidate, in this order."""
    workload.out, workload.written = torch.tensor([outputs[1]]), torch.full((4,), states[1])
    before, after = {"mean": torch.zeros(4)}, {"mean": torch.full((4,), states[0])}
    return checker.check(CallCheck([], (), 0, before, Output.of(torch.tensor([outputs[0]])), after, (), {}))


def checker_of(workload: FakeWorkload) -> Checker:
    return Checker(workload, {"mean": "mean"}, None, random.Random(1))  # type: ignore[arg-type]


def test_a_state_near_zero_may_keep_the_rounding_error_from_when_it_was_large() -> None:
    workload = FakeWorkload()
    checker = checker_of(workload)
    rounding = 2e-6
    assert check_call(workload, checker, (1.0, 1.0), (1.0, 1.0 + rounding)) == ""
    assert check_call(workload, checker, (1.0, 1.0), (1e-3, 1e-3 + rounding)) == ""


def test_a_state_that_was_never_large_has_no_such_tolerance() -> None:
    workload = FakeWorkload()
    assert "buffer mean" in check_call(workload, checker_of(workload), (1.0, 1.0), (1e-3, 1e-3 + 2e-6))


@pytest.mark.parametrize("error", [5e-5, 1e-3])
def test_a_biased_state_is_wrong(error: float) -> None:
    workload = FakeWorkload()
    assert "buffer mean" in check_call(workload, checker_of(workload), (1.0, 1.0), (1.0, 1.0 + error))


def test_a_single_sum_near_zero_is_compared_at_the_scale_of_earlier_sums() -> None:
    workload = FakeWorkload()
    checker = checker_of(workload)
    assert check_call(workload, checker, (100.0, 100.0), (1.0, 1.0)) == ""
    assert check_call(workload, checker, (1e-3, 2e-3), (1.0, 1.0)) == ""
    assert "elements differ" in check_call(workload, checker, (1e-3, 0.1), (1.0, 1.0))


def test_the_first_single_sum_is_compared_at_its_own_scale() -> None:
    workload = FakeWorkload()
    assert "elements differ" in check_call(workload, checker_of(workload), (1e-3, 2e-3), (1.0, 1.0))


class Rounded:
    """An oracle with preset outputs."""

    def __init__(self) -> None:
        self.output = torch.zeros(0)

    def run(self, *_: Any) -> Output:
        return Output.of(self.output)

    def states(self) -> dict[str, torch.Tensor]:
        return {}


def test_errors_of_a_call_with_clamped_values_do_not_loosen_later_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all values of the first call are clamped. The second call has no clamped values and no oracle."""
    monkeypatch.setattr("inlinebench.evaluation.checks.ORACLE_SHARE", 0.0)
    oracle = Rounded()
    workload = FakeWorkload(oracle)
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
