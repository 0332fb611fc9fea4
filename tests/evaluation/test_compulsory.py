from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.evaluation.attempt import Attempt
from inlinebench.evaluation.failures import Failed
from inlinebench.evaluation.integrity.checks import IntegrityChecks
from inlinebench.evaluation.integrity.compulsory import SAMPLES, compulsory_bytes, lower_bound
from inlinebench.messages import ProblemAt
from inlinebench.problem.probe.probe import run_probe
from inlinebench.problem.probe.records import ProbeResult
from inlinebench.problem.secret_random import SecretRandom
from inlinebench.problem.workload import Workload
from inlinebench.records.result import Verdict
from inlinebench.timing.lower_bounds import TRANSFER_MARGIN
from inlinebench.timing.peaks import Peaks

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, {names}):
        return {forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
BOUND = lower_bound(SAMPLES, SAMPLES)


@pytest.fixture
def workload(tmp_path: Path, request: pytest.FixtureRequest) -> Workload:
    names, forward, inputs = request.param
    path = tmp_path / "problem.py"
    path.write_text(PROBLEM.format(names=names, forward=forward, inputs=inputs))
    problem = ProblemAt(path, "full", {})
    probed = run_probe(problem, torch.device("cpu"), False, (), report=lambda trial: None)
    assert isinstance(probed, ProbeResult)
    return Workload(problem, probed, torch.device("cpu"), tmp_path)


def share(workload: Workload) -> float:
    """Returns the compulsory share of the bytes of all inputs."""
    size = sum(spec.bytes for spec in workload.sets[0].inputs)
    return compulsory_bytes(workload, SecretRandom(7, "test"), None) / size


ALL = [
    ("x", "torch.relu(x)", "torch.randn(64, 256)"),
    ("x", "x.square().mean()", "torch.randn(64, 256)"),
    ("x, y", "x @ y", "torch.rand(64, 96), torch.rand(96, 32)"),
    ("x, target", "nn.functional.cross_entropy(x, target)", "torch.randn(256, 32), torch.randint(32, (256,))"),
    ("x", "x.t() * 2", "torch.randn(64, 96).t()"),
    ("x", "x.softmax(-1)", "torch.randn(64, 96, dtype=torch.bfloat16)"),
]
PARTLY = [
    ("table, index", "table[index]", "torch.randn(4096, 32), torch.randint(4096, (40,))", 0.01),
    ("x", "x[:, :64].contiguous()", "torch.randn(64, 256)", 0.25),
    ("x, mask", "x + mask", "torch.randn(64, 96), torch.ones(64, 96)", 0.5),
    ("x, y", "x + y", "torch.randn(64, 96), torch.randn(64, 96).tril()", 0.75),
    ("x", "x @ x", "(lambda m: m + m.t())(torch.rand(64, 64))", 0.5),
    ("x", "torch.zeros_like(x)", "torch.randn(64, 96)", 0.0),
    ("x", "x + 1", "torch.randint(9, (64, 96))", 0.0),
    ("x, far", "torch.softmax(torch.stack([x, far - 90]), 0) @ torch.ones(8)", "torch.rand(512, 8), torch.rand(512, 8)",
     0.5),
]


@pytest.mark.parametrize("workload", ALL, ids=[forward for _, forward, _ in ALL], indirect=True)
def test_inputs_that_are_needed_whole_are_compulsory(workload: Workload) -> None:
    integers = sum(spec.bytes for spec in workload.sets[0].inputs if not spec.torch_dtype.is_floating_point)
    size = sum(spec.bytes for spec in workload.sets[0].inputs)
    assert share(workload) == pytest.approx(BOUND * (size - integers) / size, abs=1e-3)


@pytest.mark.parametrize(
    ("workload", "needed"), [((*case, ), needed) for *case, needed in PARTLY], ids=[case[1] for case in PARTLY],
    indirect=["workload"])
def test_bytes_that_a_call_need_not_read_are_not_compulsory(workload: Workload, needed: float) -> None:
    assert share(workload) <= needed


def test_the_inputs_are_drawn_in_secret_and_left_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "problem.py"
    path.write_text(PROBLEM.format(names="x", forward="x * 2", inputs="torch.randn(64)"))
    problem = ProblemAt(path, "full", {})
    probed = run_probe(problem, torch.device("cpu"), False, (), report=lambda trial: None)
    assert isinstance(probed, ProbeResult)
    workload = Workload(problem, probed, torch.device("cpu"), tmp_path)
    workload.clear()
    before = workload.arena.bytes.clone()
    compulsory_bytes(workload, SecretRandom(7, "test"), None)
    assert torch.equal(workload.arena.bytes, before)


def test_a_reference_that_rejects_mixed_inputs_needs_none_of_them(tmp_path: Path) -> None:
    path = tmp_path / "problem.py"
    path.write_text(PROBLEM.format(
        names="x", forward="torch.linalg.cholesky(x)",
        inputs="torch.eye(32) * 40 + (lambda m: m + m.t())(torch.rand(32, 32)) + torch.rand(1) * 1e6 * torch.eye(32)"))
    problem = ProblemAt(path, "full", {})
    probed = run_probe(problem, torch.device("cpu"), False, (), report=lambda trial: None)
    assert isinstance(probed, ProbeResult)
    assert share(Workload(problem, probed, torch.device("cpu"), tmp_path)) <= 0.5


@given(st.integers(1, 200).flatmap(lambda tried: st.tuples(st.integers(0, tried), st.just(tried))))
def test_the_bound_is_below_the_share_and_grows_with_it(pair: tuple[int, int]) -> None:
    found, tried = pair
    bound = lower_bound(found, tried)
    assert 0.0 <= bound < found / tried or found == 0 == bound
    assert found == tried or lower_bound(found + 1, tried) > bound


def test_the_bound_holds_with_the_given_error() -> None:
    bound = lower_bound(100, 128, error=0.01)
    at_least = sum(math.comb(128, k) * bound**k * (1 - bound) ** (128 - k) for k in range(100, 129))
    assert at_least == pytest.approx(0.01, rel=0.01)


SIZE, L2 = 1_000_000_000, 50_000_000
"""Bytes of the inputs, and of L2."""


def check_reads(monkeypatch: pytest.MonkeyPatch, reported_ms: float, compulsory: int) -> bool:
    """Checks a time of a call that reads `SIZE` bytes. Returns whether the oracle was asked."""
    asked: list[bool] = []

    def fake_bytes(*_: object) -> int:
        asked.append(True)
        return compulsory

    module = "inlinebench.evaluation.integrity.checks"
    monkeypatch.setattr(f"{module}.compulsory_bytes", fake_bytes)
    monkeypatch.setattr(f"{module}.torch.cuda.get_device_properties", lambda _: SimpleNamespace(L2_cache_size=L2))
    workload: Any = SimpleNamespace(
        device=SimpleNamespace(type="cuda"), sets=[SimpleNamespace(inputs=[SimpleNamespace(bytes=SIZE)])],
        probed=SimpleNamespace(written_bytes=0))
    tools: Any = SimpleNamespace(peaks=Peaks(2.8e12, 3e12, {}), settings=SimpleNamespace(tolerance=None),
                                 progress=lambda text: None)
    unused: Any = None
    IntegrityChecks(
        workload=workload, tools=tools, attempt=Attempt(), timings=unused, requests=unused, reference=unused,
        secret_random=unused, batch=unused, trace=unused, allow_library=False,
    )._check_reads(reported_ms)
    return bool(asked)


def test_a_time_that_suffices_for_all_inputs_passes_without_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not check_reads(monkeypatch, 1.001 * TRANSFER_MARGIN * (SIZE - L2) / 3e12 * 1e3, SIZE)


def test_a_time_that_is_too_short_for_the_compulsory_bytes_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failed, match="a call must read 950 MB of its inputs") as failure:
        check_reads(monkeypatch, 0.05, 950_000_000)
    assert failure.value.verdict is Verdict.REJECTED


def test_a_short_time_passes_if_few_bytes_are_compulsory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_reads(monkeypatch, 0.05, 60_000_000)
