"""How calls are checked: with real references and oracles, and outputs that a candidate could have written."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
import torch

from inlinebench.evaluation.correctness.call_check import CallCheck
from inlinebench.evaluation.correctness.checks import Checker, Sensitive, sensitive_notes
from inlinebench.evaluation.correctness.runs import Runs
from inlinebench.evaluation.correctness.sensitivity import clearly_wrong
from inlinebench.messages import ProblemAt
from inlinebench.problem.forward import Output, run
from inlinebench.problem.probe.probe import run_probe
from inlinebench.problem.probe.records import ProbeResult
from inlinebench.problem.variants import Variant
from inlinebench.problem.workload import Workload, snapshot

PROBLEM = """\
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


class Session:
    """Checks one call after the other of a solution that differs from the reference as a test says."""

    def __init__(self, folder: Path, forward: str, inputs: str, init: str = "pass") -> None:
        path = folder / "problem.py"
        path.write_text(PROBLEM.format(init=init, forward=forward, inputs=inputs))
        problem = ProblemAt(path, "full", {})
        probed = run_probe(problem, torch.device("cpu"), False, (), report=lambda trial: None)
        assert isinstance(probed, ProbeResult) and probed.float64
        self.workload = Workload(problem, probed, torch.device("cpu"), folder)
        self.reference = self.workload.reference()
        self.checker = Checker(self.workload, {name: name for name in self.workload.states}, None)

    def check(
        self, x: torch.Tensor, *, factor: float = 1.0, error: float | torch.Tensor = 0.0,
        output: torch.Tensor | None = None, states: dict[str, torch.Tensor] | None = None, last: bool = True,
        thorough: bool = False,
    ) -> str:
        """Checks a call. The candidate's output is the reference's times `factor` plus `error`, or `output`; its states
        are the reference's, but for `states`. Unless it is the `last` of a batch, the states are not written."""
        before = snapshot(self.reference)
        own = Output.of(run(self.reference, [x], 0))
        self.workload.outputs(0)[0].copy_(own.tensors[0] * factor + error if output is None else output)
        after = snapshot(self.reference)
        for name in self.workload.states if last else ():
            self.workload.state(name).copy_((states or {}).get(name, after[name]))
        received = self.workload.receive(0)
        self.workload.clear()  # what is decided must not depend on memory that a candidate can write
        return self.checker.check(CallCheck(
            (x,), (), 0, before, own, after, (), {}, received=received, states_written=last, thorough=thorough))


@pytest.fixture
def torch_seed() -> Iterator[None]:
    torch.manual_seed(1)
    yield


pytestmark = pytest.mark.usefixtures("torch_seed")


def near_zero_sum(count: int = 10_000) -> torch.Tensor:
    """Returns random values whose sum is almost zero."""
    x = torch.randn(count)
    return x - x.double().mean().float()


def test_an_error_that_a_large_call_would_hide_is_wrong_in_a_small_one(tmp_path: Path) -> None:
    session = Session(tmp_path, "return x * 2", "torch.randn(1000)")
    x = torch.randn(1000)
    assert session.check(x * 1000, error=0.01) == ""
    assert "elements differ" in session.check(x, error=0.01)


def test_rounding_of_the_reference_in_one_call_does_not_loosen_another(tmp_path: Path) -> None:
    session = Session(tmp_path, "return x - x.mean(-1, keepdim=True)", "torch.randn(64, 128)")
    far, near = 1e4 + torch.randn(64, 128), torch.randn(64, 128)
    assert session.check(far, output=(far.double() - far.double().mean(-1, keepdim=True)).float()) == ""
    assert "elements differ" in session.check(near, error=2e-3)


@pytest.mark.parametrize("earlier", [False, True])
def test_a_more_exact_solution_passes_in_every_call(tmp_path: Path, earlier: bool) -> None:
    """In bfloat16, the reference's own rounding exceeds the tolerance, whether or not the oracle was asked before."""
    session = Session(tmp_path, "return nn.functional.layer_norm(x, x.shape[-1:])", "torch.randn(64, 128)")
    if earlier:
        assert session.check(torch.randn(64, 128)) == ""
    x = 1000 + 0.1 * torch.randn(64, 128)
    exact = torch.nn.functional.layer_norm(x.double(), (128,)).float()
    assert session.check(x, output=exact) == ""
    assert "elements differ" in session.check(x, output=exact * 2)


