"""Says what to do about errors that authors of kernels often get.

To add a hint, add a line to `HINTS`, and to `tests/compile/test_hints.py` a source with the error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LABEL = "hint: "
"""How the line of a hint begins."""
_Q = "[\"'`\u2018\u2019]"
"""A quotation mark of a compiler."""
_UNKNOWN = re.compile("undefined|declared|has no member|is not a member|does not name a type|class or namespace name")
"""Errors about a name that the compiler does not know."""


@dataclass(frozen=True)
class Hint:
    """What to do about an error."""

    message: str
    """A regular expression that the compiler's message contains."""
    advice: str
    """What to do."""
    line: str = ""
    """A regular expression that the author's line contains."""

    def fits(self, message: str, line: str) -> bool:
        """Whether the hint is about an error with this message, in this line of the author."""
        return bool(re.search(self.message, message) and re.search(self.line, line))


HEADERS = {
    r"C10_CUDA_(?:KERNEL_LAUNCH_)?CHECK": "c10/cuda/CUDAException.h",
    r"getCurrentCUDA(?:Stream|BlasHandle)|getCurrentDeviceProperties": "ATen/cuda/CUDAContext.h",
    r"(?:Optional)?CUDAGuard": "c10/cuda/CUDAGuard.h",
    r"cuda(?:Stream|Error|Event)_t|cuda(?:Malloc|Memcpy|Memset|GetLastError)\w*": "cuda_runtime.h",
    r"wmma": "mma.h",
    r"cooperative_groups|cg": "cooperative_groups.h",
    r"__half2?|half2?|__float2half\w*|__half2float": "cuda_fp16.h",
    r"__nv_bfloat162?|__float2bfloat16\w*|__bfloat162float": "cuda_bf16.h",
    r"__nv_fp8\w+": "cuda_fp8.h",
    r"curand\w*": "curand_kernel.h",
    r"cublas\w+": "cublas_v2.h",
    r"(?:FLT|DBL)_(?:MAX|MIN|EPSILON)": "cfloat",
    r"(?:U?INT\d+|U?INT|U?LLONG)_(?:MAX|MIN)": "climits",
    r"INFINITY|NAN|M_PI|M_SQRT\w+": "cmath",
    r"numeric_limits": "limits",
}
"""The header that declares a name."""

_CPP_ONLY = ("cpp_sources cannot contain kernels; put them and the functions that launch them into cuda_sources, and "
             "only declarations of these functions into cpp_sources")
_BINDINGS = "remove PYBIND11_MODULE and name its functions in `functions`: load_inline writes the bindings"
HINTS = (
    Hint(r"\bPyInit_\w+", _BINDINGS),
    Hint("redefinition|previously|already been defined|no storage class", _BINDINGS, line=r"^\s*PYBIND11_MODULE\b"),
    Hint(rf"{_Q}AT_CHECK{_Q}", "PyTorch has no AT_CHECK any more; use TORCH_CHECK"),
    Hint(r"\bTHC(?:/|State|udaCheck)", "PyTorch has no THC any more; use ATen/cuda/CUDAContext.h and C10_CUDA_CHECK"),
    Hint("DeprecatedTypeProperties", "use tensor.scalar_type() instead of tensor.type()"),
    Hint("annotation on lambda requires|extended lambda", "add extra_cuda_cflags=['--extended-lambda']"),
    Hint("Unsupported gpu architecture", "this nvcc knows no such architecture; leave -arch and -gencode out of "
                                         "extra_cuda_cflags: inlinebench builds for the GPU of the run"),
    Hint("a declaration in cuda_sources is not enough",
         "add the function's declaration, such as `torch::Tensor name(torch::Tensor x);`, to cpp_sources"),
    Hint(r"operand types are:.*\b__(?:half|nv_bfloat16)|(?:from|to) \"__(?:half|nv_bfloat16)2?\"",
         "PyTorch's flags disable operators and conversions of __half, and conversions of __nv_bfloat16; use functions "
         "such as __half2float, __float2half and __hmul"),
    Hint("uses too much shared data",
         "more than 48 KiB must be dynamic: `extern __shared__`, its bytes in the launch, and before it "
         "cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)"),
    Hint("too much (?:global )?constant data", "constant memory has 64 KiB; pass larger tables as tensors"),
    Hint(rf"{_Q}__(?:shfl(?:_down|_up|_xor)?|ballot|any|all){_Q}",
         "use the function with this name and _sync, whose first argument is a mask: __shfl_down_sync(0xffffffff, "
         "value, offset)"),
    Hint(r'calling a __host__ function\("(?!std::|at::|c10::|torch::).* from a __(?:global|device)__',
         "mark the function that the kernel calls with __device__"),
    Hint("incompatible with previous",
         "`extern __shared__` arrays of one name need one type; declare unsigned char, and cast it in each kernel",
         line="extern.*__shared__"),
    Hint(r"function .atomic.*argument types are: \((?:c10|at)::(?:Half|BFloat16) \*",
         "cast the pointer and the value to __half or __nv_bfloat16: CUDA has no atomics for PyTorch's types"),
    Hint(rf"{_Q}__(?:global|device)__{_Q} does not name a type", _CPP_ONLY),
    Hint(r"expected primary-expression before [^ ]<", _CPP_ONLY, line="<<<"),
    Hint("undefined reference to `cublas", "add extra_ldflags=['-lcublas']"),
)
"""What to do about errors. The first one that fits counts."""
_BY_HEADER = tuple((re.compile(rf"(?<!\w)(?:{names})(?!\w)"), header) for names, header in HEADERS.items())


def hint(message: str, line: str = "") -> str:
    """Returns the line with a hint about an error, or "" if there is none.

    `message` is the compiler's, and `line` the author's line that has the error.
    """
    found = next((each.advice for each in HINTS if each.fits(message, line)), "") or _missing_header(message, line)
    return f"{LABEL}{found}" if found else ""


def _missing_header(message: str, line: str) -> str:
    """Returns which header to include for a name that the compiler does not know, or ""."""
    if not _UNKNOWN.search(message):
        return ""
    scopes = " ".join(re.findall(r"\w+(?=\s*::)|(?<=::)\w+", line))
    names = scopes if "class or namespace" in message else " ".join(re.findall(rf"{_Q}([\w:]+){_Q}", message))
    header = next((header for pattern, header in _BY_HEADER if pattern.search(names)), "")
    return f"add #include <{header}>" if header else ""
