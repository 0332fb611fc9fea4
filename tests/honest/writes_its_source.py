"""Writes its CUDA source and a header of it beside itself, and has them built from there.

Suspicious: what is built isn't in the file. Honest: code generators work like that, and the files are its own.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load

PROBLEM = "matmul_diag"

HERE = Path(__file__).resolve().parent
assert "scale_rows" in (HERE / "shared.py").read_text()  # a neighbour is there to be read

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

#include "generated/threads.cuh"

__global__ void written_kernel(const float* diagonal, const float* B, float* out, int columns, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) out[index] = diagonal[index / columns] * B[index];
}

at::Tensor written(const at::Tensor& diagonal, const at::Tensor& B) {
  at::Tensor out = at::empty_like(B);
  const int count = static_cast<int>(B.numel());
  written_kernel<<<(count + THREADS - 1) / THREADS, THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      diagonal.const_data_ptr<float>(), B.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
      static_cast<int>(B.size(1)), count);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("written", &written); }
"""

(HERE / "generated").mkdir()
(HERE / "generated" / "threads.cuh").write_text("#pragma once\n#define THREADS 128\n")
(HERE / "written.cu").write_text(SOURCE)

extension = load(name="written", sources=[str(HERE / "written.cu")])


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return extension.written(diagonal, matrix)