def test_a_single_sum_near_zero_is_compared_at_the_size_of_its_summands(tmp_path: Path) -> None:
    session = Session(tmp_path, "return x.sum()", "torch.randn(10_000)")
    for _ in range(3):
        assert session.check(near_zero_sum(), error=1e-3) == ""  # sqrt(10_000) * 1e-5
        assert "its one element differs" in session.check(near_zero_sum(), error=0.1)


def test_a_large_sum_does_not_excuse_a_small_one(tmp_path: Path) -> None:
    session = Session(tmp_path, "return x.sum()", "torch.randn(10_000)")
    assert session.check(torch.rand(10_000)) == ""
    assert "its one element differs" in session.check(near_zero_sum() * 1e-3, error=1e-3)


def test_half_precision_sums_of_few_elements_are_compared_at_the_size_of_their_summands(tmp_path: Path) -> None:
    session = Session(tmp_path, "return x.float().sum().to(x.dtype)", "torch.randn(10_000, dtype=torch.bfloat16)")
    x = near_zero_sum().bfloat16()
    assert session.check(x, error=0.5) == ""
    assert "its one element differs" in session.check(x, error=20.0)


def with_large_rows(x: torch.Tensor, rows: int, value: float = 1e4) -> torch.Tensor:
    """Returns a copy with one large value in each of the first rows."""
    large = x.clone()
    large[:rows, 0] = value
    return large


def test_only_elements_that_large_values_reach_may_be_off_at_their_scale(tmp_path: Path) -> None:
    """Each row of a product is reached by the large value in it. Half of the rows have one."""
    session = Session(tmp_path, "return x @ x.new_ones(32, 32)", "torch.randn(64, 32)")
    x = torch.randn(64, 32)
    large, error = with_large_rows(x, 32), torch.zeros(64, 32)
    error[5, 7] = 0.1
    assert session.check(large, error=error) == ""
    error[5, 7], error[40, 7] = 0.0, 0.1
    assert "first at [40, 7]" in session.check(large, error=error)
    assert session.check(large, error=error * 1e-4) == ""


def test_a_single_row_that_a_large_value_reaches_may_be_off_by_rounding(tmp_path: Path) -> None:
    """The result is zero but for rounding, and the reference's error in one row can happen to be zero, too."""
    session = Session(tmp_path, "return (x - x.mean(1, keepdim=True)).mean(1)", "torch.randn(64, 64)")
    generator = torch.Generator().manual_seed(1)  # each check seeds the global one
    for _ in range(50):
        x = torch.randn(64, 64, generator=generator)
        large = with_large_rows(x, 1, 64.0)
        rest = large - (large[:, :32].sum(1) + large[:, 32:].sum(1))[:, None] / 64
        in_halves = (rest[:, :32].sum(1) + rest[:, 32:].sum(1)) / 64
        assert session.check(large, output=in_halves) == ""
        wrong = in_halves.clone()
        wrong[0] += 1e-4
        assert "elements differ" in session.check(large, output=wrong)


BATCH_NORM = "self.norm = nn.BatchNorm1d(64)"


def test_a_state_near_zero_may_keep_the_rounding_error_from_when_it_was_large(tmp_path: Path) -> None:
    session = Session(tmp_path, "return self.norm(x)", "torch.randn(256, 64)", BATCH_NORM)
    large = torch.full((256, 64), 1e4) + torch.randn(256, 64)
    assert session.check(large) == ""
    error = 2e-3  # of 1e3, far below the tolerance
    mean = session.reference.norm.running_mean
    assert session.check(large, states={"norm.running_mean": mean * 0.9 + large.mean(0) * 0.1 + error}) == ""
    x = -9 * session.reference.norm.running_mean + torch.randn(256, 64)  # the new mean is almost zero
    exact = session.reference.norm.running_mean * 0.9 + x.mean(0) * 0.1
    assert session.check(x, states={"norm.running_mean": exact + 0.9 * error}) == ""
    assert "buffer norm.running_mean" in session.check(torch.randn(256, 64), states={"norm.running_mean": exact + 1.0})


def test_a_state_that_was_never_large_has_no_such_tolerance(tmp_path: Path) -> None:
    session = Session(tmp_path, "return self.norm(x)", "torch.randn(256, 64)", BATCH_NORM)
    x = torch.randn(256, 64)
    mean = 0.1 * x.mean(0) + 2e-3
    assert "buffer norm.running_mean" in session.check(x, states={"norm.running_mean": mean})


