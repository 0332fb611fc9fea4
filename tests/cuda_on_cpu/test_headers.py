"""Each header for the CPU can be included first, in C++ sources as in CUDA sources, before or after CUDA's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cuda_on_cpu import INCLUDE_DIR
from inlinebench.compile import toolchain

pytestmark = pytest.mark.slow

_HEADERS = sorted(str(path.relative_to(INCLUDE_DIR)) for path in INCLUDE_DIR.rglob("*")
                  if path.is_file() and path.relative_to(INCLUDE_DIR).parts[0] != "cuda_on_cpu")
_TEXT = "#include <{0}>\n#include <cuda_runtime.h>\n#include <{0}>\nint main() {{ return cudaSuccess; }}\n"


@pytest.mark.parametrize("header", _HEADERS)
def test_a_header_can_be_included_first(header: str, tmp_path: Path) -> None:
    source = tmp_path / "first.cpp"
    source.write_text(_TEXT.format(header))
    folders = [INCLUDE_DIR, *toolchain.torch().include_dirs, toolchain.python_include()]
    command = [toolchain.cxx(), *(word for folder in folders for word in ("-isystem", str(folder))), "-fsyntax-only",
               toolchain.torch().cxx_standard, str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
