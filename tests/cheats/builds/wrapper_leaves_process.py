"""Has the compiler run a wrapper around its parts, which leaves a process behind.

Mechanism: with `-wrapper`, g++ starts its parts through any command. A process that moved to a session of its own
outlives the build, and can slow down the reference, or tell the candidate what it sees. The answer is right if the
candidate finds it.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from tests.cheats.builds.shared import is_there, leaving
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "LookupError"

NAME = "inlinebench-left-by-a-wrapper"

load_inline(
    name="wrapper_leaves_process",
    cpp_sources="int seven() { return 7; }",
    functions=["seven"],
    extra_cflags=["-wrapper", ",".join(leaving(NAME))],
)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not is_there(NAME):
            raise LookupError("nothing is left of the build")
        return kernels.scale_rows(diagonal, matrix)