@pytest.mark.parametrize("channels", [1, 4, 64])
@pytest.mark.parametrize("calls", [1, 3])
def test_a_biased_variance_is_wrong(tmp_path: Path, channels: int, calls: int) -> None:
    session = Session(
        tmp_path, "return self.norm(x)", f"torch.randn(256, {channels})", f"self.norm = nn.BatchNorm1d({channels})")
    for call in range(1, calls + 1):
        x = torch.randn(256, channels)
        variance = 0.9 * session.reference.norm.running_var + 0.1 * x.var(0, correction=0)
        wrong = session.check(x, states={"norm.running_var": variance} if call == calls else None)
    assert "buffer norm.running_var" in wrong


def one_by_one(x: torch.Tensor) -> torch.Tensor:
    """Returns the sum over rows, each added to the sum of those before it in float32."""
    return torch.from_numpy(numpy.cumsum(x.numpy(), axis=0, dtype=numpy.float32)[-1])


def test_a_mean_of_few_channels_may_have_rounding_errors_of_its_summands(tmp_path: Path) -> None:
    session = Session(tmp_path, "return self.norm(x)", "torch.randn(100_000, 1)", "self.norm = nn.BatchNorm1d(1)")
    for _ in range(5):
        x = near_zero_sum(100_000)[:, None]
        mean = 0.9 * session.reference.norm.running_mean + 0.1 * one_by_one(x) / 100_000
        assert session.check(x, states={"norm.running_mean": mean}) == ""


def test_states_after_a_wrong_call_are_computed_from_what_it_left(tmp_path: Path) -> None:
    session = Session(tmp_path, "return self.norm(x)", "torch.randn(256, 64)", "self.norm = nn.BatchNorm1d(64)")
    x = torch.randn(256, 64)
    left = 0.9 * session.reference.norm.running_var + 0.1 * x.var(0) + 0.05
    assert "buffer norm.running_var" in session.check(x, states={"norm.running_var": left})
    x.normal_()  # the next call gets its inputs in the same memory
    assert session.check(x, states={"norm.running_var": 0.9 * left + 0.1 * x.var(0)}) == ""


def test_the_states_after_a_batch_are_computed_from_those_before_it(tmp_path: Path) -> None:
    session = Session(tmp_path, "return self.norm(x)", "torch.randn(256, 64)", BATCH_NORM)
    large = torch.full((256, 64), 1e4) + torch.randn(256, 64)
    error = 2e-3
    assert session.check(large, states={"norm.running_mean": large.mean(0) * 0.1 + error}) == ""
    mean = session.reference.norm.running_mean.clone()
    first = torch.randn(256, 64)
    assert session.check(first, last=False) == ""
    mean = mean * 0.9 + first.mean(0) * 0.1
    second = -9 * mean + torch.randn(256, 64)
    exact = mean * 0.9 + second.mean(0) * 0.1
    assert session.check(second, states={"norm.running_mean": exact + 0.81 * error}) == ""


def test_small_rows_are_held_to_their_own_size_in_a_thorough_call(tmp_path: Path) -> None:
    """The bound by the output's size covers what the rule sees."""
    session = Session(tmp_path, "return x @ x.new_ones(32, 32).tril()", "torch.randn(64, 32)")
    x, error = torch.randn(64, 32), torch.zeros(64, 32)
    x[5] *= 1e-6
    error[5] = 1e-7
    assert session.check(x, error=error) == ""
    assert "32 of 2048 elements differ" in session.check(x, error=error, thorough=True)
    assert session.check(x, thorough=True) == ""


def test_a_clamped_element_may_be_off_where_rounding_crosses_the_clamp(tmp_path: Path) -> None:
    session = Session(tmp_path, "return (x @ x.new_ones(32, 1)).clamp(min=0)", "torch.randn(64, 32)")
    x, error = torch.randn(64, 32), torch.zeros(64, 1)
    x[7] -= x[7].double().mean().float()
    x[9] = -x[9].abs()
    error[7] = 1e-5
    assert session.check(x, error=error, thorough=True) == ""
    error[7], error[9] = 0.0, 1e-5
    assert "first at [9, 0]" in session.check(x, error=error, thorough=True)


def test_a_reference_that_rejects_perturbed_values_is_compared_by_size(tmp_path: Path) -> None:
    session = Session(tmp_path, "assert bool((x * 256 == (x * 256).round()).all()); return x * 2",
                      "torch.randint(-999, 999, (1000,)) / 256")
    x = torch.randint(-999, 999, (1000,)) / 256
    assert session.check(x, error=1e-5, thorough=True) == ""
    assert "elements differ" in session.check(x, error=1e-2, thorough=True)
    assert any("does not run on perturbed inputs" in note for note in session.checker.summary("", []).notes)


