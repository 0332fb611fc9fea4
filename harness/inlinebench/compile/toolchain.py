"""Finds the compilers, torch's headers and libraries, and their versions, without importing torch."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class MissingTool(Exception):
    """A compiler or a build tool is missing. The message says what to install."""


@dataclass(frozen=True)
class Torch:
    """The installed PyTorch: its folder, version, and the CUDA version that it is built with (None: CPU)."""

    root: Path
    version: str
    cuda: str | None

    @property
    def include_dirs(self) -> tuple[Path, ...]:
        include = self.root / "include"
        return include, include / "torch" / "csrc" / "api" / "include"

    @property
    def library_dir(self) -> Path:
        return self.root / "lib"

    @property
    def cxx_standard(self) -> str:
        """The flag that torch's own `load_inline` uses, read from torch's source."""
        text = (self.root / "utils" / "cpp_extension.py").read_text(encoding="utf-8")
        found = re.search(r"'(-std=c\+\+\d\d)'", text)
        return found[1] if found else "-std=c++20"


@cache
def torch() -> Torch:
    """Returns the installed PyTorch. Raises MissingTool."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise MissingTool("PyTorch is not installed; run pip install -e .")
    root = Path(spec.origin).parent
    facts = {
        target.id: ast.literal_eval(node.value)
        for node in ast.parse((root / "version.py").read_text()).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    return Torch(root, str(facts["__version__"]), facts.get("cuda"))


@cache
def cxx() -> str:
    """Returns the C++ compiler: CXX, or c++ or g++ on the path. Raises MissingTool."""
    for name in filter(None, (os.environ.get("CXX"), "c++", "g++")):
        if found := shutil.which(name):
            return found
    raise MissingTool("no C++ compiler: install g++ (apt-get install g++), or set CXX")


def python_include() -> Path:
    """Returns the folder of Python's headers."""
    return Path(sysconfig.get_path("include"))


@cache
def nvcc_takes_gcc_from_the_path() -> bool:
    """Whether nvcc by default compiles host code with the gcc on the path. It does not if its own folder has a gcc, or
    if its profile names another compiler. Raises MissingTool."""
    folder = Path(nvcc()).resolve().parent
    profile = folder / "nvcc.profile"
    named = profile.exists() and "compiler-bindir" in profile.read_text(encoding="utf-8", errors="replace")
    return not (named or (folder / "gcc").exists()) and shutil.which("gcc") is not None


@cache
def cuda_home() -> Path:
    """Returns the CUDA toolkit: CUDA_HOME, CUDA_PATH, that of nvcc on the path, or /usr/local/cuda. Raises MissingTool.
    """
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if value := os.environ.get(name):
            return _toolkit(Path(value), f"{name} is set to {value}")
    if found := shutil.which("nvcc"):
        return Path(found).resolve().parent.parent
    return _toolkit(Path("/usr/local/cuda"), "nvcc is not on the path")


def nvcc() -> str:
    """Returns the CUDA compiler. Raises MissingTool."""
    return str(cuda_home() / "bin" / "nvcc")


@cache
def ninja() -> str:
    """Returns the ninja of this Python environment, or the one on the path. Raises MissingTool."""
    beside = Path(sysconfig.get_path("scripts")) / "ninja"
    found = str(beside) if beside.exists() else shutil.which("ninja")
    if not found:
        raise MissingTool("ninja is not installed; run pip install ninja")
    return found


@cache
def version_of(compiler: str) -> str:
    """Returns a compiler's version text for the cache's key, without the name that it was called by.

    Raises MissingTool if the compiler does not run.
    """
    try:
        output = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingTool(f"{compiler} is not a working compiler: --version fails ({error})") from error
    return output.removeprefix(Path(compiler).name)


@cache
def processor() -> str:
    """Returns the model and features of the processor on which compilers depend."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    names = ("model name", "flags", "CPU implementer", "CPU part", "Features")
    return "\n".join(line for line in lines if line.startswith(names))


def _toolkit(home: Path, why: str) -> Path:
    if not (home / "bin" / "nvcc").exists():
        raise MissingTool(f"no CUDA compiler: {why} and {home}/bin/nvcc does not exist; install the CUDA toolkit "
                          "for your PyTorch's CUDA version, or set CUDA_HOME to its location")
    return home
