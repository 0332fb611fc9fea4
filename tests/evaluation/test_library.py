"""A library solution passes without a kernel of its own. The same file under another name does not."""

from __future__ import annotations

from pathlib import Path

from inlinebench.results.result import Verdict

from ..running import run_eval

PROBLEM = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.diag(x) @ x


def get_inputs():
    return [torch.rand(64)]


def get_init_inputs():
    return []
"""
SOLUTION = """\
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * x
"""


def test_only_the_reserved_name_allows_the_library(cache: Path, tmp_path: Path) -> None:
    for name, text in (("problems/square.py", PROBLEM), ("solutions/square/library.py", SOLUTION),
                       ("solutions/square/other.py", SOLUTION)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    run = run_eval("square/library", "square", "--problems", tmp_path / "problems", "--device", "cpu", "--min-calls",
                   "2", "--cache", cache, out=tmp_path / "out.jsonl")
    assert run.row("square", "library").verdict is Verdict.PASSED, run.row("square", "library").reason
    other = run.row("square", "other")
    assert other.verdict is Verdict.NO_OWN_KERNEL and "--allow-library" in other.reason
    assert run.status == 1 and run.row("square", "library").key != other.key
