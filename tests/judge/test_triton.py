"""A solution is skipped without Triton if it calls a Triton function, or has no other kernels, and only then."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from inlinebench.results.result import Verdict
from inlinebench.wire import lacking_triton
from tests.running import TESTS, run_eval

NEEDS = ["import triton\n", "import torch, triton\n", "import triton.language as tl\n", "from triton import jit\n",
         "from triton.language import load\n"]
MAY_NOT_NEED = [
    "try:\n    import triton\nexcept ImportError:\n    triton = None\n", "if False:\n    import triton\n",
    "def f():\n    import triton\n", "from .triton import jit\n", "import triton_helpers\n", "# import triton\n",
    'raise ImportError("No module named \'triton\'")\n', "import triton as\n", "import torch\n",
]


@pytest.fixture
def solution(tmp_path: Path) -> Path:
    return tmp_path / "solution.py"


@pytest.mark.parametrize("text", NEEDS)
def test_an_import_by_the_module_needs_triton(text: str, solution: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solution.write_text(f'"""A kernel."""\n{text}')
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert lacking_triton.lacks_triton(solution)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert not lacking_triton.lacks_triton(solution)


@pytest.mark.parametrize("text", MAY_NOT_NEED)
def test_other_code_may_run_without_triton(text: str, solution: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solution.write_text(text)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not lacking_triton.lacks_triton(solution)


@pytest.mark.parametrize(("text", "needs"), [
    ("import triton\n", True), ("import triton\nfrom torch.utils.cpp_extension import load_inline\n", False)])
def test_only_a_file_without_cuda_sources_needs_triton_before_it_runs(
    text: str, needs: bool, solution: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solution.write_text(text)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert lacking_triton.lacks_triton(solution) and lacking_triton.lacks_triton(solution, without_cuda=True) is needs


BOTH = """
import torch
import triton
import triton.language as tl
from torch.utils.cpp_extension import load_inline
from triton.language.extra import libdevice

@triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_warps=4)], key=["n"])
@triton.jit
def kernel(x, n, BLOCK: tl.constexpr, dtype=tl.float32):
    tl.store(x, libdevice.tanh(tl.load(x)))

@triton.jit
def another(x):
    pass

class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        assert (triton.cdiv(10, 4), triton.next_power_of_2(5), triton.next_power_of_2(8)) == (3, 8, 8)
        CALLED
        return 2 * x + y
"""
CALLS = ["kernel[(1,)](x, 3, BLOCK=4)", "another[lambda meta: (1,)](x)", "another.run(x)",
         "tl.sum(x)[0]", "triton.jit(lambda x: x)(x)"]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is not None, reason="Triton is installed")
def test_a_run_skips_what_calls_triton_and_nothing_that_claims_to(tmp_path: Path) -> None:
    body = ("import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, y):\n        return 2 * x + y\n")
    claim = f"raise RuntimeError({lacking_triton.LACKS_TRITON!r})\n"
    texts = {"needs": NEEDS[0] + body, "guarded": MAY_NOT_NEED[0] + body, "claims": claim + body,
             "both": BOTH.replace("CALLED", ""), "wrong": BOTH.replace("CALLED", "y = 3 * y"),
             **{f"calls_{number}": BOTH.replace("CALLED", call) for number, call in enumerate(CALLS)}}
    (tmp_path / "axpy").mkdir()
    for name, text in texts.items():
        (tmp_path / "axpy" / f"{name}.py").write_text(text)
    run = run_eval("--problems", TESTS / "problems", "--solutions", tmp_path, "--device", "cpu", "--check",
                   "--allow-library", "--min-calls", "2", out=tmp_path / "out.jsonl")
    rows = {name: run.row("axpy", name) for name in texts}
    for name in ("needs", *(f"calls_{number}" for number in range(len(CALLS)))):
        assert (rows[name].verdict, rows[name].reason) == (Verdict.SKIPPED, lacking_triton.LACKS_TRITON), name
    for name in ("guarded", "both"):
        assert rows[name].verdict is Verdict.PASSED, rows[name].reason
    assert rows["wrong"].verdict is Verdict.WRONG and rows["claims"].verdict is Verdict.INVALID
