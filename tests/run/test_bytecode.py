"""A run in an installation that keeps no module compiled: they are kept in the cache, and what is foreign isn't."""

from __future__ import annotations

from pathlib import Path

import torch

from harness.build.cache.contents import BYTECODE
from tests.running import run_eval

PROBLEM = """
import neighbour
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        return x + neighbour.ONE
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""
SOLUTION = """
import sys
import neighbour
from torch import nn
assert sys.pycache_prefix is None
class ModelNew(nn.Module):
    def forward(self, x):
        return x + neighbour.ONE
"""


def test_modules_are_kept_and_nothing_foreign_is(tmp_path: Path) -> None:
    anew = tmp_path / "installation" / "torch"
    anew.mkdir(parents=True)
    for path in Path(torch.__file__).parent.iterdir():
        if path.name != "__pycache__":
            (anew / path.name).symlink_to(path)
    problems, solutions = tmp_path / "problems", tmp_path / "solutions"
    (solutions / "plus_one").mkdir(parents=True)
    problems.mkdir()
    (problems / "plus_one.py").write_text(PROBLEM)
    (solutions / "plus_one" / "imports.py").write_text(SOLUTION)
    library = tmp_path / "library"
    library.mkdir()
    (library / "neighbour.py").write_text("ONE = 1\n")
    run = run_eval(
        "--problems", problems, "--solutions", solutions, "--device", "cpu", "--check", "--allow-library", "--cache",
        tmp_path / "cache", environment={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": f"{anew.parent}:{library}"})
    assert run.status == 0, run.out + run.err
    kept = {path.name.split(".")[0]: path.parent for path in (tmp_path / "cache" / BYTECODE).rglob("*.pyc")}
    assert {"functional", "forkserver", "rehearsal"} <= kept.keys()
    assert not {"neighbour", "imports", "plus_one"} & kept.keys()
    assert any(str(anew).lstrip("/") in str(folder) for folder in kept.values())
