"""`inlinebench init`: creates a problem and a solution that passes, to start from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from inlinebench.cli.exits import show
from inlinebench.cli.parsing.parser import Parser
from inlinebench.errors import UsageError

PROBLEM = '''"""Doubles each element, then adds one."""

import torch
from torch import nn

N = 1 << 24

SHAPES = {"small": {"N": 1024}, "odd": {"N": 1009}}


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x + 1


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(N)]


def get_init_inputs() -> list[object]:
    return []
'''
SOLUTION = '''"""One thread for each element."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>

__global__ void double_plus_one(const float* x, float* out, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * x[i] + 1;
}

torch::Tensor forward(torch::Tensor x) {
    auto out = torch::empty_like(x);
    const long n = x.numel();
    const int threads = 256;
    double_plus_one<<<(n + threads - 1) / threads, threads>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
"""

module = load_inline(
    name="NAME_naive", cpp_sources="torch::Tensor forward(torch::Tensor x);", cuda_sources=CUDA,
    functions=["forward"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return module.forward(x)
'''


def main(arguments: Sequence[str]) -> int:
    """Writes both files and returns the exit status. Raises UsageError."""
    name = parser().parse_args(arguments).name
    if not re.fullmatch(r"[A-Za-z]\w{,99}", name, re.ASCII):
        raise UsageError(f"{name}: write a name of up to 100 letters, digits and _, such as row_sum")
    texts = {Path("problems") / f"{name}.py": PROBLEM,
             Path("solutions") / name / "naive.py": SOLUTION.replace("NAME", name)}
    for path in texts:
        if path.exists():
            raise UsageError(f"{path} already exists: choose another name, or remove it")
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: can't be written ({error.strerror}); use a folder that you can write to"
                             ) from error
    show("".join(f"wrote {path}\n" for path in texts) + f"next: inlinebench run {name}")
    return 0


def parser() -> Parser:
    found = Parser("inlinebench init", "Creates ./problems/NAME.py and ./solutions/NAME/naive.py, a solution that "
                   "passes. Edit both.", examples="row_sum")
    found.add_argument("name", metavar="NAME", help="name of the problem")
    return found
