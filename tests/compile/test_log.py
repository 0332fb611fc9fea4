"""Finding errors in logs of compilers, assemblers, linkers and ninja."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.compile.log import Error, LogLocation, errors, last_words

GCC = """\
[1/2] c++ -c main.cpp
In file included from cpp_sources:1:
a.h:3:9: warning: unused variable 'error_count' [-Wunused-variable]
cpp_sources:4:1: error: 'Tensr' does not name a type
    4 | Tensr f();
      | ^~~~~
cpp_sources:5:1: error: expected ';'
cpp_sources:5:1: error: expected ';'
cpp_sources: In instantiation of 'T twice(T) [with T = float]':
cpp_sources:9:17:   required from here
cpp_sources:3:62: error: request for member 'foo' in 'x', which is of non-class type 'float'
cpp_sources: In function 'int g()':
cpp_sources:7:1: error: 'b' was not declared
ninja: build stopped: subcommand failed.
"""
NVCC = """\
FAILED: [code=255] cuda.o
nvcc -DTEXT='a(1): error: b' -isystem torch/include -c cuda.cu -o cuda.o
cuda_sources(6): warning #177-D: variable "error" was declared but never referenced
    int error = 3;
        ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

cuda_sources(9): error: no instance of overloaded function "atomicAdd" matches the argument list
            argument types are: (const float *, double)
    atomicAdd(x, 1.0);
    ^
crt/sm_90_rt.h(112): note #3326-D: function "atomicAdd(float4 *, float4)" does not match because argument #1 does not
  static __attribute__((device)) __inline__ float4 atomicAdd(float4 *__address, float4 val) { }
                                                   ^

stl_algo.h(1938): error #20-D: no operator "-" matches these operands
            operand types are: std::_List_iterator<int> - std::_List_iterator<int>
      std::__lg(__last - __first) * 2,
                       ^
          detected during:
            instantiation of "void std::__sort(_RandomAccessIterator, _Compare)" at line 4820
            instantiation of "void std::sort(_RAIter, _RAIter)" at line 4 of cuda_sources

