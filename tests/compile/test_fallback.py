"""Decides which failed builds are repeated with torch's full headers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from inlinebench.compile import toolchain
from inlinebench.compile.slim import SLIM_DIR
from inlinebench.compile.slim.fallback import needs_full_headers

TORCH = str(toolchain.torch().root)

OWN_ERRORS = [
    "cpp_sources:4:1: error: 'Tensr' does not name a type",
    'cuda_sources(7): error: identifier "idx" is undefined',
    'cuda_sources(7): error: identifier "warp_total" is undefined',
    "cpp_sources:4:1: error: expected ';' before 'return'",
    'cuda_sources(9): error: no instance of overloaded function "warp_total_of" matches the argument list\n'
    "            argument types are: (float *, double)",
    'cuda_sources(9): error: class "at::Tensor" has no member "shape"',
    "cuda_sources:4:9: error: \u2018class at::Tensor\u2019 has no member named \u2018shape\u2019; did you mean x?",
    'cuda_sources(9): error: no suitable conversion function from "at::Tensor" to "float *" exists',
    "cpp_sources:4:9: error: cannot convert 'at::Tensor' to 'float*' in initialization",
    "cpp_sources:4:9: error: expected '}' at end of input",
    "cpp_sources:4:9: error: 'BLOCK_SIZE' was not declared in this scope",
    "cpp_sources:2:10: fatal error: no_such_header.h: No such file or directory",
    "functions:2:1: error: 'forward_of_mine' was not declared in this scope",
    "ptxas error   : Entry function uses too much shared data",
    "cpp_sources:3:2: warning: 'LinearOptions' was not declared in this scope",
]
TORCH_ERRORS = [
    "cpp_sources:4:19: error: 'nn' is not a member of 'torch'",
    "cpp_sources:4:19: error: \u2018nn\u2019 is not a member of \u2018torch\u2019",
    'cuda_sources(7): error: namespace "torch" has no member "nn"',
    "cpp_sources:4:1: error: 'CHECK' was not declared in this scope",
    'cuda_sources(9): error: no operator "<<" matches these operands\n            operand types are: std::ostream << '
    "at::Tensor",
    'cuda_sources(7): error: name followed by "::" must be a class or namespace name',
    "k.cuh(2): error: expression must be a pointer to a complete object type",
    f"{TORCH}/include/ATen/cuda/CUDAContext.h:9:3: error: 'hooks' was not declared in this scope",
]
OWN_FUNCTIONS = [
    "cpp_sources:4:9: error: no matching function for call to 'launch(at::Tensor&, int)'",
    "cpp_sources:4:9: error: no matching function for call to \u2018launch(at::Tensor&, int)\u2019",
    'cuda_sources(9): error: no instance of function template "launch" matches the argument list\n'
    "            argument types are: (at::Tensor, int)",
    'cuda_sources(9): error: no instance of overloaded function "launch" matches the argument list\n'
    "            argument types are: (at::Tensor, int)",
]
NEEDS_FULL = [
    "auto f(at::Tensor x) { return torch::nn::functional::relu(x); }",
    "using namespace torch; auto f() { return nn::Linear(2, 3); }",
    "namespace ag = torch::autograd; struct X : public ag::Function<X> {};",
    "using namespace torch::autograd; struct X : public Function<X> {};",
    "void f() { torch::cuda::synchronize(); }",
    "torch::IValue f(torch::Tensor a) { return a; }",
    "c10::List<int64_t> f() { return c10::List<int64_t>(); }",
    "c10::Dict<std::string, at::Tensor> f() { return {}; }",
    "torch::Tensor f() { return torch::tensor({{1, 2}, {3, 4}}); }",
    "void f() { torch::NoGradGuard guard; }",
    "struct NetImpl : torch::nn::Module {}; TORCH_MODULE(Net);",
    "at::Tensor f(at::Tensor x) { return softmax(x, 1); }",
    "void f(at::Tensor x) { CHECK(x.defined()); LOG(INFO) << 1; }",
    "int f() { std::mt19937 g; return g(); }",
    "using namespace std; int f() { mt19937 g; return g(); }",
]
"""Sources that torch's own build compiles, and that need more than the slim headers."""


@pytest.mark.parametrize("log", OWN_ERRORS)
def test_an_error_of_the_author_is_reported_at_once(log: str) -> None:
    assert not needs_full_headers(f"{log}\nninja: build stopped: subcommand failed.", ["int f();"])


@pytest.mark.parametrize("log", TORCH_ERRORS)
def test_an_error_about_a_name_of_the_full_headers_gets_a_second_attempt(log: str) -> None:
    assert needs_full_headers(f"{log}\nninja: build stopped: subcommand failed.", ["int f();"])


@pytest.mark.parametrize("log", OWN_FUNCTIONS)
def test_the_wrong_arguments_of_a_function_of_the_author_are_reported_at_once(log: str) -> None:
    for definition in ("void launch(float* x, int n) {}", "at::Tensor& launch(float* x)", "vector<int>launch (int)"):
        assert not needs_full_headers(log, [definition])
    for use in ("return launch(x, 3);", "y = launch(x, 3);", "f(launch(x, 3))"):
        assert needs_full_headers(log, [use])


@pytest.mark.slow
@pytest.mark.parametrize("source", NEEDS_FULL)
def test_a_source_that_needs_more_than_slim_headers_gets_a_second_attempt(source: str, tmp_path: Path) -> None:
    """Uses the errors of the real compiler."""
    (tmp_path / "main.cpp").write_text(f'#include <torch/extension.h>\n#line 1 "cpp_sources"\n{source}\n')
    folders = [SLIM_DIR, *toolchain.torch().include_dirs, toolchain.python_include()]
    flags = [word for folder in folders for word in ("-isystem", str(folder))]
    done = subprocess.run([toolchain.cxx(), toolchain.torch().cxx_standard, *flags, "-fsyntax-only", "main.cpp"],
                          cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0, "the slim headers suffice"
    assert needs_full_headers(done.stderr, [source]), done.stderr


@pytest.mark.parametrize(("source", "needs"), [
    ("using namespace torch;", True), ("using namespace nvcuda;", False), ("softmax(x, 1);", True),
    ("float softmax;", False),
])
def test_a_name_without_a_namespace_counts_if_it_may_be_found_in_torchs(source: str, needs: bool) -> None:
    assert needs_full_headers('cuda_sources(1): error: identifier "softmax" is undefined', [source]) is needs
