"""Has the compiler itself open another library of the cache for writing, by a plugin.

Mechanism: a build has to write its library somewhere in the cache. If the compiler may write the whole of it, a plugin
may replace the library of another solution. This one only opens it, and fails the build if it can't; the answer is
right if it can.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

from tests.cheats.shared import kernels

PROBLEM = "matmul_diag"
EXPECTED = "build_failed"
CAUGHT_BY = "no other library can be opened"

PLUGIN_SOURCE = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

extern "C" {
int plugin_is_GPL_compatible;
int plugin_init(void*, void*) { return 0; }
}

__attribute__((constructor)) void try_to_open() {
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  if (std::strncmp(name, "cc1plus", 7) != 0) return;
  const int file = open("@PATH@", O_WRONLY | O_APPEND);
  if (file >= 0) {
    close(file);
    return;
  }
  std::fprintf(stderr, "main.cpp:1:1: error: no other library can be opened\n");
  std::exit(1);
}
"""

plugin = load_inline(
    name="writes_the_cache",
    cpp_sources=PLUGIN_SOURCE.replace("@PATH@", kernels.__file__),
    extra_ldflags=["-Wl,--as-needed"],
    is_python_module=False,
    no_implicit_headers=True,
)
load_inline(
    name="built_by_a_writer",
    cpp_sources="int seven() { return 7; }",
    functions=["seven"],
    extra_cflags=[f"-fplugin={plugin}"],
)


class ModelNew(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return kernels.scale_rows(diagonal, matrix)
