"""Compiles kernels at run time by NVRTC and launches them by the driver, through ctypes, as CuPy and cuda-python do."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import torch

SCALE_ROWS_SOURCE = r"""
extern "C" __global__ void scale_rows_kernel(const float* diagonal, const float* matrix, float* out,
                                             long long columns, long long count) {
  const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < count) out[index] = diagonal[index / columns] * matrix[index];
}
"""
THREADS = 256


def nvrtc() -> ctypes.CDLL:
    """NVRTC of torch's CUDA version: on the loader's path, or in the packages that torch came with."""
    assert torch.version.cuda is not None
    name = f"libnvrtc.so.{torch.version.cuda.partition('.')[0]}"
    try:
        return ctypes.CDLL(name)
    except OSError:
        packages = Path(torch.__file__).parents[1] / "nvidia"
        return ctypes.CDLL(str(next(packages.glob(f"**/{name}"))))


def checked(status: int, what: str) -> None:
    if status:
        raise RuntimeError(f"{what} failed with status {status}")


def compiled(source: str, expression: str) -> tuple[bytes, bytes]:
    """The binary of a source for this GPU, and the lowered name of a kernel, which may be an instance of a template."""
    library, program = nvrtc(), ctypes.c_void_p()
    checked(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None), "create")
    major, minor = torch.cuda.get_device_capability()
    options = (ctypes.c_char_p * 2)(f"--gpu-architecture=sm_{major}{minor}".encode(), b"--std=c++17")
    checked(library.nvrtcAddNameExpression(program, expression.encode()), "the name of the kernel")
    checked(library.nvrtcCompileProgram(program, len(options), options), "compiling")
    lowered, size = ctypes.c_char_p(), ctypes.c_size_t()
    checked(library.nvrtcGetLoweredName(program, expression.encode(), ctypes.byref(lowered)), "the lowered name")
    checked(library.nvrtcGetCUBINSize(program, ctypes.byref(size)), "the size of the binary")
    binary, name = ctypes.create_string_buffer(size.value), bytes(lowered.value or b"")
    checked(library.nvrtcGetCUBIN(program, binary), "the binary")
    checked(library.nvrtcDestroyProgram(ctypes.byref(program)), "destroy")
    return binary.raw, name


class RawKernel:
    """A kernel that is compiled at its first launch, called as CuPy's: grid, block, arguments.

    Tensors are passed as pointers, ints as 64 bits.
    """

    def __init__(self, source: str, expression: str) -> None:
        self._source, self._expression = source, expression
        self._function: ctypes.c_void_p | None = None

    def __call__(self, grid: tuple[int], block: tuple[int], arguments: Sequence[torch.Tensor | int]) -> None:
        driver = ctypes.CDLL("libcuda.so.1")
        if self._function is None:
            self._function = self._loaded(driver)
        values = [ctypes.c_void_p(each.data_ptr()) if isinstance(each, torch.Tensor) else ctypes.c_longlong(each)
                  for each in arguments]
        addresses = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        checked(driver.cuLaunchKernel(self._function, *grid, 1, 1, *block, 1, 1, 0, stream, addresses, None), "launch")

    def _loaded(self, driver: ctypes.CDLL) -> ctypes.c_void_p:
        binary, name = compiled(self._source, self._expression)
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        checked(driver.cuModuleLoadData(ctypes.byref(module), binary), "loading")
        checked(driver.cuModuleGetFunction(ctypes.byref(function), module, name), "the kernel")
        return function
