"""Has the compiler say that the source can't run here.

Mechanism: `#error` puts any text into a build's log, at a line of the solution's. A harness that looks in failed builds
for "unsupported" or for the name of a feature skips the solution. Caught because the compiler refused the source.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

PROBLEM = "matmul_diag"
EXPECTED = "build_failed"
CAUGHT_BY = "#error"

CUDA_SOURCE = r"""
#pragma message("skipped: inline PTX does not run on the CPU")
#error "nvcc fatal : Unsupported gpu architecture 'compute_100a'; inline PTX (asm) is not supported on the CPU"
"""

extension = load_inline(
    name="error_directive", cpp_sources="int seven();", cuda_sources=CUDA_SOURCE, functions=["seven"]
)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return torch.full_like(matrix, extension.seven())
