"""A kernel that does not end is named with its line; one that takes long and ends passes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inlinebench.process.running_kernel import running_kernel
from inlinebench.results.result import Verdict

from ..running import run_eval

PROBLEM = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.rand(64)]


def get_init_inputs():
    return []
"""
SOLUTION = '''\
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
__global__ void twice(const float* x, float* y, volatile int* flag, int n) {{
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] * 2;
  {body}
}}
torch::Tensor run(torch::Tensor x) {{
  auto y = torch::empty_like(x), flag = torch::zeros({{1}}, x.options().dtype(torch::kInt));
  twice<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), flag.data_ptr<int>(), x.numel());
  return y;
}}
"""
built = load_inline("{name}", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=SOURCE, functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return built.run(x)
'''
ENDLESS = {
    "flag": "while (true) {\n    if (flag[0]) break;\n  }",
    "step": "for (int i = threadIdx.x; i < n;\n       i += n / 1000) y[i] = x[i] * 2;",
    "atomic": "int* lock = const_cast<int*>(flag);\n  do {} while (atomicCAS(lock, 1, 0) == 0);",
}
LINES = {"flag": (4, 5), "step": (4, 5), "atomic": (5,)}
"""The lines of each loop. The first line of a source is empty, and the kernel begins in the second."""
LONG = "for (int i = 0; i < 20000; ++i) if (flag[0]) break;"


@pytest.mark.slow
def test_a_kernel_that_does_not_end_is_named_with_its_line(tmp_path: Path, cache: Path) -> None:
    problem, solutions = tmp_path / "problems" / "twice.py", tmp_path / "solutions" / "twice"
    problem.parent.mkdir()
    problem.write_text(PROBLEM)
    solutions.mkdir(parents=True)
    for name, body in {**ENDLESS, "long": LONG}.items():
        (solutions / f"{name}.py").write_text(SOLUTION.format(body=body, name=name))
    run = run_eval("--check", "--device", "cpu", "--timeout", "10", "--min-calls", "2", "--problems", problem.parent,
                   "--solutions", solutions.parent, "--cache", cache, out=tmp_path / "out.jsonl")
    assert run.row("twice", "long").verdict is Verdict.PASSED, run.row("twice", "long").reason
    for name, lines in LINES.items():
        row = run.row("twice", name)
        if row.verdict is Verdict.SKIPPED:  # the translation has seen that it waits for another block
            assert "a loop in `twice` that waits for another block" in row.reason
            continue
        assert row.verdict is Verdict.TIMED_OUT, row.reason
        assert "no answer within 10 s" in row.reason
        assert "; still running in kernel twice, block (0, 0, 0)" in row.reason
        assert row.reason.endswith(tuple(f" at cuda_sources:{line}" for line in lines)), row.reason


def test_a_process_that_does_not_answer_is_not_disturbed() -> None:
    code = "import sys; print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert not running_kernel(os.getpid(), lambda: "")
        assert process.poll() is None
        process.communicate()
