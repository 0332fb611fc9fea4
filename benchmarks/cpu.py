"""Measures the time of CUDA sources on the CPU. The bars are for two cores.

    python benchmarks/cpu.py                    print a table; status 1 if a bar is missed
    python benchmarks/cpu.py --json FILE        also write the figures to FILE

Measures `run_eval.py --device cpu` for PROBLEMS, with an empty cache and again with the filled cache, and two kernels
that multiply 256x256 matrices: one thread for each output, and tiles in shared memory with two barriers each. A
kernel's figure is the median of several launches after a first one; its result is compared with PyTorch's. It takes a
few minutes, and needs an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "harness"))

import cuda_on_cpu  # noqa: E402
from inlinebench.compile import toolchain  # noqa: E402

PROBLEMS = ("gemm_scale_batchnorm", "matmul_diag", "matmul_transposed_a", "matmul_transposed_b")
"""The bars are for the bundled solutions of these problems."""
SIZE = 256
LAUNCHES = 5

KERNELS = r"""
template <int N>
__global__ void plain_kernel(const float* a, const float* b, float* out) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= N || column >= N) {
    return;
  }
  float sum = 0.0f;
  for (int k = 0; k < N; ++k) {
    sum += a[row * N + k] * b[k * N + column];
  }
  out[row * N + column] = sum;
}

template <int N, int T>
__global__ void tiled_kernel(const float* a, const float* b, float* out) {
  __shared__ float left[T][T], right[T][T];
  const int row = blockIdx.y * T + threadIdx.y;
  const int column = blockIdx.x * T + threadIdx.x;
  float sum = 0.0f;
  for (int start = 0; start < N; start += T) {
    left[threadIdx.y][threadIdx.x] = a[row * N + start + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(start + threadIdx.y) * N + column];
    __syncthreads();
    for (int k = 0; k < T; ++k) {
      sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    }
    __syncthreads();
  }
  out[row * N + column] = sum;
}

extern "C" void plain(const float* a, const float* b, float* out) {
  plain_kernel<SIZE><<<dim3(SIZE / 16, SIZE / 16), dim3(16, 16)>>>(a, b, out);
}

extern "C" void tiled(const float* a, const float* b, float* out) {
  tiled_kernel<SIZE, 16><<<dim3(SIZE / 16, SIZE / 16), dim3(16, 16)>>>(a, b, out);
}
"""


class Failed(Exception):
    """A measured command or kernel failed, so that its time is meaningless."""


@dataclass(frozen=True)
class Figure:
    """One figure, in seconds."""

    what: str
    bar: float
    seconds: float

    @property
    def met(self) -> bool:
        return self.seconds < self.bar


def measure_runs(folder: Path) -> list[Figure]:
    """Times the bundled solutions of PROBLEMS with an empty cache, then with a full one."""
    return [
        Figure("run_eval.py, empty cache", 180.0, _time_run(folder / "cache")),
        Figure("run_eval.py, full cache", 30.0, _time_run(folder / "cache")),
    ]


def _time_run(cache: Path) -> float:
    begin = time.perf_counter()
    command = [sys.executable, str(ROOT / "run_eval.py"), *PROBLEMS, "--device", "cpu", "--cache", str(cache)]
    done = subprocess.run([*command, "--strict"], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise Failed(f"run_eval.py exited with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return seconds


def measure_kernels(folder: Path) -> list[Figure]:
    """Times both kernels in a translated library, whose launchers are called directly."""
    library = _build(folder)
    return [
        Figure(f"{SIZE}x{SIZE}x{SIZE} product, one thread an output", 0.5, _time_launches(library, "plain")),
        Figure(f"{SIZE}x{SIZE}x{SIZE} product, shared memory and barriers", 5.0, _time_launches(library, "tiled")),
    ]


def _build(folder: Path) -> ctypes.CDLL:
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(cuda_on_cpu.translate(KERNELS))
    runtime = cuda_on_cpu.runtime_library(folder, toolchain.cxx())
    flags = ["-std=c++17", "-O2", f"-DSIZE={SIZE}", *cuda_on_cpu.SOURCE_FLAGS, f"-I{cuda_on_cpu.INCLUDE_DIR}"]
    command = [toolchain.cxx(), *flags, "-shared", str(source), *cuda_on_cpu.link_flags(runtime), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"the kernels were not built:\n{done.stderr}")
    return ctypes.CDLL(str(library))


def _time_launches(library: ctypes.CDLL, launcher: str) -> float:
    a, b, out = torch.rand(SIZE, SIZE), torch.rand(SIZE, SIZE), torch.empty(SIZE, SIZE)
    launch = getattr(library, launcher)
    seconds = []
    for _ in range(1 + LAUNCHES):
        out.fill_(float("nan"))
        begin = time.perf_counter()
        launch(*(ctypes.c_void_p(tensor.data_ptr()) for tensor in (a, b, out)))
        seconds.append(time.perf_counter() - begin)
        if not torch.allclose(out, a @ b, rtol=1e-4):
            raise Failed(f"the kernel of {launcher} gives a wrong result")
    return statistics.median(seconds[1:])


def show(figures: list[Figure]) -> str:
    """Returns the figures as a table."""
    rows = [[figure.what, f"< {figure.bar:g} s", f"{figure.seconds:.3g} s", "met" if figure.met else "MISSED"]
            for figure in figures]
    return str(tabulate(rows, headers=["what", "bar", "figure", ""], colalign=("left", "right", "right", "left")))


def main() -> int:
    """Measures and prints. Returns 0 if all bars are met, 1 if not, 2 if something failed."""
    parser = argparse.ArgumentParser(description="times CUDA sources on the CPU")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="inlinebench-") as name:
        folder = Path(name)
        try:
            figures = [*measure_kernels(folder), *measure_runs(folder)]
        except (Failed, toolchain.MissingTool, RuntimeError) as error:
            print(f"cpu.py: {error}", file=sys.stderr)
            return 2
    cores = len(os.sched_getaffinity(0))
    print(f"{show(figures)}\n\non {cores} cores")
    if options.json:
        facts = {"cores": cores, "figures": [{**asdict(figure), "met": figure.met} for figure in figures]}
        options.json.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
