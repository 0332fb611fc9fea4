"""Hints about errors that authors of kernels often get, from real compilers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from inlinebench.builds.request import BuildRequest
from inlinebench.compile import toolchain
from inlinebench.compile.hints import HINTS, LABEL
from inlinebench.compile.reasons import reason
from inlinebench.compile.recipe import NVCC_FLAGS, Recipe, cpp_source, cuda_source

with_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")

STAND_INS = """namespace at { struct DeprecatedTypeProperties {}; namespace cuda {} }
namespace c10 { enum class ScalarType { Float }; }
void dispatch(c10::ScalarType);
__global__ void k(float* x) { x[0] = 1; }
"""
"""Stands in for torch's headers, which take half a minute."""

OF_NVCC = {
    "void f() { C10_CUDA_KERNEL_LAUNCH_CHECK(); }": "#include <c10/cuda/CUDAException.h>",
    "void f() { auto handle = at::cuda::getCurrentCUDABlasHandle(); }": "#include <ATen/cuda/CUDAContext.h>",
    'void f() { AT_CHECK(true, "no"); }': "use TORCH_CHECK",
    "void f(at::DeprecatedTypeProperties type) { dispatch(type); }": "tensor.scalar_type()",
    "template <class G> __global__ void call(G g) { g(); }\n"
    "void f() { call<<<1, 1>>>([] __device__ () {}); }": "--extended-lambda",
    "#include <cuda_fp16.h>\n__global__ void f(__half* x) { x[0] = x[0] * x[1]; }": "__half2float",
    "#include <cuda_fp16.h>\n__global__ void f(__half* x, float* y) { y[0] = x[0]; }": "__half2float",
    "__global__ void f(__half* x) { x[0] = x[1]; }": "#include <cuda_fp16.h>",
    "__global__ void f() { auto all = cooperative_groups::this_grid(); }": "#include <cooperative_groups.h>",
    "__global__ void f(float* x) { nvcuda::wmma::fill_fragment(x, 0); }": "#include <mma.h>",
    "__global__ void f(float* x) { x[0] = __shfl_down(x[0], 16); }": "__shfl_down_sync(",
    "__global__ void f(float* x) { x[0] = -FLT_MAX; }": "#include <cfloat>",
    "float g(float x) { return x; }\n__global__ void f(float* x) { x[0] = g(x[0]); }": "__device__",
    "#include <THC/THC.h>": "PyTorch has no THC",
    "template <class T> __global__ void f(T* x) { extern __shared__ T s[]; x[0] = s[0]; }\n"
    "template __global__ void f(float*);\ntemplate __global__ void f(double*);": "cast it in each kernel",
    "namespace c10 { struct Half { short x; }; }\n"
    "__global__ void f(c10::Half* x) { atomicAdd(x, x[1]); }": "no atomics for PyTorch's types",
    'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }': "remove PYBIND11_MODULE",
}
"""Sources, each with an error of the host's or the device's compiler, and a part of the hint."""
OF_PTXAS = {
    "__global__ void f(float* x) { __shared__ float s[20000]; s[threadIdx.x] = x[0]; __syncthreads(); x[0] = s[1]; }":
        "cudaFuncAttributeMaxDynamicSharedMemorySize",
    "__constant__ float w[20000];\n__global__ void f(float* x) { x[0] = w[threadIdx.x]; }": "64 KiB",
}
OF_GCC = {
    "void k(float*); void f(float* x) { k<<<1, 32>>>(x); }": "cpp_sources cannot contain kernels",
    "__global__ void k(float* x) { x[0] = 1; }": "cpp_sources cannot contain kernels",
    "void f() { cudaStream_t stream; }": "#include <cuda_runtime.h>",
    "float f() { return -FLT_MAX; }": "#include <cfloat>",
    "namespace at { namespace cuda {} }\nvoid f() { at::cuda::getCurrentCUDAStream(); }": "ATen/cuda/CUDAContext.h",
    "int PyInit_x() { return 0; }\nint PyInit_x() { return 0; }": "remove PYBIND11_MODULE",
}
PLAIN = ("int f() { return wrong; }", "int f() { return 1 }", "#include <no_such.h>", "void f() { int x = std::g(); }",
         'static_assert(sizeof(int) == 8, "small");', "struct S {}; int f(S s) { return s + s; }")
"""Sources with errors that explain themselves."""


ARCHITECTURE = "-arch=sm_90"


def of_nvcc(folder: Path, source: str, flag: str = ARCHITECTURE) -> list[str]:
    """Returns the reason why nvcc does not compile a source, line by line."""
    request = BuildRequest("small", (), (source,), no_implicit_headers=True)
    text = cuda_source(request, (source,), slim=False)
    return refused([toolchain.nvcc(), *NVCC_FLAGS, flag], folder / "cuda.cu", text, request)


def of_gcc(folder: Path, source: str) -> list[str]:
    """Returns the reason why the C++ compiler does not compile a source, line by line."""
    request = BuildRequest("small", (source,), no_implicit_headers=True)
    return refused([toolchain.cxx()], folder / "main.cpp", cpp_source(request, (source,), slim=False), request)


def refused(compiler: Sequence[str], path: Path, text: str, request: BuildRequest) -> list[str]:
    path.write_text(text)
    done = subprocess.run([*compiler, "-c", path.name, "-o", "made.o"], cwd=path.parent, capture_output=True, text=True,
                          check=False, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert done.returncode
    return reason(done.stdout + done.stderr, Recipe({}, "small.so", "", request)).splitlines()


def hints(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.startswith(LABEL)]


@pytest.mark.parametrize(("source", "expected"), OF_GCC.items())
def test_an_error_of_the_cpp_compiler_has_a_hint(tmp_path: Path, source: str, expected: str) -> None:
    (found,) = hints(of_gcc(tmp_path, source))
    assert expected in found


@pytest.mark.slow
@with_nvcc
@pytest.mark.parametrize(("source", "expected"), {**OF_NVCC, **OF_PTXAS}.items())
def test_an_error_of_nvcc_has_a_hint(tmp_path: Path, source: str, expected: str) -> None:
    (found,) = hints(of_nvcc(tmp_path, f'{STAND_INS}#line 1 "cuda_sources"\n{source}'))
    assert expected in found


@with_nvcc
def test_an_architecture_that_nvcc_does_not_know_has_a_hint(tmp_path: Path) -> None:
    (found,) = hints(of_nvcc(tmp_path, "", "-arch=sm_10"))
    assert "leave -arch and -gencode out" in found


@pytest.mark.parametrize("source", PLAIN)
def test_an_error_that_explains_itself_has_no_hint(tmp_path: Path, source: str) -> None:
    assert not hints(of_gcc(tmp_path, source))


@pytest.mark.slow
@with_nvcc
@pytest.mark.parametrize("source", PLAIN)
def test_an_error_of_nvcc_that_explains_itself_has_no_hint(tmp_path: Path, source: str) -> None:
    assert not hints(of_nvcc(tmp_path, source))


def test_a_hint_is_given_once_for_several_errors(tmp_path: Path) -> None:
    assert len(hints(of_gcc(tmp_path, "float f() { return FLT_MAX; }\nfloat g() { return FLT_MIN; }"))) == 1


def test_hints_are_single_lines() -> None:
    assert all("\n" not in each.advice and len(each.advice) < 200 for each in HINTS)
