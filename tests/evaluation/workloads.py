"""Real workloads on the CPU for tests whose functions play the solution."""

from __future__ import annotations

from pathlib import Path

import torch

from inlinebench.problem.probe.probe import run_probe
from inlinebench.problem.probe.records import ProbeResult
from inlinebench.problem.problem_file import ProblemAt
from inlinebench.problem.workload import Workload

CPU = torch.device("cpu")
PROBLEM = """\
import os

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x, y):
        {forward}


def get_inputs():
    return {inputs}


def get_init_inputs():
    return []
"""


def workload_of(folder: Path, forward: str, inputs: str = "[torch.rand(6, 8), torch.rand(8)]",
                made: str = "pass") -> Workload:
    """Returns the workload of a problem with this expression of `x` and `y`, these inputs, and this line in its
    constructor."""
    path = folder / "problem.py"
    path.write_text(PROBLEM.format(forward=forward, inputs=inputs, made=made))
    problem = ProblemAt(path, "full", {})
    probed = run_probe(problem, CPU, False, (), report=lambda trial: None)
    assert isinstance(probed, ProbeResult)
    return Workload(problem, probed, CPU, folder)
