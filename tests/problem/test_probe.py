"""References that kill the probe process. The tests are whole runs, because processes die."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.results.result import Verdict

from ..running import Run, run_eval

FORWARDS = {
    "a_harmless": "return x * self.weight",
    "b_dies_in_float64": "if x.dtype == torch.float64:\n    os._exit(3)\nreturn x * self.weight",
    "c_dies_of_negatives": "if (x < 0).all():\n    os._exit(3)\nreturn x * self.weight",
    "d_dies": "os._exit(3)",
    "e_fails_on_the_device": "raise RuntimeError('CUDA error: device-side assert triggered')",
    "f_harmless": "return x + self.weight",
    "g_dies_later": "dies_later()\nreturn x - self.weight",
    "h_harmless": "return x + 2 * self.weight",
    "i_dies_when_perturbed": "if (x * 256 % 1 != 0).any():\n    os._exit(3)\nreturn x * self.weight",
}
INPUTS = {"i_dies_when_perturbed": "torch.randint(1, 999, (8,)) / 256"}
PROBLEM = """\
import os
import pathlib
import threading

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8))

    def forward(self, x):
{forward}


def dies_later():
    mark = pathlib.Path({mark!r})
    if not mark.exists():  # only in the probe, which calls it first
        mark.touch()
        threading.Timer(0.2, os._exit, (3,)).start()


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def run(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of all references in one judge, in the order of their names."""
    folder = tmp_path_factory.mktemp("probe")
    for name, forward in FORWARDS.items():
        lines = "".join(f"        {line}\n" for line in forward.splitlines())
        (folder / f"{name}.py").write_text(PROBLEM.format(forward=lines.rstrip(), mark=str(folder / "seen"),
                                                           inputs=INPUTS.get(name, "torch.rand(8) + 0.5")))
    return run_eval("*/@reference", "--problems", folder, "--device", "cpu", "--check", "--allow-library",
                    "--cache", cache, out=folder / "out.jsonl")


@pytest.mark.parametrize(("name", "oracle"), [
    ("a_harmless", "float64"), ("b_dies_in_float64", "reference"), ("c_dies_of_negatives", "float64"),
    ("f_harmless", "float64"), ("i_dies_when_perturbed", "reference"), ("g_dies_later", "float64"),
    ("h_harmless", "float64"),
])
def test_a_trial_that_kills_the_probe_is_left_out(run: Run, name: str, oracle: str) -> None:
    row = run.row(name, "@reference")
    assert row.verdict is Verdict.PASSED, row.reason
    assert row.check is not None and row.check.oracle == oracle


@pytest.mark.parametrize(("name", "reason"), [
    ("d_dies", "the reference's forward ends the process"), ("e_fails_on_the_device", "device-side assert triggered"),
])
def test_a_reference_that_crashes_on_its_own_inputs_is_a_problem_error(run: Run, name: str, reason: str) -> None:
    row = run.row(name, "@reference")
    assert row.verdict is Verdict.PROBLEM_ERROR
    assert reason in row.reason
