"""Generates the problem and the answers of service_kills.py. All run on the CPU, and few need a build."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROBLEM = '''\
"""Twice the input."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.rand(4, 8)]


def get_init_inputs():
    return []
'''

_TORCH = "import os\nimport time\n\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
_KERNEL = '''\
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>

__global__ void twice_kernel(const float* in, float* out, int64_t elements) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < elements) {
    out[index] = in[index] * 2.0f@;
  }
}

at::Tensor twice(const at::Tensor& in) {
  at::Tensor out = at::empty_like(in);
  twice_kernel<<<1, 256>>>(in.const_data_ptr<float>(), out.mutable_data_ptr<float>(), in.numel());
  return out;
}
"""
extension = load_inline(name="twice", cpp_sources="at::Tensor twice(const at::Tensor& in);", cuda_sources=SOURCE,
                        functions=["twice"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.twice(x)
'''

SOURCES = {
    "right": f"{_TORCH}        return x + x\n",
    "kernel": _KERNEL.replace("@", ""),
    "wrong": f"{_TORCH}        return x + 1\n",
    "raises": f"{_TORCH}        raise RuntimeError('planted')\n",
    "aborts": f"{_TORCH}        os.abort()\n",
    "no code": "I would rather not.\n",
    "other build": _KERNEL.replace("@", "").replace("__global__", "// build {number}\n__global__"),
    "no build": _KERNEL.replace("@", " +"),
    "hangs": f"{_TORCH}        time.sleep(600)\n",
}
"""The text of an answer of each kind. All answers of a kind have one build, except for `other build`."""
SHARES = {"right": 46.6, "kernel": 22.0, "wrong": 16.6, "raises": 5.6, "aborts": 5.6, "no code": 2.2,
          "other build": 0.55, "no build": 0.55, "hangs": 0.3}
"""How frequent answers of each kind are among the distinct ones, in a hundred."""


@dataclass(frozen=True)
class PlantedAnswer:
    """An answer that is sent to the service."""

    kind: str
    """A key of SOURCES."""
    body: dict[str, Any]
    """The request."""


def one_of_each(problem: Path, settings: dict[str, Any]) -> list[PlantedAnswer]:
    """Returns an answer of each kind. Unlike those of `answers`, they are evaluated without reuse."""
    return [_planted(kind, 0, problem, settings, reuse=False) for kind in SOURCES]


def answers(
    count: int, equal: float, draw: random.Random, problem: Path, settings: dict[str, Any]
) -> list[PlantedAnswer]:
    """Returns answers of drawn kinds. This share of them equals an earlier one, and the others are distinct."""
    found: list[PlantedAnswer] = []
    for number in range(1, count + 1):
        (kind,) = draw.choices([*SHARES], [*SHARES.values()])
        repeats = found and draw.random() < equal
        found.append(draw.choice(found) if repeats else _planted(kind, number, problem, settings))
    return found


def _planted(
    kind: str, number: int, problem: Path, settings: dict[str, Any], *, reuse: bool = True
) -> PlantedAnswer:
    text = SOURCES[kind].replace("{number}", str(number)) + f"# answer {number}\n"
    return PlantedAnswer(kind, {"problem": str(problem), "source": text, "settings": settings, "reuse": reuse})
