"""What the translation changes, keeps and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cuda_on_cpu import Unsupported, translate
from cuda_on_cpu.conditionals import drop_inactive
from cuda_on_cpu.device_arrays import BEGIN, END
from cuda_on_cpu.functions import find_functions
from cuda_on_cpu.tokens import Code, join, tokenize

_KERNELS = sorted(Path(__file__).parent.glob("*/*.cu"))

_PLAIN = [
    "int main() { return a < b && c >> d > e; }",
    'auto s = R"x(__shared__ kernel<<<1, 2>>>(a);)x"; char c = \'"\'; // asm("bar")\n',
    "template <class T> std::vector<std::vector<T>> f(std::map<int, std::pair<T, T>> x) { return {}; }",
    "#define A(x) \\\n  (x + 1)\n#if A(2) > 3\nint a = 1'000'000;\n#endif\n",
    "/* wmma::fragment, cublasCreate */ int cudnn = 3; bool cutlass = false;",
]


@pytest.mark.parametrize("source", _PLAIN)
def test_source_without_cuda_is_unchanged(source: str) -> None:
    assert translate(source) == source
    assert translate(source, cuda=False) == source


# Text like C++ with many of the tokens that the translator searches for.
_PIECES = st.sampled_from(
    [
        "kernel",
        "<<<",
        ">>>",
        "<",
        ">",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        ";",
        ",",
        "\n",
        " ",
        "__shared__",
        "extern",
        "float",
        "a",
        "::",
        "#define",
        "#if",
        "#endif",
        "#else",
        "0",
        '"',
        "'",
        "//",
        "/*",
        "*/",
        "\\\n",
        "\\",
        'R"(',
        ')"',
        "is_cuda",
        ".",
        "kCUDA",
        "=",
        "asm",
        "while",
        "__global__",
        "void",
        "__CUDA_ARCH__",
        "defined",
        "namespace",
        "é",
        "\t",
        "this_grid",
        "volatile",
    ]
)
_TEXT = st.one_of(
    st.text(max_size=60), st.lists(_PIECES, max_size=40).map("".join), st.lists(_PIECES, max_size=40).map(" ".join)
)


@given(_TEXT)
def test_joined_tokens_are_the_text(text: str) -> None:
    tokens = tokenize(text)
    assert join(tokens) == text
    line = 1
    for token in tokens:
        assert token.line == line
        line += token.text.count("\n")
    assert join(drop_inactive(tokens)) == text


@given(_TEXT)
@example('A/R"(\n)"__shared__')
def test_any_text_keeps_its_lines_or_is_refused(text: str) -> None:
    for cuda in (True, False):
        try:
            translated = translate(text, cuda=cuda)
        except Unsupported as refusal:
            assert 1 <= refusal.line <= text.count("\n") + 1
        else:
            assert translated.count("\n") == text.count("\n")


@pytest.mark.parametrize("path", _KERNELS, ids=lambda path: path.stem)
def test_real_sources_keep_their_lines(path: Path) -> None:
    source = path.read_text()
    lines, translated = source.splitlines(), translate(source).splitlines()
    assert len(lines) == len(translated)
    for before, after in zip(lines, translated, strict=True):
        if not path.stem.startswith("ptx_") and not any(mark in before for mark in ("<<<", "__", "[=]", "void*)")):
            assert "cuda_on_cpu" in after or without_pragmas(after) in (before, "", ";")


def without_pragmas(text: str) -> str:
    return text.replace(BEGIN, "").replace(END, "")


@pytest.mark.parametrize("body", ["float a[n];", "float* p, a[n];", "auto b = 1;\n  T<int> a[n * 2];"])
def test_an_array_of_variable_length_is_refused_in_device_code_alone(body: str) -> None:
    device, host = f"__global__ void k(int n) {{ {body} }}", f"void f(int n) {{ {body} }}"
    assert translate(f"{device}\n{host}") == f"__global__ void k(int n) {{{BEGIN} {body} {END}}}\n{host}"


@pytest.mark.parametrize("body", ["float a[4], b[2][3];", "a[n] = b[n];", "return a[n];", "if (n) a[n]++; else b[n]--"])
def test_other_device_code_has_no_pragmas(body: str) -> None:
    source = f"__device__ float f(int n) {{ {body}; }}"
    assert translate(source) == source


@pytest.mark.parametrize(
    ("source", "callee", "configuration"),
    [
        ("k<<<1, 2>>>(x);", "k", "1, 2"),
        ("ns::k<float, 4><<<g, b, 0, s>>>(x);", "ns::k<float, 4>", "g, b, 0, s"),
        ("k<(a > b), sizeof(T)><<<dim3(1), {2, 3}>>>(x);", "k<(a > b), sizeof(T)>", "dim3(1), {2, 3}"),
        ("if (n) k<<<n >> 8, 256>>>(x);", "k", "n >> 8, 256"),
        ("else k<A<B<int>>><<<f<int>(n), 1>>>(x);", "k<A<B<int>>>", "f<int>(n), 1"),
        ("(*pointer)<<<1, 1>>>(x);", "(*pointer)", "1, 1"),
        ("table[i]<<<1, 1>>>(x);", "table[i]", "1, 1"),
        ("this->f.template k<T><<<1, 1>>>(x);", "this->f.template k<T>", "1, 1"),
        ("::k<<<1, 1>>>(x);", "::k", "1, 1"),
        ("return get<T>(a)<<<1, 1>>>(x);", "get<T>(a)", "1, 1"),
    ],
)
def test_launches_keep_callee_and_configuration(source: str, callee: str, configuration: str) -> None:
    translated = translate(source)
    assert (
        f"{{ {callee}(cuda_on_cpu_arguments...); }}, ::cuda_on_cpu::Configuration({configuration}))(x);" in translated
    )
    start = source.index(callee)
    assert translated.startswith(source[:start] + "::cuda_on_cpu::Launcher(")


def test_a_launch_names_its_arguments_for_messages() -> None:
    translated = translate("k<<<1, 1>>>(0, x.data_ptr<float>(), reinterpret_cast<__half*>(this->sums.data_ptr()), n);")
    assert '__LINE__, "x\\nsums\\nn", ' in translated


@pytest.mark.parametrize(
    ("arguments", "inner", "outer"),
    [
        ("x, 0, n", "cuda_on_cpu_argument_0, 0, cuda_on_cpu_argument_2", "x n"),
        ("NULL", "NULL", ""),
        ("x, {1, 2}", "cuda_on_cpu_argument_0, { 1 , 2 }", "x"),
        ("f<a, 0, b>(x), n", "cuda_on_cpu_arguments...", "f<a, 0, b>(x) n"),
        ("0, __VA_ARGS__", "cuda_on_cpu_arguments...", "0 __VA_ARGS__"),
    ],
)
def test_literal_arguments_move_to_the_inner_call(arguments: str, inner: str, outer: str) -> None:
    translated = translate(f"k<<<1, 1>>>({arguments});")
    assert f"k({inner});" in translated
    passed = translated[translated.index("Configuration(1, 1))(") + len("Configuration(1, 1))(") :].rstrip(";")[:-1]
    assert passed.replace(",", "").split() == outer.replace(", n", " n").replace(",", "").split()


@pytest.mark.parametrize(
    ("declaration", "names"),
    [
        ("__shared__ float a[10];", ["a"]),
        ("__shared__ float a[10], b[N < 4 ? 1 : 2][3], c;", ["a", "b", "c"]),
        ("static __shared__ __align__(16) T tile[M][N + 1];", ["tile"]),
        ("volatile __shared__ std::array<float, 3> v;", ["v"]),
        ("__shared__ typename X<T>::Y y;", ["y"]),
        ("__shared__ struct { int x, y; } s;", ["s"]),
        ("__shared__ alignas(128) half x[2];", ["x"]),
    ],
)
def test_names_of_shared_variables_are_found(declaration: str, names: list[str]) -> None:
    translated = translate(f"__global__ void k() {{\n  {declaration}\n}}")
    assert [f"auto& {name} = []() -> auto& {{" in translated for name in names] == [True] * len(names)
    assert translated.count("::cuda_on_cpu::shared_variable<") == len(names)


def test_a_shared_declaration_over_several_lines_keeps_its_lines() -> None:
    source = (
        "__global__ void k() {\n  __shared__ float a[10],  // first\n      b[20]  /* second */ // third\n;\n  x();\n}"
    )
    translated = translate(source)
    assert translated.split("\n")[4:] == source.split("\n")[4:]
    assert "//" not in translated and "/*" not in translated
    macro = translate("#define M(T, n) \\\n  __shared__ T a_##n[n], \\\n  b[2]; \\\n  x()\nint y;")
    assert macro.count("\\\n") == 3 and macro.endswith("x()\nint y;")


def test_dynamic_shared_memory_at_file_scope_moves_into_functions() -> None:
    translated = translate(
        "extern __shared__ float smem[];\n__global__ void k() { smem[0] = 1; }\nvoid other() {}\n"
        "__device__ int f(int smem_size) { return 0; }"
    )
    lines = translated.split("\n")
    assert lines[0].strip() == ""
    assert "auto* smem = []() -> auto* {" in lines[1]
    assert lines[2:] == ["void other() {}", "__device__ int f(int smem_size) { return 0; }"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("TORCH_CHECK(x.is_cuda());", "TORCH_CHECK(x.is_cpu());"),
        ("#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x)", "#define CHECK_CUDA(x) TORCH_CHECK(x.is_cpu(), #x)"),
        ("t.options().device(torch::kCUDA);", "t.options().device(torch::kCPU);"),
        ("torch::Device(torch::kCUDA, 0)", "torch::Device(torch::kCPU, 0)"),
        ("x.device().is_cuda() && x->is_cpu()", "x.device().is_cpu() && x->is_cuda()"),
        ("x.device().type() == at::kCUDA", "x.device().type() == at::kCPU"),
        ("x.device().type() != at::kCPU", "x.device().type() != at::kCUDA"),
        ("x.device().type() == c10::DeviceType::CPU", "x.device().type() == c10::DeviceType::CUDA"),
        ("AT_ASSERTM(x.type().is_cuda())", "AT_ASSERTM(x.device().is_cpu())"),
        ("c10::kCPU == d", "c10::kCUDA == d"),
        ("y = x.to(at::kCPU);", "y = x.to(at::kCPU);"),
        ("at::DeviceType::CUDA", "at::DeviceType::CPU"),
        ('torch::Device("cuda:0")', 'torch::Device("cpu")'),
        ('torch::Device d("cuda");', 'torch::Device d("cpu");'),
        ('options.device("cuda")', 'options.device("cpu")'),
        ('m.def("cuda", &f); TORCH_CHECK(false, "cuda")', 'm.def("cuda", &f); TORCH_CHECK(false, "cuda")'),
        ("TORCH_LIBRARY_IMPL(ops, CUDA, m)", "TORCH_LIBRARY_IMPL(ops, CPU, m)"),
        ("bool is_cuda = x.is_cuda();", "bool is_cuda = x.is_cpu();"),
        ("y = x.cuda();", "y = x.cpu();"),
        ("at::cuda::getCurrentCUDAStream()", "at::cuda::getCurrentCUDAStream()"),
    ],
)
def test_devices_are_rewritten(source: str, expected: str) -> None:
    assert translate(source) == expected
    assert translate(source, cuda=False) == expected


@pytest.mark.parametrize(
    ("source", "construct", "line"),
    [
        ('#define CP(x) \\\n  asm("cp.async.ca")', "inline PTX `cp.async.ca`", 2),
        ("# include <cub/cub.cuh>\n\ncub::DeviceSelect::If(p, n, x, y, m, c, f);", "cub::DeviceSelect", 3),
        ("cub::BlockReduce<int, 64> r;\ncub :: DeviceReduce::ReduceByKey(p);", "cub::DeviceReduce::ReduceByKey", 2),
        ("#include <cub/cub.cuh>\nusing namespace cub;", "using namespace cub", 2),
        ('#include "cutlass/gemm/device/gemm.h"\nusing namespace cutlass;', "cutlass", 2),
        ("#include <cute/tensor.hpp>\nCUTE_DEVICE void f();", "CUTE_DEVICE", 2),
        ("#include <cublas.h>", "#include <cublas.h>", 1),
        ("#include <cuda_fp8.h>\n__nv_cvt_float_to_fp8(x, a, b);", "__nv_cvt_float_to_fp8", 2),
        ("#include <ATen/cuda/CUDABlas.h>\nat::cuda::blas::gemm<float>(x);", "at::cuda::blas", 2),
        ("::cuda::std::array<int, 3> p;", "cuda::std", 1),
        ("cuda::std::plus<> p;\ncuda::std::array<int, 3> a;", "cuda::std", 2),
        ("#include <ATen/native/cuda/Loops.cuh>", "#include <ATen/native/cuda/Loops.cuh>", 1),
        ("nvcuda::experimental::pipeline p;", "nvcuda::experimental", 1),
        ("\nwmma::fragment<wmma::matrix_a, 8, 8, 32, wmma::experimental::precision::s4> f;", "wmma::experimental", 2),
        ("bmma_sync(d, a, b, c, bmmaBitOpXOR);", "bmma_sync", 1),
        ("#include <cublas_v2.h>\ncublasSsymm(handle);", "cublasSsymm", 2),
        ("auto h = at::cuda::getCurrentCUDABlasLtHandle();", "getCurrentCUDABlasLtHandle", 1),
        ("cublasGemmEx(h, CUDA_R_8I, CUBLAS_COMPUTE_32I);", "CUDA_R_8I", 1),
        ("cudaTextureObject_t t;", "cudaTextureObject_t", 1),
        ("texture<float, 1> t;", "texture", 1),
        ("CUtensorMap map;", "CUtensorMap", 1),
        ("__global__ void k() {\n  child<<<1, 1>>>();\n}", "a launch inside `k`", 2),
        ("__host__ __device__ void f() { child<<<1, 1>>>(); }\n__host__ __device__ void g() { f(); }\n"
         "__global__ void k() {\n  g();\n}", "a launch inside `k` through `g`", 4),
        (
            "__global__ void k(volatile int* flag) {\n  while (*flag == 0);\n}",
            "a loop in `k` that waits for another block",
            2,
        ),
        (
            "__global__ void k(int* f) { while (atomicAdd(f, 0) < 4) { __nanosleep(10); } }",
            "a loop in `k` that waits for another block",
            1,
        ),
        (
            '__global__ void k(int* f) { int v;\n  do { asm("ld.acquire.gpu.s32 %0, [%1];" : "=r"(v) : "l"(f)); '
            "if (!v) __nanosleep(9); } while (v < 2); }",
            "a loop in `k` that waits for another block",
            2,
        ),
        (
            '__device__ int read(int* f) { int v; asm("ld.global.relaxed.gpu.s32 %0, [%1];" : "=r"(v) : "l"(f)); '
            "return v; }\n__global__ void k(int* f) { while (!read(f)); }",
            "a loop in `k` that waits for another block",
            2,
        ),
        (
            "__global__ void k(int* f) { do { v = atomicAdd(f, 0); } while (v == 0); }",
            "a loop in `k` that waits for another block",
            1,
        ),
        ("cuda::pipeline<T> p;", "cuda::pipeline", 1),
        ("cuda::std::array<int, 3> p;", "cuda::std", 1),
        ("__cluster_dims__(2) __global__ void k();", "__cluster_dims__", 1),
        ("thrust::sort(a, b);", "thrust", 1),
        ("__global__ void k(curandStateSobol32_t* states) {}", "curandStateSobol32_t", 1),
        ("curandStateMRG32k3a s;", "curandStateMRG32k3a", 1),
        ("curandStateMtgp32_t s;", "curandStateMtgp32_t", 1),
        ("\nint n = curand_poisson(&state, 3.0);", "curand_poisson", 2),
        ("curandGenerator_t g;", "curandGenerator_t", 1),
        ("curandGenerateUniform(g, x, n);", "curandGenerateUniform", 1),
        ("cudaGraphLaunch(g, s);", "cudaGraphLaunch", 1),
        ("k<<<1, 2;", "<<<", 1),
    ],
)
def test_unsupported_constructs_are_refused_with_their_line(source: str, construct: str, line: int) -> None:
    with pytest.raises(Unsupported) as caught:
        translate(source)
    assert (caught.value.construct, caught.value.line) == (construct, line)
    assert str(caught.value).startswith(f"{construct} (line {line}): ")


@pytest.mark.parametrize(
    "source",
    [
        "__host__ __device__ void f() { k<<<1, 1>>>(); }\nvoid g() { f(); }\n__global__ void k() { int f = 1; h(f); }",
        '// asm("x"); #include <cub/cub.cuh>\n/* cublasCreate() */ const char* s = "wgmma asm(1)";',
        '#if 0\nasm volatile("x");\n#include <cub/cub.cuh>\n#endif\n',
        '#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000\nasm("tcgen05");\n#else\nint x;\n#endif\n',
        '#ifdef USE_ROCM\nasm("x");\n#endif\n',
        "#define FAST 0\n#if FAST\nthrust::sort(a, b);\n#elif 1\n#else\ncub::x();\n#endif\n",
        'asm volatile("" ::: "memory");',
        'asm(""); asm("" "" ::: "memory");',
        '#ifdef __CUDA_ARCH_FEAT_SM90_ALL\nasm("wgmma.fence.sync.aligned;");\n#else\nint x;\n#endif\n',
        "#ifdef __CUDA_ARCH_LIST__\nCUtensorMap map;\n#endif\n",
        "#include <mma.h>\nusing namespace nvcuda;\nvoid f() { wmma::fill_fragment(f, 0.0f); std::experimental::x(); }",
        "#include <cub/cub.cuh>\nusing T = ::cub::WarpScan<int>::TempStorage; cub::DeviceRadixSort::SortKeys(p);",
        "f(cuda::maximum<>{}, ::cuda::std::plus<float>());",
        "int cub = 1, texture = 2; f(cub, texture); x.cub();",
        "#include <cublas_v2.h>\ncublasHandle_t h; cublasCreate(&h); cublasSgemmStridedBatched(h); cublasSetStream(h);",
        "auto h = at::cuda::getCurrentCUDABlasHandle(); CUBLAS_CHECK(cublasGemmEx(h, CUDA_R_16F, CUBLAS_COMPUTE_32F));",
        "#include <curand_kernel.h>\ncurandState* curandStates; curand_setup(curandStates); curand_normal4(philox);",
        "__global__ void k(int* lock) { while (atomicCAS(lock, 0, 1) != 0); }",
        "__global__ void k(int* x, int n) { while (n > 0) { n -= x[n]; } while (x[--n]) ; }",
        "__global__ void k() { auto g = cg::this_grid(); auto b = cg::this_thread_block(); b.sync(); g.sync(); }",
        "cudaLaunchCooperativeKernel((void*)k, grid, block, arguments);",
        "void host() { k<<<1, 1>>>(); }",
    ],
)
def test_similar_supported_sources_are_accepted(source: str) -> None:
    translate(source)


@pytest.mark.parametrize("header", [
    "cub/device/device_select.cuh", "thrust/device_vector.h", "cutlass/cutlass.h", "cute/tensor.hpp", "cudnn.h",
    "curand.h", "curand_uniform.h", "cublasLt.h", "cusparse.h", "cufft.h", "nccl.h", "cuda_fp8.h",
    "nvtx3/nvToolsExt.h", "ATen/cuda/CUDABlas.h",
])
@pytest.mark.parametrize("cuda", [True, False])
def test_a_librarys_header_is_dropped_if_nothing_of_it_is_used(header: str, cuda: bool) -> None:
    assert translate(f"#include <{header}>\nint x;", cuda=cuda) == "\nint x;"


@pytest.mark.parametrize("header", ["cublas_v2.h", "curand_kernel.h"])
def test_a_header_with_a_stand_in_is_included(header: str) -> None:
    assert translate(f"#include <{header}>\n") == f"#include <{header}>\n"


def test_cpp_sources_may_contain_assembly() -> None:
    source = 'int f() { asm volatile("nop"); return 1; }'
    assert translate(source, cuda=False) == source
    with pytest.raises(Unsupported):
        translate(source)


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("#if __CUDA_ARCH__ >= 800", True),
        ("#if __CUDA_ARCH__ < 700", False),
        ("#ifndef __CUDA_ARCH__", True),
        ("#ifdef UNKNOWN", True),
        ("#if !defined(USE_ROCM)", True),
        ("#if 1 && (2 > 1) || UNKNOWN", True),
        ("#if 0 && UNKNOWN", False),
        ("#if CUDA_VERSION < 11000", False),
        ("#if __has_include(<x.h>)", True),
        ("#if 1 / 0", True),
    ],
)
def test_only_branches_that_are_certainly_inactive_are_dropped(condition: str, kept: bool) -> None:
    tokens = drop_inactive(tokenize(f"{condition}\nword\n#endif\n"))
    # It is never certain that __CUDA_ARCH__ is undefined: a source may test for the host pass.
    assert any(token.kind == "word" for token in tokens) == (kept and condition != "#ifndef __CUDA_ARCH__")


def test_functions_are_found() -> None:
    code = Code(
        tokenize(
            "namespace a { template <class T> struct S { __device__ T operator()(T x) { return x; } int n = 3; }; }\n"
            'extern "C" { __global__ void __launch_bounds__(128) k(int (&x)[3]) { if (x) { } } }\n'
            "int table[] = {1, 2}; auto f = [] { return 1; }; void host(int n) { for (;;) { } }"
        )
    )
    found = [(function.name, function.on_device) for function in find_functions(code)]
    assert found == [("operator", True), ("k", True), ("host", False)]


def test_macros_of_the_compiler_are_renamed() -> None:
    translated = translate("#if __CUDA_ARCH__ >= 800 && defined(__CUDACC__)\n#endif\nint x = __CUDA_ARCH__;")
    assert (
        translated
        == "#if CUDA_ON_CPU_CUDA_ARCH >= 800 && defined(CUDA_ON_CPU_CUDACC)\n#endif\nint x = CUDA_ON_CPU_CUDA_ARCH;"
    )


def test_a_launch_by_pointer_keeps_the_kernels_type() -> None:
    assert (
        translate("cudaLaunchKernel((const void*)k<float>, g, b, a, 0, s);")
        == "cudaLaunchKernel(k<float>, g, b, a, 0, s);"
    )
    assert translate("cudaLaunchKernel(reinterpret_cast<void*>(&k), g, b, a);") == "cudaLaunchKernel((&k), g, b, a);"
