"""Generates the problems and solutions of throughput.py: copies of the bundled ones, and one with large inputs."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path

from inlinebench import catalog
from inlinebench.builds.request import BuildRequest
from inlinebench.catalog import Solution
from inlinebench.options import Options
from inlinebench.results.library import LIBRARY

PROBLEM, SOLUTION = "matmul_diag", "naive"
"""The bundled solution that is evaluated repeatedly."""
LARGE, SUM = "add_three", "plain"
OPERANDS, FLOAT_BYTES = 3, 4

LARGE_PROBLEM = '''\
"""The sum of three vectors of N float32 values."""

import torch
from torch import nn

N = {values}

SHAPES = {{"small": {{"N": 4096}}}}


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return a + b + c


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(N), torch.rand(N), torch.rand(N)]


def get_init_inputs() -> list[object]:
    return []
'''

LARGE_SOLUTION = '''\
"""One thread an element; forward only."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void add_three_kernel(const float* a, const float* b, const float* c, float* out, int64_t elements) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < elements) {
    out[index] = a[index] + b[index] + c[index];
  }
}

at::Tensor add_three(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  at::Tensor out = at::empty_like(a);
  const int64_t elements = out.numel();
  const unsigned int blocks = static_cast<unsigned int>((elements + 255) / 256);
  add_three_kernel<<<blocks, 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      a.const_data_ptr<float>(), b.const_data_ptr<float>(), c.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
      elements);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

extension = load_inline(
    name="add_three",
    cpp_sources="at::Tensor add_three(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c);",
    cuda_sources=CUDA_SOURCE,
    functions=["add_three"],
)


class ModelNew(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return extension.add_three(a, b, c)
'''

_SOURCE = re.compile(r'^(?:CUDA|COMMON)_SOURCE = r?"""\n', re.MULTILINE)


def bundled(number: int | None = None) -> list[Solution]:
    """Returns the bundled solutions with kernels, or `number` of them, evenly spread; more than all are repeated.

    The first one is the same for any number.
    """
    default = Options()
    known = [each for each in catalog.read(default.problems, default.solutions).solutions if each.name != LIBRARY]
    if number is None:
        return known
    if number > len(known):
        return [known[index % len(known)] for index in range(number)]
    return [known[index * len(known) // number] for index in range(number)]


def problem_of(solution: Solution) -> Path:
    """Returns the problem file of a bundled solution."""
    return Options().problems / f"{solution.problem}.py"


def copies(folder: Path, number: int) -> Path:
    """Writes a folder of solutions with the same file under `number` names, which share a build. Returns the folder."""
    target = folder / PROBLEM
    target.mkdir(parents=True)
    for index in range(number):
        shutil.copyfile(Options().solutions / PROBLEM / f"{SOLUTION}.py", target / f"copy_{index}.py")
    return folder


def large(problems: Path, solutions: Path, gib: float) -> None:
    """Writes a problem with `gib` GiB of inputs, and a solution of it."""
    values = round(gib * 2**30 / (OPERANDS * FLOAT_BYTES))
    for path, text in ((problems / f"{LARGE}.py", LARGE_PROBLEM.format(values=values)),
                       (solutions / LARGE / f"{SUM}.py", LARGE_SOLUTION)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def suite(folder: Path, number: int) -> list[Solution]:
    """Writes `number` bundled solutions to a folder. Their sources are distinct, so that each is built."""
    planted = []
    for index, original in enumerate(bundled(number)):
        name = f"{original.name}_{index}"
        path = folder / original.problem / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(numbered(original.path.read_text(encoding="utf-8"), index), encoding="utf-8")
        planted.append(Solution(original.problem, name, path))
    return planted


def numbered(text: str, number: int) -> str:
    """Returns a solution's text with a comment in its CUDA source.

    Raises ValueError unless the text has exactly one CUDA_SOURCE or COMMON_SOURCE that is a string literal.
    """
    changed, found = _SOURCE.subn(lambda match: f"{match[0]}// copy {number}\n", text)
    if found != 1:
        raise ValueError(f"{found} times CUDA_SOURCE at the start of a line; exactly one is needed")
    return changed


def numbered_request(request: BuildRequest, number: int) -> BuildRequest:
    """Returns the same build with a comment in its CUDA sources, which makes it distinct."""
    return dataclasses.replace(request, cuda_sources=(f"// copy {number}\n", *request.cuda_sources))
