"""A failure is skipped if the solution's text shows that it cannot run here, whatever its process says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from inlinebench.evaluation.failures import Failed
from inlinebench.judge.skips import NO_GRAPHS, skipped
from inlinebench.results.result import Verdict
from inlinebench.wire.lacking_triton import LACKS_TRITON

from ..running import TESTS, run_eval

GRAPH = f"RuntimeError: inlinebench: {NO_GRAPHS} (s.py, line 3)"
GRAPHS = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            z = 2 * x + y
        graph.replay()
        return z
"""
KEYWORD = """
import torch
from torch.utils.cpp_extension import load_inline

try:
    built = load_inline("built", "", "__global__ void k() {}", optimize=True)
except TypeError:
    built = None

class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        return built.axpy(x, y)
"""


@pytest.mark.parametrize(("text", "reason", "is_skipped"), [
    ("g = torch.cuda.CUDAGraph()", GRAPH, True), ("with torch.cuda.graph(g): pass", GRAPH, True),
    ("make_graphed_callables(f, x)", GRAPH, True), (f"raise RuntimeError({NO_GRAPHS!r})", GRAPH, False),
    ("g = torch.cuda.CUDAGraph()", "RuntimeError: other", False),
    ("import triton", f"RuntimeError: {LACKS_TRITON}", True), ("raise E", f"RuntimeError: {LACKS_TRITON}", False),
])
def test_only_a_text_that_needs_what_is_missing_is_skipped(
    text: str, reason: str, is_skipped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    path = tmp_path / "s.py"
    path.write_text(text)
    failed = Failed(Verdict.CRASHED, reason)
    found = skipped(failed, path)
    assert found is not None
    assert (found.verdict is Verdict.SKIPPED) is is_skipped and (is_skipped or found is failed)
    assert skipped(None, path) is None and skipped(failed, None) is failed


@pytest.mark.slow
def test_a_run_skips_a_cuda_graph_and_names_a_keyword_that_load_inline_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "axpy").mkdir()
    for name, text in {"graphs": GRAPHS, "keyword": KEYWORD}.items():
        (tmp_path / "axpy" / f"{name}.py").write_text(text)
    run = run_eval("--problems", TESTS / "problems", "--solutions", tmp_path, "--device", "cpu", "--check",
                   "--allow-library", "--min-calls", "2", out=tmp_path / "out.jsonl")
    graphs, keyword = run.row("axpy", "graphs"), run.row("axpy", "keyword")
    assert graphs.verdict is Verdict.SKIPPED and "CUDA graphs" in graphs.reason
    assert keyword.verdict is Verdict.CRASHED
    assert keyword.reason.startswith("load_inline() got an unexpected keyword argument 'optimize'; AttributeError: ")
