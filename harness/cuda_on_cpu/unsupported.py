"""Finds constructs that cannot run on the CPU, by name, and reports them with their line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from .conditionals import split_directive
from .errors import Unsupported
from .functions import Function, find_functions
from .tokens import Code, Token

_INCLUDE_DIR = Path(__file__).resolve().parent / "include"
# Libraries whose names are refused where they are used. Including their headers is harmless.
_LIBRARY_HEADERS = re.compile(
    r"(cutlass|cute|cub|thrust|cuda|nvtx3|ATen/cudnn)/.*|(cublas|cudnn|cusparse|cusolver|cufft|curand|texture_|surface_).*"
    r"|(nccl|nvrtc|cudaTypedefs|cuda_texture_types|cuda_fp[468]|nvToolsExt)\.h"
    r"|ATen/cuda/(CUDABlas|CUDASparse.*|CUDAGenerator.*|PhiloxCudaState)\.h"
)
# Its functions have the names of cublas_v2.h, but other parameters.
_LEGACY_CUBLAS = "cublas.h"
# Folders of CUDA's and torch's headers. Only headers with a replacement in include/ are supported.
_STAND_INS = re.compile(r"(cooperative_groups|c10/cuda|ATen/cuda|ATen/native/cuda|torch/csrc/cuda)/.*")
_CUBLAS = frozenset(re.findall(r"\b(?:cublas|getCurrentCUDABlas|CUBLAS_|CUDA_R_)\w+",
                               (_INCLUDE_DIR / "cuda_on_cpu" / "cublas.h").read_text(encoding="utf-8")))
"""The names of cuBLAS that are supported."""
_CUB = frozenset(word for header in (_INCLUDE_DIR / "cuda_on_cpu").glob("cub_*.h")
                 for word in re.findall(r"\w+", header.read_text(encoding="utf-8")))
"""All words of the headers for CUB, so a name of CUB's that is not among them is not supported."""

_WORDS = [
    (r"wgmma\w*", "wgmma"),
    (r"bmma_sync", "tensor cores for numbers of fewer than 8 bits"),
    (r"cutlass|cute|CUTLASS_\w+|CUTE_\w+", "CUTLASS"),
    (r"thrust", "Thrust"),
    (r"CUtensorMap\w*|cuTensorMap\w*", "TMA (tensor maps)"),
    (r"cp_async_bulk\w*", "TMA"),
    (r"texture|cudaTextureObject_t|tex[123]D\w*|cudaArray\w*|cudaCreateTextureObject|cudaBindTexture\w*", "textures"),
    (r"cudaSurfaceObject_t|surf\dD(read|write)\w*", "surfaces"),
    (r"cublas[A-Z]\w*|getCurrentCUDABlas\w*|CUBLAS(LT|_COMPUTE)_\w+|CUDA_[RC]_\d\w*", "this part of cuBLAS"),
    (r"cudnn[A-Z]\w*|getCudnnHandle", "cuDNN"),
    (r"cusparse[A-Z]\w*|getCurrentCUDASparseHandle", "cuSPARSE"),
    (r"cusolver\w*", "cuSOLVER"),
    (r"cufft[A-Z]\w*", "cuFFT"),
    # Not every word that begins with curand, because solutions have names such as curand_states.
    (r"curandState(Test|MRG32k3a|Mtgp32|Sobol|ScrambledSobol)\w*|curandMakeMTGP32\w*|curand_(mtgp32|MRG)\w*|"
     r"curandDirectionVector\w*|curandGet(Direction|Scramble)\w*", "this generator of cuRAND"),
    (r"curand_(poisson|_?discrete|box_muller|binary_search|M2)\w*|curand(Distribution|Discrete|Histogram|Method)\w*",
     "this distribution of cuRAND"),
    (r"curand(Create|Destroy|GetVersion|GetProperty|SetStream|SetPseudo|SetQuasi|SetGenerator)\w*|"
     r"curand(Status|RngType|Ordering|Generator)(_\w+)?|curandGenerate|"
     r"curandGenerate(Seeds|LongLong|Uniform|Normal|LogNormal|Poisson|Binomial)\w*", "cuRAND's interface for the host"),
    (r"CUDAGeneratorImpl|PhiloxCudaState|getDefaultCUDAGenerator", "PyTorch's generator for CUDA"),
    (r"nvtx[A-Z]\w*", "NVTX"),
    (r"nvrtc[A-Z]\w*", "NVRTC"),
    (r"nccl[A-Z]\w*", "NCCL"),
    (r"cuModule\w+|cuLaunch\w+|cuCtx\w+|cuMem[A-Z]\w*|cuFunc[A-Z]\w*|cuInit|PFN_cu\w+|cudaGetDriverEntryPoint\w*",
     "the driver API"),
    (r"cudaGraph\w*|cudaStreamBeginCapture|cudaStreamEndCapture|CUDAGraph", "CUDA graphs"),
    (r"cudaLaunchKernelEx\w*", "cluster and extended launches"),
    (r"__cluster_dims__|this_cluster|cluster_group|cluster_dims", "thread block clusters"),
    (r"__nv_\w*fp[468]\w*", "8-bit and smaller floats"),
    (r"cudaIpc\w+|cudaDeviceEnablePeerAccess|cudaMemcpyPeer\w*", "access to other devices"),
]
# These words are also ordinary names, so they count only before `::` or `<`, and after `using namespace`.
_QUALIFIERS = {"thrust", "cute", "cutlass", "texture"}
_LIBCUXX = set(
    [
        "std",
        "pipeline",
        "barrier",
        "ptx",
        "memcpy_async",
        "make_pipeline",
        "aligned_size_t",
        "pipeline_shared_state",
        "device",
        "annotated_ptr",
        "counting_semaphore",
        "latch",
        "access_property",
        "associate_access_property",
        "barrier_arrive_tx",
    ]
)

