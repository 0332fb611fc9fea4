"""The reasons of failed builds, from errors of real compilers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.builds.request import BuildRequest
from inlinebench.compile import toolchain
from inlinebench.compile.reasons import reason
from inlinebench.compile.recipe import Recipe, cuda_source
from inlinebench.compile.service import BuildService, BuildSettings
from inlinebench.devices.cpu.recipe import cpu_recipe
from inlinebench.devices.cpu.target import CpuTarget

with_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
PYBIND = '#include <pybind11/pybind11.h>\n#line 1 "cpp_sources"\n'
"""Bindings compile without torch's headers in a tenth of the time."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuildService]:
    service = BuildService(tmp_path_factory.mktemp("cache"), CpuTarget(), BuildSettings(300, full_headers=True))
    yield service
    service.close()


def of_cpp(service: BuildService, source: str, functions: Sequence[str] | None = None, cuda: str = "") -> list[str]:
    named = None if functions is None else {name: "" for name in functions}
    request = BuildRequest("small", (source,), (cuda,) if cuda else (), named, no_implicit_headers=True,
                           with_pytorch_error_handling=False)
    outcome = service.build(request)
    assert outcome.library is None
    return outcome.reason.replace("\u2018", "'").replace("\u2019", "'").splitlines()


def of_nvcc(tmp_path: Path, source: str, *flags: str) -> list[str]:
    """Like `of_cpp`, for a CUDA source without torch's headers that nvcc compiles outside of a service."""
    request = BuildRequest("small", (), (source,), no_implicit_headers=True)
    (tmp_path / "cuda.cu").write_text(cuda_source(request, request.cuda_sources, slim=False))
    done = subprocess.run([toolchain.nvcc(), *(flags or ("-arch=sm_90",)), "-c", "cuda.cu", "-o", "cuda.o"],
                          cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode
    return reason(done.stdout + done.stderr, Recipe({}, "small.so", "", request)).splitlines()


def of_log(log: str, request: BuildRequest, compiled: str = "") -> list[str]:
    return reason(log, Recipe({"cuda.cpp": compiled}, "small.so", "", request)).splitlines()


class TestOfGcc:
    def test_the_line_is_quoted_with_a_caret_at_the_column(self, service: BuildService) -> None:
        assert of_cpp(service, 'int f() {\n\treturn /* \u00e9 */ wrong; // "error: 3"\n}')[:3] == [
            "cpp_sources:2:17: error: 'wrong' was not declared in this scope",
            '    2 |         return /* \u00e9 */ wrong; // "error: 3"',
            "      |                        ^",
        ]

    def test_columns_are_the_same_in_a_file_that_the_compiler_can_open(
        self, service: BuildService, tmp_path: Path
    ) -> None:
        text, path = "int f() {\n\treturn  wrong;\n}\n", tmp_path / "a.cpp"
        path.write_text(text)
        assert of_cpp(service, f'#line 1 "{path}"\n{text}') == [
            f"{path}:2:10: error: 'wrong' was not declared in this scope", "    2 |         return  wrong;",
            "      |                 ^"]

    def test_several_errors_are_listed_in_order(self, service: BuildService) -> None:
        lines = of_cpp(service, "\n".join(f"int f{number} = wrong{number};" for number in range(5)))
        assert [line[:16] for line in lines if not line.startswith(" ")] == [
            "cpp_sources:1:10", "cpp_sources:2:10", "cpp_sources:3:10", "and 2 more error"]

    def test_an_error_in_a_header_quotes_the_authors_line(self, service: BuildService) -> None:
        source = ("#include <algorithm>\n#include <list>\nvoid f(std::list<int> l) {\n"
                  "  std::sort(l.begin(), l.end());\n}")
        lines = of_cpp(service, source)
        assert "/include/" not in lines[0] and "bits/stl_algo.h:" in lines[0]
        assert lines[0].endswith(" (required from cpp_sources:4)")
        assert lines[1] == "    4 |   std::sort(l.begin(), l.end());"

    @pytest.mark.parametrize(("source", "expected"), [
        ("#error no way", "cpp_sources:1:2: error: #error no way"),
        ("#include <no_such.h>", "cpp_sources:1:10: error: no_such.h: No such file or directory"),
        ('static_assert(sizeof(int) == 8, "small");', "static assertion failed: small"),
        ('void f() { asm("foobar %eax"); }', "cpp_sources:1: error: no such instruction: `foobar %eax'"),
        ("int f() { return 1 }", "cpp_sources:1:19: error: expected ';' before '}' token"),
    ])
    def test_kinds_of_errors(self, service: BuildService, source: str, expected: str) -> None:
        lines = of_cpp(service, source)
        assert expected in lines[0] and lines[1] == f"    1 | {source}"

    def test_errors_of_linkers(self, service: BuildService) -> None:
        expected = {"-lno_such": "ld: cannot find -lno_such", "-Wl,--no-undefined": "undefined reference to"}
        for flag, message in expected.items():
            request = BuildRequest("small", ("int g(); int f() { return g(); }",), extra_ldflags=(flag,),
                                   no_implicit_headers=True)
            first = service.build(request).reason.splitlines()[0]
            assert message in first and "collect2" not in first

    @pytest.mark.slow
    def test_a_name_that_two_sources_define_names_both(self, service: BuildService) -> None:
        source = 'extern "C" int PyInit_x() { return 1; }'
        request = BuildRequest("small", (source,), (source,), no_implicit_headers=True)
        assert service.build(request).reason.splitlines() == [
            "cpp_sources: multiple definition of `PyInit_x'; cuda_sources: first defined here",
            "hint: remove PYBIND11_MODULE and name its functions in `functions`: load_inline writes the bindings"]


@pytest.mark.slow
class TestOfFunctions:
    @pytest.mark.parametrize(("source", "cuda", "name", "expected"), [
        ("", "", "f", ", but cpp_sources does not declare it"),
        ("int relu(int);", "", "rela", ", but cpp_sources does not declare it; did you mean 'relu'?"),
        ("namespace ns {}", "", "ns::f", ", but cpp_sources does not declare it"),
        ("int f(int); int f(float);", "", "f", ", but cpp_sources has several functions, or a template, of that name: "
                                               "it must be unique"),
        ("template <class T> T f(T);", "", "f", ", but cpp_sources has several functions, or a template, of that name: "
                                                "it must be unique"),
    ])
    def test_a_name_that_cannot_be_bound(
        self, service: BuildService, source: str, cuda: str, name: str, expected: str
    ) -> None:
        assert of_cpp(service, PYBIND + source, [name], cuda) == [f"functions names '{name}'{expected}"]

    def test_a_function_that_only_cuda_sources_declare(self, service: BuildService) -> None:
        assert of_cpp(service, PYBIND, ["f"], "int f() { return 1; }") == [
            "functions names 'f', but cpp_sources does not declare it: a declaration in cuda_sources is not enough",
            "hint: add the function's declaration, such as `torch::Tensor name(torch::Tensor x);`, to cpp_sources"]

    def test_each_unbound_function_is_named(self, service: BuildService) -> None:
        lines = of_cpp(service, PYBIND + "int a();", ["a", "b", "c"])
        assert [line[:19] for line in lines] == ["functions names 'b'", "functions names 'c'"]

    def test_a_function_with_unsupported_types(self, service: BuildService) -> None:
        (line, *_) = of_cpp(service, PYBIND + "#include <cstdio>", ["printf"])
        assert line.startswith("functions names 'printf', which cannot be bound to Python: ")

    def test_an_incomplete_source_is_not_blamed_on_functions(self, service: BuildService) -> None:
        lines = of_cpp(service, PYBIND + "int f() { return 1", ["f"])
        assert lines[0].startswith("cpp_sources:1:19: error: expected ';'") and "bindings" not in "".join(lines)


@with_nvcc
class TestOfNvcc:
    def test_the_caret_for_nvcc_is_in_the_authors_line(self, tmp_path: Path) -> None:
        assert of_nvcc(tmp_path, "__global__ void k(float* x) {\n  x[0] = y;\n}") == [
            'cuda_sources:2:10: error: identifier "y" is undefined', "    2 |   x[0] = y;", "      |          ^"]
        assert of_nvcc(tmp_path, "__global__ void k(float* x) { x[0] = y; }") == [
            'cuda_sources:1:38: error: identifier "y" is undefined',
            "    1 | __global__ void k(float* x) { x[0] = y; }",
            "      |                                      ^"]

    def test_errors_in_macros_have_no_caret_and_comments_hide_the_column(self, tmp_path: Path) -> None:
        lines = of_nvcc(tmp_path, "#define BAD y\n__device__ void k(float* x) {\n  x[0] = BAD;\n  x[1] = z; // z?\n"
                                  "  x[2] = w; // ?\n}")
        assert lines == [
            'cuda_sources:3: error: identifier "y" is undefined', "    3 |   x[0] = BAD;",
            'cuda_sources:4: error: identifier "z" is undefined', "    4 |   x[1] = z; // z?",
            'cuda_sources:5: error: identifier "w" is undefined', "    5 |   x[2] = w; // ?", "      |          ^"]

    def test_an_error_in_a_template_names_the_instantiating_line(self, tmp_path: Path) -> None:
        source = ("template <class T> __global__ void k(T* x) { x[0] = x[0].foo; }\n"
                  "void f(float* x) {\n  k<float><<<1, 1>>>(x);\n}")
        lines = of_nvcc(tmp_path, source)
        assert lines[0].startswith("cuda_sources:1:") and lines[0].endswith(" (required from cuda_sources:3)")
        assert lines[1] == "    1 | template <class T> __global__ void k(T* x) { x[0] = x[0].foo; }"

    @pytest.mark.parametrize(("source", "expected"), [
        ("#error no way", "cuda_sources:1:2: error: #error no way"),
        ('#include "no_such.h"', "cuda_sources:1:10: error: no_such.h: No such file or directory"),
        ('static_assert(sizeof(int) == 8, "small");', "static assertion failed"),
        ('void f() { asm("foobar %eax"); }', "cuda_sources:1: error: no such instruction"),
    ])
    def test_kinds_of_errors(self, tmp_path: Path, source: str, expected: str) -> None:
        lines = of_nvcc(tmp_path, source)
        assert expected in lines[0] and lines[1] == f"    1 | {source}"

    def test_errors_of_ptxas(self, tmp_path: Path) -> None:
        wrong = '__global__ void k(float* x) { asm("bogus.f32 %0, 1;" : "=f"(x[0])); }'
        (line,) = of_nvcc(tmp_path, wrong)
        assert line.startswith("ptxas error : Not a name of any known instruction: 'bogus' (line ")
        (line,) = of_nvcc(tmp_path, "extern __device__ float g(float);\n__global__ void k(float* x) { *x = g(*x); }")
        assert line.startswith("ptxas fatal : Unresolved extern function")

    @pytest.mark.parametrize(("flag", "expected"), [
        ("-arch=sm_70", "nvcc fatal : Unsupported gpu architecture 'sm_70'"),
        ("--bogus", "nvcc fatal : Unknown option '--bogus'"),
        ("-Xptxas=-bogus", "ptxas fatal : Unknown option 'bogus'"),
        ("-Xcudafe=--bogus", "Command-line error: invalid option: --bogus"),
    ])
    def test_errors_of_flags(self, tmp_path: Path, flag: str, expected: str) -> None:
        if flag == "-arch=sm_70" and "release 13" not in toolchain.version_of(toolchain.nvcc()):
            pytest.skip("this toolkit still knows it")
        assert of_nvcc(tmp_path, "__global__ void k() {}", flag)[0] == expected


class TestOfTheCpu:
    """The C++ compiler gets a translated CUDA source, so its columns are of the translation."""

    SOURCE = ("__global__ void k(float* x) { x[0] = y; }\nvoid f(float* x) { k<<<1, 1>>>(x); }\n"
              "int g = k<<<1, 1>>>(y, y);")
    REQUEST = BuildRequest("small", (), (SOURCE,))

    def test_the_column_is_given_if_the_rest_of_the_line_is_the_authors(self) -> None:
        compiled = '#line 1 "cuda_sources"\n' + self.SOURCE.replace("__global__ void", "/* a kernel */ static void")
        column = compiled.splitlines()[1].index("y;") + 1
        assert of_log(f"cuda_sources:1:{column}: error: 'y' was not declared", self.REQUEST, compiled) == [
            "cuda_sources:1:38: error: 'y' was not declared", "    1 | __global__ void k(float* x) { x[0] = y; }",
            "      |                                      ^"]

    def test_otherwise_the_caret_is_at_the_only_occurrence_of_the_name(self) -> None:
        compiled = '#line 1 "cuda_sources"\n\nlaunch(k, y, 1);}\nlaunch(k, y, y)'
        assert of_log("cuda_sources:2:11: error: 'f' was not declared\ncuda_sources:3:11: error: 'y' was not declared",
                      self.REQUEST, compiled) == [
            "cuda_sources:2: error: 'f' was not declared", "    2 | void f(float* x) { k<<<1, 1>>>(x); }",
            "      |      ^",
            "cuda_sources:3: error: 'y' was not declared", "    3 | int g = k<<<1, 1>>>(y, y);"]

    def test_a_recipe_has_the_source_and_its_translation(self, tmp_path: Path) -> None:
        request = BuildRequest("small", ("",), (self.SOURCE.partition("int g")[0],), no_implicit_headers=True)
        found = cpu_recipe(request, tmp_path / "runtime.so", slim=False)
        line = found.files["cuda.cpp"].splitlines()[1]
        log = f"cuda_sources:1:{line.index('y;') + 1}: error: 'y' was not declared"
        assert reason(log, found).startswith("cuda_sources:1:38: error: ")


def test_sources_from_files_are_quoted() -> None:
    request = BuildRequest("small", ('#line 1 "/home/me/my file.cpp"\nint f() {\n  return wrong;\n}',))
    assert of_log("/home/me/my file.cpp:2:10: error: 'wrong' was not declared", request) == [
        "/home/me/my file.cpp:2: error: 'wrong' was not declared", "    2 |   return wrong;", "      |          ^"]


def test_objects_in_linker_errors_are_named_by_their_sources() -> None:
    log = ("/usr/bin/ld: cuda.o: in function `PyInit_x':\ntmpxft_0001_00-6_cuda.cudafe1.cpp:(.text+0x0): multiple "
           "definition of `PyInit_x'; main.o:main.cpp:(.text+0x0): first defined here\ncollect2: error: ld returned 1")
    assert of_log(log, BuildRequest("small", ("",), ("",)))[0] == (
        "cuda_sources: multiple definition of `PyInit_x'; cpp_sources: first defined here")


def test_long_lines_are_quoted_in_part() -> None:
    request = BuildRequest("small", ("x" * 3000 + " y " + "z" * 3000,))
    _, line, caret = of_log("cpp_sources:1: error: 'y' was not declared", request)
    assert len(line) < 200 and line[caret.index("^")] == "y"


@given(st.text(max_size=60), st.integers(0, 99), st.integers(0, 10**9 - 1), st.text("xyz '\"\t\n#line 7", max_size=40))
def test_any_error_gives_a_reason_without_raising(text: str, line: int, column: int, source: str) -> None:
    request = BuildRequest("small", (source,), (source,), {"f": "", "no name": ""})
    for label in ("cpp_sources", "functions", "cuda_sources", "a.h"):
        log = f"functions:{line}:{column}:  required from here\n{label}:{line}:{column}: error: {text}"
        for found in (of_log(log, request, f'#line 1 "cuda_sources"\n{source}'), of_log(text, request)):
            assert found and found[0].strip()
