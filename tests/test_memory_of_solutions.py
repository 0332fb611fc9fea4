"""The memory of solutions that keep, use or hide some, in real evaluations on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.evaluation.memory import LEAST_OUTSIDE, MOST_HIDDEN
from inlinebench.results.memory import MIB, Memory
from inlinebench.results.result import Verdict

from .running import Run, run_eval

pytestmark = pytest.mark.gpu

TENSOR = 16 * MIB
"""The input, the output and the parameter have this size each."""
PROBLEM = '''
"""Twice the product with a vector of weights. The doubled input is a temporary tensor of 16 MiB."""
import torch
from torch import nn

N = 1 << 22


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(N))

    def forward(self, x):
        return (2 * x) * self.weight


def get_inputs():
    return [torch.rand(N)]


def get_init_inputs():
    return []
'''
SOLUTION = '''
import ctypes

import torch
from torch import nn


def scratch(mib):
    return torch.empty(mib << 20, dtype=torch.uint8, device="cuda")


def raw(mib):
    """Memory of the driver's, which PyTorch's allocator does not know."""
    address = ctypes.c_void_p()
    assert ctypes.CDLL("libcuda.so.1").cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib << 20)) == 0
    return address


def claim(peak, reserved):
    """Falsifies what this process says about PyTorch's allocator."""
    from inlinebench.devices.cuda import allocator

    counters = {{"current": 0, "peak": peak << 20, "allocated": 0, "freed": 0}}
    allocator._statistics = lambda _: {{
        "requested_bytes": {{"all": counters}}, "reserved_bytes": {{"all": {{**counters, "current": reserved << 20}}}}}}


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand({n}))
        self.calls, self.kept = 0, None
        {constructor}

    def forward(self, x):
        self.calls += 1
        {forward}
        return torch.mul(x, self.weight).mul_(2)
'''
NOTHING = "pass"
SOLUTIONS = {
    "none": (NOTHING, NOTHING),
    "temporary": (NOTHING, "held = scratch(100)"),
    "before_the_output": (NOTHING, "scratch(100)"),
    "kept": (NOTHING, "self.kept = scratch(100) if self.calls == 1 else self.kept"),
    "only_in_the_first_call": (NOTHING, "held = scratch(500) if self.calls == 1 else None"),
    "raw": ("raw(256)", NOTHING),
    "raw_in_the_first_call": (NOTHING, "raw(256) if self.calls == 1 else None"),
    "raw_and_temporary": ("raw(256)", "held = scratch(100)"),
    "claims_nothing": ("raw(512); claim(0, 0)", NOTHING),
    "claims_a_cache": ("raw(512); claim(0, 600)", NOTHING),
    "claims_too_much": ("raw(512); claim(0, 4096)", NOTHING),
}


@pytest.fixture(scope="module")
def run(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("memory")
    (folder / "problems").mkdir()
    (folder / "problems" / "weighted.py").write_text(PROBLEM)
    (folder / "solutions" / "weighted").mkdir(parents=True)
    for name, (constructor, forward) in SOLUTIONS.items():
        text = SOLUTION.format(n=1 << 22, constructor=constructor, forward=forward)
        (folder / "solutions" / "weighted" / f"{name}.py").write_text(text)
    return run_eval("weighted", "weighted/@reference", "--problems", folder / "problems", "--solutions",
                    folder / "solutions", "--device", "cuda", "--allow-library", "--cache", cache,
                    out=folder / "out.jsonl")


def memory(run: Run, name: str) -> Memory:
    row = run.row("weighted", name)
    assert row.verdict is Verdict.PASSED, row.reason
    assert row.memory is not None, "another process has freed memory meanwhile"
    return row.memory


@pytest.mark.parametrize(("name", "mib"), [
    ("none", 0), ("temporary", 100), ("kept", 100), ("only_in_the_first_call", 0), ("@reference", 16),
    ("before_the_output", 100 - 16),  # the output takes the same place later
])
def test_the_memory_of_pytorch_s_allocator_counts_exactly(run: Run, name: str, mib: int) -> None:
    assert memory(run, name) == Memory(mib * MIB, TENSOR, 0)


@pytest.mark.parametrize(("name", "inside", "outside"), [
    ("raw", 0, 256), ("raw_in_the_first_call", 0, 256), ("raw_and_temporary", 100, 256),
])
def test_raw_memory_of_the_driver_counts(run: Run, name: str, inside: int, outside: int) -> None:
    found = memory(run, name)
    assert found.solution_bytes - found.outside_allocator_bytes == inside * MIB
    assert outside * MIB <= found.outside_allocator_bytes <= outside * MIB + LEAST_OUTSIDE


@pytest.mark.parametrize("name", ["claims_nothing", "claims_a_cache"])
def test_a_false_claim_does_not_hide_memory(run: Run, name: str) -> None:
    assert memory(run, name).solution_bytes >= 512 * MIB - MOST_HIDDEN


def test_a_claim_beyond_what_the_driver_shows_gives_no_memory(run: Run) -> None:
    row = run.row("weighted", "claims_too_much")
    assert row.verdict is Verdict.PASSED and row.memory is None


def test_the_first_call_and_the_load_are_timed(run: Run) -> None:
    timing = run.row("weighted", "none").timing
    assert timing is not None and timing.first_call_ms is not None and timing.load_ms is not None
    assert timing.first_call_ms > timing.solution_ms.median and timing.load_ms > 0


def test_the_memory_is_not_measured_without_times(cache: Path) -> None:
    checked = run_eval("matmul_diag/library", "--check", "--device", "cuda", "--cache", cache)
    assert checked.status == 0 and "memory MiB" not in checked.out