_CUDA_STD = {"plus", "memory_order", *(f"memory_order_{order}" for order in
                                       ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"))}
"""The names of cuda::std that are supported."""

_FENCES = {"__nanosleep", "__threadfence", "__threadfence_block", "__threadfence_system", "__syncwarp"}
_POLLS = {"atomicAdd", "atomicOr", "atomicSub", "atomicXor"}
_POLLING_PTX = re.compile(r"\bld\.[\w.:]*\b(acquire|relaxed|volatile)\b")
_ASM = {"asm", "__asm__", "__asm"}


def drop_library_headers(code: Code) -> None:
    """Removes each #include of a library that cannot run on the CPU. Raises Unsupported for headers whose names could
    not be recognized where they are used."""
    for position, token in enumerate(code.tokens):
        if token.kind != "directive":
            continue
        name, rest = split_directive(token.text)
        match = re.match(r"""\s*[<"]([^>"]+)[>"]""", rest)
        if name != "include" or not match:
            continue
        header = match.group(1)
        if header == _LEGACY_CUBLAS or (_STAND_INS.fullmatch(header) and not _is_dropped(header)):
            if not (_INCLUDE_DIR / header).exists():
                raise Unsupported(f"#include <{header}>", token.line,
                                  "this header is not available on the CPU; run with a CUDA device")
        elif _is_dropped(header):
            code.tokens[position] = Token("space", "\n" * token.text.count("\n"), token.line)


def _is_dropped(header: str) -> bool:
    return _LIBRARY_HEADERS.fullmatch(header) is not None and not (_INCLUDE_DIR / header).exists()


def refuse_words(code: Code) -> None:
    """Raises Unsupported for a name of a library or hardware feature."""
    for position in code.words():
        text = code.text(position)
        line = code.tokens[position].line
        if text == "cuda" and _is_libcuxx(code, position):
            construct = f"cuda::{code.text(code.after(code.after(position)))}"
            raise Unsupported(construct, line, "libcu++ is not available on the CPU; run with a CUDA device")
        elif text == "cub":
            _refuse_part_of_cub(code, position)
        elif text == "blas" and code.text(code.before(code.before(position))) == "cuda":
            raise Unsupported("at::cuda::blas", line, "it is not available on the CPU; run with a CUDA device")
        elif text == "experimental" and code.text(owner := code.before(code.before(position))) in ("nvcuda", "wmma"):
            construct = f"{code.text(owner)}::experimental"
            raise Unsupported(construct, line, "experimental features are not available on the CPU; run with a CUDA "
                              "device")
        else:
            _refuse_word(code, position)


def _refuse_part_of_cub(code: Code, position: int) -> None:
    line, before = code.tokens[position].line, code.before(position)
    if code.text(before) == "namespace" and code.text(code.before(before)) == "using":
        raise Unsupported("using namespace cub", line, "on the CPU the parts of CUB that a source uses are found by "
                          "`cub::`; write it before each name, or run with a CUDA device")
    name = "cub"
    while code.text(joint := code.after(position)) == "::" and code.is_word(position := code.after(joint)):
        name += f"::{code.text(position)}"
        if code.text(position) not in _CUB:
            raise Unsupported(name, line, "this part of CUB cannot run on the CPU; run with a CUDA device")


def _refuse_word(code: Code, position: int) -> None:
    text = code.text(position)
    for pattern, what in _WORDS:
        if not re.fullmatch(pattern, text):
            continue
        before = code.before(position)
        used = code.text(before) == "namespace" and code.text(code.before(before)) == "using"
        if text in _QUALIFIERS and not used and code.text(code.after(position)) not in ("::", "<"):
            continue
        if text in _CUBLAS or code.text(before) in (".", "->"):
            continue
        raise Unsupported(text, code.tokens[position].line, f"{what} cannot run on the CPU; run with a CUDA device")


def _is_libcuxx(code: Code, position: int) -> bool:
    joint, before = code.after(position), code.before(position)
    outermost = code.text(joint) == "::" and (code.text(before) != "::" or not code.is_word(code.before(before)))
    name = code.after(joint)
    if code.text(name) == "std" and code.text(code.after(code.after(name))) in _CUDA_STD:
        return False
    return outermost and code.text(name) in _LIBCUXX


def refuse_device_constructs(code: Code) -> None:
    """Raises Unsupported for a launch inside a kernel, and a loop that waits for another block."""
    functions = [function for function in find_functions(code) if function.on_device]
    launching = _launching_on_both(code, functions)
    for function in functions:
        if not _is_also_for_host(code, function):
            _refuse_nested_launch(code, function, launching)
        _refuse_waiting(code, function)


def _launching_on_both(code: Code, functions: Sequence[Function]) -> set[str]:
    """Returns the functions for host and device that launch kernels, themselves or through each other."""
    both = [function for function in functions if _is_also_for_host(code, function)]
    launching: set[str] = set()
    while found := {function.name for function in both if _first_launch(code, function, launching)} - launching:
        launching |= found
    return launching


def _is_also_for_host(code: Code, function: Function) -> bool:
    return any(code.text(here) == "__host__" for here in range(function.header, function.opening))


def _refuse_nested_launch(code: Code, function: Function, launching: Collection[str]) -> None:
    if position := _first_launch(code, function, launching):
        through = "" if code.text(position) == "<<<" else f" through `{code.text(position)}`"
        raise Unsupported(f"a launch inside `{function.name}`{through}", code.tokens[position].line,
                          "dynamic parallelism cannot run on the CPU; run with a CUDA device")


def _first_launch(code: Code, function: Function, launching: Collection[str]) -> int | None:
    """Returns the position of a launch in a function, or of a call of a function in `launching`."""
    for position in range(function.opening, function.closing):
        calls = code.text(position) in launching and code.text(code.after(position)) in ("(", "<")
        if calls or code.text(position) == "<<<":
            return position
    return None


def _refuse_waiting(code: Code, function: Function) -> None:
    for position in range(function.opening, function.closing):
        if code.text(position) != "while":
            continue
        opening = code.after(position)
        closing = code.closing(opening)
        body = code.after(closing)
        condition = range(opening, closing)
        if code.text(body) == "{":
            inside = range(body + 1, code.closing(body))
        elif code.text(body) == ";" and code.text(before := code.before(position)) == "}":
            inside = range(code.opening(before) + 1, before)  # do { } while ();
        else:
            inside = range(body, _end_of_statement(code, body))
        if _only_waits(code, function, condition, inside):
            raise Unsupported(
                f"a loop in `{function.name}` that waits for another block",
                code.tokens[position].line,
                "blocks may run one after the other on the CPU, so it may never end; run with a CUDA device",
            )


def _end_of_statement(code: Code, position: int) -> int:
    while position < len(code) and code.text(position) != ";":
        position += 1
    return position


def _only_waits(code: Code, function: Function, condition: range, body: range) -> bool:
    """Whether a loop only waits for memory that others write: it polls with an atomic that changes nothing, or reads a
    volatile and does nothing else."""
    everywhere = [*condition, *body]
    if _polls_by_ptx(code, everywhere):
        return True
    if any(code.text(here) in _POLLS and _adds_zero(code, here) for here in everywhere):
        return True
    words = [code.text(here) for here in body if code.is_word(here)]
    idle = all(word in _FENCES for word in words)
    if not idle:
        return False
    volatile = {"volatile", "__ldcv", "__ldcg", "atomicAdd", "ld_acquire"} | _volatile_names(code, function)
    return any(code.text(here) in volatile or _loads(code, here) for here in condition)


def _loads(code: Code, position: int) -> bool:
    """Whether a word calls the load of a cuda::atomic."""
    return code.text(position) == "load" and code.text(code.before(position)) in (".", "->")


def _polls_by_ptx(code: Code, loop: Sequence[int]) -> bool:
    """Whether a loop reads memory that others write, by PTX or through a function with such PTX, and calls nothing
    else."""
    readers = {function.name for function in find_functions(code)
               if _has_polling_ptx(code, range(function.opening, function.closing))}
    calls = {code.text(here) for here in loop if code.is_word(here) and code.text(code.after(here)) == "("}
    polls = _has_polling_ptx(code, loop) or bool(calls & readers)
    return polls and calls <= readers | _FENCES | _ASM | {"if", "volatile"}


def _has_polling_ptx(code: Code, positions: Iterable[int]) -> bool:
    return any(code.tokens[here].kind == "string" and _POLLING_PTX.search(code.text(here)) for here in positions)


def _adds_zero(code: Code, position: int) -> bool:
    opening = code.after(position)
    closing = code.closing(opening)
    last = code.before(closing)
    return code.text(last) in ("0", "0u", "0U", "0x0") and code.text(code.before(last)) == ","


def _volatile_names(code: Code, function: Function) -> set[str]:
    """Returns the names declared volatile in the function or before it: the words up to the next separator."""
    names: set[str] = set()
    for position in code.words("volatile"):
        if position >= function.closing:
            break
        here = code.after(position)
        while here < len(code) and code.text(here) not in (";", ",", ")", "=", "(", "{", "["):
            if code.is_word(here):
                names.add(code.text(here))
            here = code.after(here)
    return names - {"int", "unsigned", "float", "double", "long", "char", "short", "bool", "const", "__restrict__"}
