"""Tests that a problem runs although the probe has no memory for one of its trials."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import torch

from inlinebench.messages import ProblemAt
from inlinebench.problem.perturbation import Perturbation
from inlinebench.problem.probe.probe import run_probe
from inlinebench.problem.probe.records import ProbeResult

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return 2 * x


def get_inputs():
    return [torch.rand(8)]


def get_init_inputs():
    return []
"""


def test_a_problem_runs_if_perturbed_inputs_need_more_memory_than_there_is(tmp_path: Path) -> None:
    path = tmp_path / "doubled.py"
    path.write_text(PROBLEM)
    with patch.object(Perturbation, "of", side_effect=torch.OutOfMemoryError):
        probed = run_probe(ProblemAt(path, "full", {}), torch.device("cpu"), True, (), report=lambda _: None)
    assert isinstance(probed, ProbeResult), probed
    assert probed.outputs[0].shape == (8,)
