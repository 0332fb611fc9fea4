"""Decides which failed builds are repeated with torch's full headers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from inlinebench.compile import toolchain
from inlinebench.compile.slim import SLIM_DIR
from inlinebench.compile.slim.fallback import needs_full_headers

pytestmark = pytest.mark.slow

TORCH = str(toolchain.torch().root)

OWN_ERRORS = [
    "cpp_sources:4:1: error: 'Tensr' does not name a type",
    'cuda_sources(7): error: identifier "idx" is undefined',
    'cuda_sources(7): error: identifier "warp_total" is undefined',
    "cpp_sources:4:1: error: expected ';' before 'return'",
    'cuda_sources(9): error: no instance of overloaded function "warp_total_of" matches the argument list\n'
    "            argument types are: (float *, double)",
    'cuda_sources(9): error: class "at::Tensor" has no member "shape"',
    "cpp_sources:2:10: fatal error: no_such_header.h: No such file or directory",
    "functions:2:1: error: 'forward_of_mine' was not declared in this scope",
    "ptxas error   : Entry function uses too much shared data",
    "cpp_sources:3:2: warning: 'LinearOptions' was not declared in this scope",
]
TORCH_ERRORS = [
    "cpp_sources:4:19: error: 'nn' is not a member of 'torch'",
    "cpp_sources:4:19: error: \u2018nn\u2019 is not a member of \u2018torch\u2019",
    'cuda_sources(7): error: namespace "torch" has no member "nn"',
    'cuda_sources(7): error: identifier "softmax" is undefined',
    "cpp_sources:4:1: error: 'NoGradGuard' was not declared in this scope",
    'cuda_sources(9): error: no operator "<<" matches these operands\n            operand types are: std::ostream << '
    "at::Tensor",
    'cuda_sources(7): error: name followed by "::" must be a class or namespace name',
    "k.cuh(2): error: expression must be a pointer to a complete object type",
    f"{TORCH}/include/ATen/cuda/CUDAContext.h:9:3: error: 'hooks' was not declared in this scope",
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
    "TORCH_MODULE(Net);",
]
"""Sources that torch's own build compiles, and that need more than the slim headers."""


@pytest.mark.parametrize("log", OWN_ERRORS)
def test_an_error_of_the_author_is_reported_at_once(log: str) -> None:
    assert not needs_full_headers(f"{log}\nninja: build stopped: subcommand failed.", ["int f();"])


@pytest.mark.parametrize("log", TORCH_ERRORS)
def test_an_error_about_a_name_of_the_full_headers_gets_a_second_attempt(log: str) -> None:
    assert needs_full_headers(f"{log}\nninja: build stopped: subcommand failed.", ["int f();"])


@pytest.mark.nightly
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
    ("CHECK(x > 0);", True), ("#define CHECK(x) assert(x)\nCHECK(x > 0);", False),
    ("#define BLOCK_SIZE 256\nint n = BLOCK_SIZE;", False), ("TORCH_CHECK(x, BLOCK_SIZE);", False),
    ("int f() { return mine::batch_count(rows, cols); }", False), ("std::vector<at::Tensor> f();", False),
])
def test_a_macro_of_the_full_headers_gets_a_second_attempt(source: str, needs: bool) -> None:
    assert needs_full_headers("cpp_sources:1:1: error: expected unqualified-id", [source]) is needs


@pytest.mark.parametrize(("source", "needs"), [("using namespace std; map<int, int> m;", True), ("int map_of;", False)])
def test_using_namespace_makes_any_name_of_the_full_headers_count(source: str, needs: bool) -> None:
    assert needs_full_headers('cuda_sources(1): error: identifier "map" is undefined', [source]) is needs
