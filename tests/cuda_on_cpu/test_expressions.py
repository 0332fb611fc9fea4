"""The CPU's headers compile an expression if and only if nvcc does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from inlinebench.builds.request import BuildRequest
from inlinebench.compile import toolchain
from inlinebench.compile.recipe import Recipe
from inlinebench.devices.cpu.recipe import cpu_recipe
from inlinebench.devices.cuda.recipe import recipe

from .expressions import ACCEPTED, PARAMETERS, REFUSED

_EXPRESSIONS = [*ACCEPTED, *REFUSED]
_HEADERS = "#include <torch/extension.h>\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"
_ERROR = re.compile(r"cuda_sources(?:\((\d+)\): error|:(\d+):\d+: error|:(\d+):\d+: {3}required from here)")


def request(*flags: str) -> BuildRequest:
    """Returns a source with a line for each expression, in order, after the lines of `_HEADERS`."""
    lines = [f"__device__ void f{number}({PARAMETERS}) {{ {expression}; }}"
             for number, expression in enumerate(_EXPRESSIONS)]
    return BuildRequest("expressions", (), (_HEADERS + "\n".join(lines),), extra_cuda_cflags=flags)


def refused(made: Recipe, folder: Path) -> list[str]:
    """Returns the expressions in whose lines the compiler finds an error."""
    for name, text in made.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = [toolchain.ninja(), "-C", str(folder), "cuda.o"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    first = _HEADERS.count("\n") + 1
    lines = {int(next(filter(None, match.groups()))) - first for match in _ERROR.finditer(done.stdout)}
    assert lines and min(lines) >= 0, done.stdout[-3000:]
    return [_EXPRESSIONS[line] for line in sorted(lines)]


@pytest.mark.slow
def test_the_headers_for_the_cpu_refuse_what_nvcc_refuses_and_nothing_else(tmp_path: Path) -> None:
    made = cpu_recipe(request("-Xcompiler", "-fmax-errors=0"), tmp_path / "not_linked.so", slim=True)
    assert refused(made, tmp_path) == REFUSED


@pytest.mark.nvcc
@pytest.mark.slow
def test_nvcc_does_as_the_table_says(tmp_path: Path) -> None:
    made = recipe(request("-Xcudafe", "--error_limit=100000"), ("90",), slim=True)
    assert refused(made, tmp_path) == REFUSED
