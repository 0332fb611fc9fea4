"""The time of a solution's first call, and the time to load it, apart from the other calls: real evaluations."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.results.times import Timing

from .running import TESTS, Run, run_eval

pytestmark = pytest.mark.slow

SLEPT_MS = 1500.0
SOLUTION = '''
import time

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = True
        {constructor}

    def forward(self, x, y):
        if self.first:
            {first_call}
        self.first = False
        return 2 * x + y
'''
BUILD = ('load_inline("late", cpp_sources="#include <ATen/core/Tensor.h>\\nat::Tensor same(at::Tensor x) '
         '{ return x; }", functions=["same"])')
SOLUTIONS = {
    "honest": ("pass", "pass"),
    "slow_constructor": (f"time.sleep({SLEPT_MS / 1e3})", "pass"),
    "slow_first_call": ("pass", f"time.sleep({SLEPT_MS / 1e3})"),
    "builds_in_the_first_call": ("pass", BUILD),
}


@pytest.fixture(scope="module")
def run(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("first_call")
    (folder / "solutions" / "axpy").mkdir(parents=True)
    for name, (constructor, first_call) in SOLUTIONS.items():
        text = SOLUTION.format(constructor=constructor, first_call=first_call)
        (folder / "solutions" / "axpy" / f"{name}.py").write_text(text)
    return run_eval("axpy", "--problems", TESTS / "problems", "--solutions", folder / "solutions", "--device", "cpu",
                    "--min-calls", "5", "--allow-library", "--cache", cache, out=folder / "out.jsonl")


def timing(run: Run, name: str) -> Timing:
    row = run.row("axpy", name)
    assert row.timing is not None, row.reason
    return row.timing


def test_a_slow_first_call_is_told_apart_from_the_others(run: Run) -> None:
    slow = timing(run, "slow_first_call")
    assert slow.first_call_ms is not None and SLEPT_MS <= slow.first_call_ms < 2 * SLEPT_MS
    assert slow.load_ms is not None and slow.load_ms < SLEPT_MS
    assert slow.solution_ms.high < SLEPT_MS / 10


def test_a_slow_constructor_is_part_of_loading(run: Run) -> None:
    slow = timing(run, "slow_constructor")
    assert slow.load_ms is not None and SLEPT_MS <= slow.load_ms < 2 * SLEPT_MS
    assert slow.first_call_ms is not None and slow.first_call_ms < SLEPT_MS


def test_an_honest_solution_has_a_short_first_call(run: Run) -> None:
    honest = timing(run, "honest")
    assert honest.first_call_ms is not None and 0 < honest.first_call_ms < SLEPT_MS
    assert honest.load_ms is not None and 0 < honest.load_ms < SLEPT_MS


def test_builds_are_no_part_of_the_first_call(run: Run) -> None:
    row = run.row("axpy", "builds_in_the_first_call")
    first_call_ms = timing(run, "builds_in_the_first_call").first_call_ms
    assert row.build is not None and row.build.seconds > 1 and not row.build.cached
    assert first_call_ms is not None and first_call_ms < 1e3 * row.build.seconds / 2


def test_a_cpu_has_no_memory_column(run: Run) -> None:
    assert all(row.memory is None for row in run.results) and "memory MiB" not in run.out
