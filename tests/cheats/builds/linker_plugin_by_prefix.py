"""Builds a library with the name of the linker's plugin, and has the next build look for tools in its folder.

Mechanism: with `-B`, g++ looks for its assembler, its linker and the linker's plugin in a folder first, and hands what
it finds there to the linker without an option that says so. The folder is that of a library that was built before. Its
constructor leaves a process behind.
"""

from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from tests.cheats.builds.shared import is_there, library_arguments
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "LookupError"

NAME = "inlinebench-left-by-a-linker"

plugin = load_inline(name="liblto_plugin", **library_arguments(NAME))
load_inline(
    name="linker_plugin_by_prefix",
    cpp_sources="int seven() { return 7; }",
    functions=["seven"],
    extra_ldflags=[f"-B{Path(plugin).parent}/"],
)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not is_there(NAME):
            raise LookupError("nothing is left of the build")
        return kernels.scale_rows(diagonal, matrix)