def test_a_result_has_the_accuracy_of_a_thorough_call_and_says_what_is_sensitive(tmp_path: Path) -> None:
    session = Session(tmp_path, "return torch.sin(x * 1e5)", "torch.randn(1000)")
    assert session.check(torch.randn(1000), thorough=True) == ""
    check = session.checker.summary("", [])
    assert check.oracle == "float64" and len(check.accuracy) == 1
    assert check.accuracy[0].solution == check.accuracy[0].reference
    assert sum(check.accuracy[0].solution.ulps) == 1000
    assert any("output is sensitive" in note for note in check.notes)


@pytest.mark.parametrize(("factor", "further"), [(1.0, 0), (1 + 3e-3, 12), (1 + 3e-4, 52)])
def test_runs_end_when_an_element_is_so_wrong_that_few_samples_do_not_explain_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float, further: int
) -> None:
    """The limit is 1.6e-4 of an element: the errors are 0, 19 and 2 times that."""
    made, pair = [], Runs.pair
    monkeypatch.setattr(Runs, "pair", lambda runs, by: made.append(by) or pair(runs, by))
    session, x = Session(tmp_path, "return x * 2", "torch.randn(1000)"), torch.randn(1000)
    found = session.check(x, factor=factor, thorough=True)
    assert ("all 1000 elements differ" in found) == (factor > 1) and len(made) == further


@pytest.mark.parametrize("samples", [12, 18, 24, 38])
def test_a_sample_has_far_too_small_a_variance_with_a_negligible_probability(samples: int) -> None:
    """The series of the chi-squared distribution for an even number of degrees of freedom."""
    half, x = samples // 2, samples / 2 / clearly_wrong(samples) ** 2
    assert math.exp(-x) * sum(x**k / math.factorial(k) for k in range(half, half + 50)) < 1e-15


def test_only_the_most_sensitive_of_many_tensors_are_named() -> None:
    found = {f"gradient of w{k}": Sensitive(0.6 + k, 1e-4) for k in range(5)}
    assert sensitive_notes(found) == [
        "gradient of w4 is sensitive: changing the inputs by 1.0e-04 changes it by 460.0% of its size",
        "gradient of w3 is sensitive: changing the inputs by 1.0e-04 changes it by 360.0% of its size",
        "3 other outputs or gradients are sensitive as well",
    ]
    assert sensitive_notes({}) == []


def test_a_call_passes_by_size_without_the_oracle(tmp_path: Path) -> None:
    session = Session(tmp_path, "return x * 2", "torch.randn(1000)")
    assert session.check(torch.randn(1000), error=1e-5) == ""
    check = session.checker.summary("", [])
    assert (check.oracle, check.accuracy, check.notes) == ("reference", (), ())


def test_what_is_released_is_freed_and_made_again(tmp_path: Path) -> None:
    session = Session(tmp_path, "return x * 2", "torch.randn(1000)")
    assert session.check(torch.randn(1000), thorough=True) == ""
    inputs, _ = session.workload.draw(0, 7, Variant.PLAIN)
    held = [weakref.ref(inputs[0]), weakref.ref(session.checker._sensitivity._copies.oracle)]
    del inputs
    session.checker.release()
    session.workload.release()
    gc.collect()
    assert [each() for each in held] == [None, None]
    assert session.check(torch.randn(1000), thorough=True) == ""
    assert session.checker.summary("", []).oracle == "float64"


@pytest.mark.parametrize("thorough", [False, True])
def test_a_change_of_the_shared_inputs_after_the_call_helps_nobody(tmp_path: Path, thorough: bool) -> None:
    """Zeros for zeros would be right, but the judge's inputs are its own."""
    session = Session(tmp_path, "return x * 2", "torch.randn(1000)")
    inputs, _ = session.workload.draw(0, 7, Variant.PLAIN)
    session.workload.hand_over(0)
    assert torch.equal(session.workload.inputs(0)[0], inputs[0]) and bool(inputs[0].any())
    session.workload.inputs(0)[0].zero_()
    assert bool(inputs[0].any())
    assert "all 1000 elements differ" in session.check(inputs[0], output=torch.zeros(1000), thorough=thorough)
    assert session.check(inputs[0], thorough=thorough) == ""


def test_a_tolerance_of_zero_leaves_the_rounding_of_the_element(tmp_path: Path) -> None:
    session, x = Session(tmp_path, "return x * 3", "torch.randn(1000)"), torch.randn(1000)
    session.checker = Checker(session.workload, {}, 0.0)
    neighbours = torch.nextafter(x * 3, torch.full((1000,), torch.inf))
    assert session.check(x, output=neighbours) == ""
    assert "all 1000 elements differ" in session.check(x, factor=1 + 1e-5)
