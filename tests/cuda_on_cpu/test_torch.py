"""A module with torch bindings, and "cuda" in Python, as solutions use them."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from cuda_on_cpu import INCLUDE_DIR, SOURCE_FLAGS, allocator_library, link_flags, runtime_library, translate

pytestmark = pytest.mark.slow

_HERE = Path(__file__).parent


def test_kernels_with_torch_bindings_run_on_the_cpu(build_folder: Path) -> None:
    import torch
    from torch.utils.cpp_extension import include_paths

    torch_lib = Path(torch.__file__).parent / "lib"
    includes = [Path(path) for path in include_paths()]
    translated, module = build_folder / "torch_kernels.cpp", build_folder / "torch_kernels.so"
    translated.write_text(translate((_HERE / "torch_kernels.cu").read_text()))
    folders = [f"-I{folder}" for folder in (INCLUDE_DIR, *includes, sysconfig.get_paths()["include"])]
    libraries = [f"-L{torch_lib}", "-ltorch", "-ltorch_cpu", "-ltorch_python", "-lc10"]
    command = ["g++", "-std=c++20", "-O1", *SOURCE_FLAGS, *folders, "-DTORCH_EXTENSION_NAME=torch_kernels", "-shared"]
    subprocess.run(
        [*command, str(translated), "-o", str(module), *libraries, *link_flags(runtime_library(build_folder))],
        check=True,
    )
    allocator = allocator_library(build_folder, includes, torch_lib)

    session = [sys.executable, "-m", f"{__package__}.torch_session", str(module), str(allocator)]
    result = subprocess.run(session, cwd=_HERE.parents[1], capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout == "done\n", result.stderr
    # The last call overruns a whole number of pages: the guard page ends the process with a message.
    assert result.returncode < 0
    assert (
        "inlinebench: out of bounds access in kernel overrun_kernel, block (16, 0, 0), thread (0, 0, 0): 0 bytes past"
        in result.stderr
    )