2 errors detected in the compilation of "cuda.cu".
ninja: build stopped: subcommand failed.
"""
NOISE = (
    "ninja: Entering directory `build'", "[1/2] c++ -c main.cpp", "ninja: build stopped: subcommand failed.",
    "collect2: error: ld returned 1 exit status", "compilation terminated.", "",
    '1 error detected in the compilation of "cuda.cu".', "fatbinary fatal   : Could not open input file 'cuda.ptx'",
    "ptxas fatal   : Ptx assembly aborted due to errors", "ptxas info    : 0 bytes gmem, error: none",
    "cpp_sources:3:9: warning: unused variable 'error_count' [-Wunused-variable]",
    "cpp_sources:2:2: warning: #warning error: this is old", 'cpp_sources(3): warning #20-D: "error: x" is unused',
    '   12 |   printf("cuda_sources(3): error: %d", x);', "      |   ^~~~~~",
    '    printf("ptxas fatal   : x: error: y");',
    "cpp_sources:1:9: note: '#pragma message: f.cpp:3:1: error: no'", "cc1plus: some warnings being treated as errors",
    "nvcc warning : Support for offline compilation for architectures prior to 'sm_75' will be removed",
    "/usr/bin/ld: main.o: warning: relocation against `zz' in read-only section `.text'",
    "/usr/bin/ld: main.o: in function `error()':", "/usr/bin/ld: skipping incompatible libx.so when searching for -lx",
    "/usr/bin/ld: final link failed: bad value", "cpp_sources: Assembler messages:",
)
ALONE = {
    "main.cpp:1:10: fatal error: missing.h: No such file or directory": "missing.h: No such file or directory",
    'cuda_sources(5): error: identifier "x" is undefined': 'identifier "x" is undefined',
    "cuda_sources(5): error #20: identifier": "identifier",
    "cuda_sources(5): catastrophic error: cannot open": "cannot open",
    "cpp_sources:5:1: error: unused variable 'x' [-Werror=unused-variable]":
        "unused variable 'x' [-Werror=unused-variable]",
    "cpp_sources:5:1: internal compiler error: Segmentation fault": "Segmentation fault",
    "cuda_sources:7: Error: no such instruction: `foobar %eax'": "no such instruction: `foobar %eax'",
    "/home/a b (1)/my kernel.cu(7): error: x": "x",
    "main.cpp:(.text+0x33): undefined reference to `f()'": "main.cpp: undefined reference to `f()'",
    "main.o: undefined reference to `f()'": "main.o: undefined reference to `f()'",
    "/usr/bin/ld: cannot find -lmissing: No such file or directory":
        "ld: cannot find -lmissing: No such file or directory",
    "/usr/bin/ld: cuda.o: in function `PyInit_x':\n"
    "main.cpp:(.text+0x0): multiple definition of `PyInit_x'; main.o:main.cpp:(.text+0x0): first defined here":
        "main.cpp: multiple definition of `PyInit_x'; main.o:main.cpp: first defined here",
    "ld.lld: error: duplicate symbol: f": "ld: error: duplicate symbol: f",
    "ptxas fatal   : Unresolved extern function 'g'": "ptxas fatal : Unresolved extern function 'g'",
    "ptxas error   : Entry function uses too much data": "ptxas error : Entry function uses too much data",
    "ptxas /tmp/tmpxft_0_x.ptx, line 26; error   : Not a name of any known instruction: 'bogus'":
        "ptxas error : Not a name of any known instruction: 'bogus' (line 26 of the PTX)",
    "nvcc fatal   : Unsupported gpu architecture 'sm_70'": "nvcc fatal : Unsupported gpu architecture 'sm_70'",
    "nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)":
        "nvcc error : 'cicc' died due to signal 11 (Invalid memory reference)",
    "Command-line error: invalid option: --bogus": "Command-line error: invalid option: --bogus",
    "c++: fatal error: Killed signal terminated program cc1plus":
        "c++: fatal error: Killed signal terminated program cc1plus",
    "gcc: error: unrecognized command-line option '-bogus'": "gcc: error: unrecognized command-line option '-bogus'",
    "Fatal error: can't write 12 bytes: 'No space left on device'":
        "Fatal error: can't write 12 bytes: 'No space left on device'",
    "ninja: error: build.ninja:3: expected newline": "ninja: error: build.ninja:3: expected newline",
    "LLVM ERROR: out of memory": "LLVM ERROR: out of memory",
}


def test_errors_of_gcc_have_places_and_the_origin_of_templates() -> None:
    assert errors(GCC) == (
        Error("'Tensr' does not name a type", LogLocation("cpp_sources", 4, 1)),
        Error("expected ';'", LogLocation("cpp_sources", 5, 1)),
        Error("request for member 'foo' in 'x', which is of non-class type 'float'", LogLocation("cpp_sources", 3, 62),
              origins=(LogLocation("cpp_sources", 9, 17),)),
        Error("'b' was not declared", LogLocation("cpp_sources", 7, 1)),
    )


def test_errors_of_nvcc_have_the_rest_of_the_line_and_details() -> None:
    assert errors(NVCC) == (
        Error('no instance of overloaded function "atomicAdd" matches the argument list',
              LogLocation("cuda_sources", 9),
              "atomicAdd(x, 1.0);", ("argument types are: (const float *, double)",)),
        Error('no operator "-" matches these operands', LogLocation("stl_algo.h", 1938), "- __first) * 2,",
              ("operand types are: std::_List_iterator<int> - std::_List_iterator<int>",),
              (LogLocation("stl_algo.h", 4820), LogLocation("cuda_sources", 4))),
    )


def test_errors_in_a_header_have_the_places_of_its_includes() -> None:
    log = "In file included from b.h:2,\n                 from cpp_sources:3:\na.h:1:1: error: x\na.h:2:1: error: y\n"
    assert {error.origins for error in errors(log)} == {(LogLocation("b.h", 2), LogLocation("cpp_sources", 3))}


@pytest.mark.parametrize("line", ALONE)
def test_errors_of_all_tools_are_found(line: str) -> None:
    assert [error.text for error in errors("\n".join([*NOISE, line, *NOISE]))] == [ALONE[line]]


@pytest.mark.parametrize("line", NOISE)
def test_other_lines_are_not_errors(line: str) -> None:
    assert errors(line) == ()


@given(st.lists(st.sampled_from(NOISE)), st.sampled_from(list(ALONE)), st.lists(st.sampled_from(NOISE)))
def test_an_error_is_found_between_other_lines(before: list[str], line: str, behind: list[str]) -> None:
    assert [error.text for error in errors("\n".join([*before, line, *behind]))] == [ALONE[line]]


_LINES = [*NOISE, *ALONE, *GCC.splitlines(), *NVCC.splitlines(), "FAILED: [code=137] main.o"]
_TEXTS = (st.text() | st.text("ab \n\t:;()^|1'\"\x0c\u2028").map(lambda text: f"f(1): error: {text}")
          | st.lists(st.sampled_from(_LINES)).map("\n".join))


@given(_TEXTS)
def test_errors_and_last_words_of_any_log_are_single_lines(log: str) -> None:
    for text in [*(error.text for error in errors(log)), last_words(log)]:
        assert text.strip() and len(text.splitlines()) == 1


def test_the_last_words_are_the_last_informative_line() -> None:
    assert last_words("one\ntwo\n\n") == "two"
    assert last_words("sh: 1: nvcc: not found\nninja: build stopped: subcommand failed.") == "sh: 1: nvcc: not found"
    assert last_words("collect2: error: ld returned 1 exit status") == "collect2: error: ld returned 1 exit status"
    assert last_words(" \n") == "the compiler printed nothing"


def test_a_compiler_that_fails_without_output_is_described_by_its_exit_status() -> None:
    log = "FAILED: [code={}] cuda.o\nnvcc -c cuda.cu -o cuda.o\nninja: build stopped: subcommand failed.\n"
    assert last_words(log.format(137)) == "cuda.o: the command ended with SIGKILL and printed nothing"
    assert last_words(log.format(3)) == "cuda.o: the command ended with exit status 3 and printed nothing"
    assert last_words(log.replace("[code={}] ", "")) == "ninja: build stopped: subcommand failed."
