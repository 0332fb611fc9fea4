"""Runs on a machine with two GPUs: each judge and its candidates have one of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inlinebench.results.result import Verdict

from .running import run_eval

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.is_available() and torch.cuda.device_count() < 2, reason="needs two GPUs"),
]

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.rand(1024)]

def get_init_inputs():
    return []
"""
SOLUTION = """
import os, re
from pathlib import Path
import torch

def opened():
    names = []
    for number in range(16):  # a candidate cannot list /dev
        try:
            os.close(os.open(f"/dev/nvidia{number}", os.O_RDWR))
            names.append(f"nvidia{number}")
        except OSError:
            pass
    return names

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        held = {path.resolve().name for path in Path("/proc/self/fd").iterdir()}
        facts = {"opened": opened(), "held": sorted(name for name in held if re.fullmatch("nvidia[0-9]+", name)),
                 "count": torch.cuda.device_count(), "utilization": torch.cuda.utilization()}
        print(facts)
        assert len(facts["opened"]) == facts["count"] == 1 and facts["held"] == facts["opened"], facts

    def forward(self, x):
        return x + 1
"""


def test_a_candidate_can_open_no_other_gpu(cache: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "solutions" / name).mkdir(parents=True)
        (tmp_path / "solutions" / name / "tries.py").write_text(SOLUTION)
        (tmp_path / f"{name}.py").write_text(PROBLEM)
    run = run_eval("one", "two", "--problems", tmp_path, "--solutions", tmp_path / "solutions", "--allow-library",
                   "--devices", "all", "--cache", cache, out=tmp_path / "out.jsonl")
    assert [(row.verdict, row.reason) for row in run.results] == [(Verdict.PASSED, "")] * 2
    assert {row.device for row in run.results} == {"cuda:0", "cuda:1"}
