"""A solution is skipped without Triton if importing it needs Triton, and only then."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from inlinebench.judge import triton
from inlinebench.records.result import Verdict
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
    assert triton.lacks_triton(solution)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert not triton.lacks_triton(solution)


@pytest.mark.parametrize("text", MAY_NOT_NEED)
def test_other_code_may_run_without_triton(text: str, solution: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solution.write_text(text)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not triton.lacks_triton(solution)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is not None, reason="Triton is installed")
def test_a_run_skips_what_needs_triton_and_nothing_that_claims_to(tmp_path: Path) -> None:
    body = ("import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, y):\n        return 2 * x + y\n")
    texts = {"needs": NEEDS[0], "guarded": MAY_NOT_NEED[0], "claims": MAY_NOT_NEED[6]}
    (tmp_path / "axpy").mkdir()
    for name, text in texts.items():
        (tmp_path / "axpy" / f"{name}.py").write_text(text + body)
    run = run_eval("--problems", TESTS / "problems", "--solutions", tmp_path, "--device", "cpu", "--check",
                   "--allow-library", out=tmp_path / "out.jsonl")
    rows = {name: run.row("axpy", name) for name in texts}
    assert rows["needs"].verdict is Verdict.SKIPPED and rows["needs"].reason == triton.LACKS_TRITON
    assert rows["guarded"].verdict is Verdict.PASSED, rows["guarded"].reason
    assert rows["claims"].verdict is Verdict.INVALID
