"""Builds the files in `kernels/` for the CPU or a GPU and calls their launchers."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cuda_on_cpu import (
    INCLUDE_DIR,
    RACE_FLAGS,
    SOURCE_FLAGS,
    Runtime,
    host_flags,
    link_flags,
    runtime_library,
    translate,
)

KERNELS = Path(__file__).parent / "kernels"


def build_for_cpu(source: Path, folder: Path, flags: tuple[str, ...] = ("-std=c++17", "-O1")) -> Path:
    """Builds the translated file as a shared library of the same name, so that races are found in it."""
    own_folder = folder / source.parent.name  # files of different folders may have the same name
    own_folder.mkdir(exist_ok=True)
    translated, compiled, library = (own_folder / f"{source.stem}{suffix}" for suffix in (".cpp", ".o", ".so"))
    translated.write_text(f'#line 1 "{source.name}"\n{translate(source.read_text())}')
    own = [*host_flags(flags), *SOURCE_FLAGS, *RACE_FLAGS, f"-I{INCLUDE_DIR}", f"-I{source.parent}"]
    _run(["g++", *own, "-c", str(translated), "-o", str(compiled)])
    # Without RACE_FLAGS, which would link libtsan.
    _run(["g++", "-shared", str(compiled), "-o", str(library), *link_flags(runtime_library(folder))])
    return library


@contextlib.contextmanager
def looking_for_races(runtime: Runtime) -> Iterator[list[str]]:
    """Looks for races in the launches of the block. The list has afterwards what was found: notes, and others."""
    found = list[str]()
    runtime.throw_errors(False)
    runtime.find_races(True)
    yield found
    runtime.find_races(False)
    runtime.throw_errors(True)
    if error := runtime.take_error():
        found += error.split("; data race")
    found += [f"note: {note}" for note in runtime.take_race_notes()]


def build_for_gpu(source: Path, folder: Path) -> Path:
    """Builds the unchanged file with nvcc."""
    library = folder / f"{source.stem}_gpu.so"
    _run(["nvcc", "-arch=native", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", str(source), "-o", str(library)])
    return library


def _run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


class Library:
    """A built file of the conformance kernels."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        self.library.case_allocate.restype = ctypes.c_void_p

    def call(self, launcher: str, arguments: list[Any]) -> list[Any]:
        """Calls a launcher with copies of the arrays on the device. Returns the arguments as they are afterwards."""
        buffers: list[tuple[int, np.ndarray]] = []
        passed: list[Any] = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                array = np.ascontiguousarray(argument)
                data = self.library.case_allocate(ctypes.c_size_t(array.nbytes))
                self.library.case_copy_in(
                    ctypes.c_void_p(data), array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes)
                )
                buffers.append((data, array))
                passed.append(ctypes.c_void_p(data))
            else:
                passed.append(ctypes.c_int(argument))
        getattr(self.library, launcher)(*passed)
        error = self.library.case_finish()
        after = {data: np.empty_like(array) for data, array in buffers}
        for data, array in after.items():
            self.library.case_copy_out(
                array.ctypes.data_as(ctypes.c_void_p), ctypes.c_void_p(data), ctypes.c_size_t(array.nbytes)
            )
            self.library.case_release(ctypes.c_void_p(data))
        assert error == 0, f"{launcher} left CUDA error {error}"
        values = iter(after.values())
        return [next(values) if isinstance(argument, np.ndarray) else argument for argument in arguments]
