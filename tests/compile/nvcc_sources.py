"""CUDA sources that make a compiler print something: warnings, errors, and flags for reports."""

from __future__ import annotations

from dataclasses import dataclass

HEADERS = "#include <map>\n#include <iostream>\n#include <thrust/device_vector.h>\n"
LAUNCH = "void run(torch::Tensor x) {{ kernel<<<1, 32>>>(x.data_ptr<float>()); {host} }}\n"


@dataclass(frozen=True)
class Case:
    """A source and its flags. `says` is contained in nvcc's output. `fails` tells whether nvcc rejects the source."""

    source: str
    says: str
    flags: tuple[str, ...] = ()
    fails: bool = False
    architectures: tuple[str, ...] = ("90",)


def kernel(device: str = "", host: str = "", before: str = "", headers: str = "") -> str:
    """Returns a source with a kernel and a function that launches it. The texts are inserted into or before them."""
    body = f"__global__ void kernel(float* x) {{\n  {device}\n  x[threadIdx.x] *= 2;\n}}\n"
    return headers + before + body + LAUNCH.format(host=host)


UNUSED = kernel("int j;")
BOTH = kernel("int j;", "int k;")

FIRST = {
    "unused variable in a kernel": Case(kernel("int j;", headers=HEADERS), "was declared but never referenced"),
    "unused variable in host code": Case(kernel(host="int k;"), "never referenced", ("-Xcompiler", "-Wall")),
    "error behind a megabyte of headers": Case(kernel("y = 1;", headers=HEADERS), '"y" is undefined', fails=True),
}
REST = {
    "warnings in device and host code": Case(BOTH, "never referenced", ("-Xcompiler=-Wall,-Wextra",)),
    "error in host code": Case(kernel(host="int k = missing;"), '"missing" is undefined', fails=True),
    "several errors": Case(kernel("y = 1; z = 2;", "w = 3;"), '"z" is undefined', fails=True),
    "warning and error": Case(kernel("int j;", "w = 3;"), '"w" is undefined', fails=True),
    "#line": Case(kernel("int j;", before='#line 100 "mine.cu"\n'), "mine.cu(101)"),
    "#line and an error": Case(kernel("y = 1;", before='#line 100 "mine.cu"\n'), "mine.cu(101)", fails=True),
    "#warning": Case(kernel(before="#warning planted\n"), "planted"),
    "#error": Case(kernel(before="#error planted\n"), "planted", fails=True),
    "ptxas -v": Case(kernel(), "ptxas info", ("-Xptxas", "-v")),
    "ptxas -v and a warning": Case(UNUSED, "ptxas info", ("-Xptxas=-v",)),
    "--resource-usage": Case(UNUSED, "ptxas info", ("--resource-usage",)),
    "-lineinfo": Case(UNUSED, "never referenced", ("-lineinfo",)),
    "-G": Case(UNUSED, "never referenced", ("-G",)),
    "several architectures": Case(UNUSED, "never referenced", architectures=("80", "90")),
    "several architectures, ptxas -v": Case(BOTH, "sm_80", ("-Xptxas", "-v"), architectures=("80", "86", "90")),
    "several architectures and an error": Case(kernel("y = 1;"), "undefined", fails=True, architectures=("80", "90")),
    "an architecture of the author's": Case(UNUSED, "never referenced", ("-gencode=arch=compute_90a,code=sm_90a",)),
    "an architecture that is gone": Case(UNUSED, "nvcc fatal", ("-arch=sm_30",), fails=True),
    "a flag that does not exist": Case(UNUSED, "nvcc fatal", ("--no-such-flag",), fails=True),
    "signs compared": Case(kernel(host="unsigned u = x.numel(); if (-1 < u) x.zero_();"), "comparison",
                           ("-Xcompiler", "-Wextra")),
    "a variable that is set and not used": Case(kernel("int j; j = 1;"), "never used"),
    "no return": Case(kernel(before="__device__ int f(int a) { if (a) return 1; }\n"), "missing return"),
    "printf's format": Case(kernel('printf("%d", 1.0f);'), "argument"),
    "a shift that overflows": Case(kernel("int j = 1 << 40; x[0] = j;"), "shift count"),
    "a pointless comparison": Case(kernel("unsigned u = threadIdx.x; if (u < 0) x[0] = 1;"), "pointless"),
    "an expression without effect": Case(kernel("x == x;"), "no effect"),
    "deprecated in torch": Case(kernel(host="x.data<float>();"), "deprecated"),
    "warnings as errors": Case(UNUSED, "never referenced", ("-Werror", "all-warnings"), fails=True),
    "a warning that is switched off": Case(UNUSED, "", ("-diag-suppress", "177")),
    "text beyond ASCII": Case(kernel('int j; /* für 行 */ printf("ü");'), "never referenced"),
    "an error in a template": Case(
        kernel("twice(nullptr);", before="template <typename T> __device__ T twice(T x) { return x * 2; }\n"),
        "detected during", fails=True),
    "a static assertion": Case(kernel('static_assert(sizeof(float) == 3, "planted");'), "planted", fails=True),
    "too much shared memory": Case(kernel("__shared__ float s[100000]; s[threadIdx.x] = x[0]; x[1] = s[0];"),
                                   "too much shared data", fails=True),
    "PTX that does not exist": Case(kernel('asm("no.such.op;");'), "ptxas", fails=True),
    "an instruction that does not exist": Case(kernel(host='asm("notaninstruction");'), "no such instruction",
                                               fails=True),
}
