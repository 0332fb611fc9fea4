"""Builds of the harness end like builds of plain nvcc, with the same messages, for sources with warnings and errors.

Each source is compiled by the harness and by plain nvcc: the first ones with slim headers, the rest with precompiled
ones and torch's full headers. Nothing is linked, because the libraries come with PyTorch for CUDA.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from inlinebench.builds.request import BuildRequest
from inlinebench.compile import toolchain
from inlinebench.compile.precompiled import PRECOMPILED_DIR
from inlinebench.compile.recipe import NVCC_FLAGS
from inlinebench.compile.slim import SLIM_DIR
from inlinebench.devices.cuda.recipe import recipe

from .nvcc_sources import FIRST, REST, Case

pytestmark = pytest.mark.nvcc

HANGS_S = 300
"""Plain nvcc takes half a minute with torch's full headers on one core."""
AUTHORS = re.compile(r"(?:cuda_sources|mine\.cu)[(:]\d+.*(?:error|warning)|^ptxas (?:info|error|fatal)|^nvcc fatal",
                     re.IGNORECASE)
"""Messages about the author's lines, and those of nvcc and ptxas. Other messages are about headers."""
VARIES = re.compile(r"/\S+/|line \d+|\x1b\[[0-9;]*[mK]|Compile time = [\d.]+ ms|:\d+(?=: (?:error|warning))")
"""Parts of messages that vary: temporary folders, lines of PTX, colours, seconds, columns."""
OF_HEADERS = re.compile(r"bytes gmem")
"""ptxas reports this for a whole file, and torch's full headers contain variables."""


def ours(case: Case, precompiled: Path | None, folder: Path) -> tuple[int, str]:
    """Returns status and output of the harness's command for a source."""
    request = BuildRequest("extension", (), (case.source,), extra_cuda_cflags=case.flags)
    made = recipe(request, case.architectures, slim=True, precompiled=precompiled or PRECOMPILED_DIR)
    for name, text in made.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return run([toolchain.ninja(), "-C", str(folder), "cuda.o"], folder)


def plain(case: Case, folder: Path, *, slim: bool) -> tuple[int, str]:
    """Returns status and output of nvcc, called as torch calls it."""
    includes = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"
    (folder / "plain.cu").write_text(f'{includes}#line 1 "cuda_sources"\n{case.source}', encoding="utf-8")
    folders = [*([SLIM_DIR] if slim else []), *toolchain.torch().include_dirs, toolchain.cuda_home() / "include",
               toolchain.python_include()]
    own = any("arch" in flag for flag in case.flags)
    codes = [] if own else [f"-gencode=arch=compute_{each},code=sm_{each}" for each in case.architectures]
    newest = [] if own else [f"-gencode=arch=compute_{case.architectures[-1]},code=compute_{case.architectures[-1]}"]
    return run([
        toolchain.nvcc(), "-DTORCH_EXTENSION_NAME=extension", "-DTORCH_API_INCLUDE_EXTENSION_H",
        *(word for each in folders for word in ("-isystem", str(each))), *NVCC_FLAGS, *codes, *newest,
        "--compiler-options", "-fPIC", *case.flags, toolchain.torch().cxx_standard, "-c", "plain.cu", "-o", "plain.o",
    ], folder)


def run(command: list[str], folder: Path) -> tuple[int, str]:
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=HANGS_S, check=False)
    return done.returncode, done.stdout.decode()


def messages(output: str) -> set[str]:
    found = [line for line in output.splitlines() if AUTHORS.search(line) and not OF_HEADERS.search(line)]
    return {VARIES.sub("", line.strip()) for line in found}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST)
def test_a_build_has_the_status_and_messages_of_plain_nvcc(name: str, tmp_path: Path) -> None:
    check(FIRST[name], None, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", REST)
def test_a_build_with_precompiled_headers_has_them_too(name: str, gpu_precompiled: Path, tmp_path: Path) -> None:
    check(REST[name], gpu_precompiled, tmp_path)


def check(case: Case, precompiled: Path | None, folder: Path) -> None:
    """Compares a build with nvcc: with torch's full headers if headers are precompiled, else with slim ones."""
    status, output = ours(case, precompiled, folder)
    assert case.says in output
    assert (status != 0) is case.fails, output
    expected, stock = plain(case, folder, slim=precompiled is None)
    assert case.says in stock, "nvcc does not print what the case expects"
    assert (expected != 0) is case.fails, stock
    assert messages(output) == messages(stock)
