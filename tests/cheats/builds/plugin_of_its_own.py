"""Builds a library first, and has the compiler load it as a plugin in a second build.

Mechanism: a plugin is code in the compiler's own process, and needs no file that the cache does not hold anyway: the
library of the first build is at a path that every later build can read. Its constructor leaves a process behind. It
does nothing outside the compiler, so this process is not its origin.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from tests.cheats.builds.shared import is_there, library_arguments
from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "crashed"
CAUGHT_BY = "LookupError"

NAME = "inlinebench-left-by-a-plugin"

plugin = load_inline(name="plugin_of_its_own", **library_arguments(NAME))
load_inline(
    name="built_with_a_plugin",
    cpp_sources="int seven() { return 7; }",
    functions=["seven"],
    extra_cflags=[f"-fplugin={plugin}"],
    extra_ldflags=[f"-Wl,-plugin,{plugin}"],
)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        if not is_there(NAME):
            raise LookupError("nothing is left of the build")
        return kernels.scale_rows(diagonal, matrix)
