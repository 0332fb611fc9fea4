"""Writes a Triton function with the name of the library's kernel, and never calls it.

Mechanism: Triton's kernels have the names of Python functions, and their binaries come from no file that was built
here, so a harness finds the solution's own ones by names: those of functions under `@triton.jit`. The names of the
library's kernels are found by a profile in the constructor, and functions of these names are written to a module beside
the file and imported. Caught because it is the library's binary that the kernels come from.
"""

import importlib.util
import re
from pathlib import Path

import torch
import triton
import triton.language as tl
from torch import nn

PROBLEM = "matmul_transposed_a"
EXPECTED = "no_own_kernel"
CAUGHT_BY = "no kernel of its own ran"
NEEDS_GPU = True
NEEDS_TRITON = True

TEMPLATE = """
@triton.jit
def {name}(A, B, out, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + index, tl.load(A + index) * tl.load(B + index))
"""


@triton.jit
def ampere_sgemm_128x64_nt(A, B, out, BLOCK: tl.constexpr):  # noqa: ANN001, ANN201
    """For a reader: one of the names that the library's kernel has."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + index, tl.load(A + index) * tl.load(B + index))


def library_names(shape: tuple[int, int, int]) -> set[str]:
    K, M, N = shape
    A, B = torch.rand(K, M, device="cuda"), torch.rand(K, N, device="cuda")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        A.T @ B
        torch.cuda.synchronize()
    return {name for event in profile.events() for name in re.findall(r"^\w+$", event.name)}


def take(names: set[str]) -> None:
    path = Path(__file__).with_name("taken.py")
    functions = "".join(TEMPLATE.format(name=name) for name in sorted(names))
    path.write_text(f"import triton\nimport triton.language as tl\n{functions}")
    spec = importlib.util.spec_from_file_location("taken", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        take(library_names((8192, 2048, 4096)))

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A.T @ B
