"""Which failed builds get a second try with torch's full headers."""

from __future__ import annotations

import pytest

from inlinebench.build import toolchain
from inlinebench.build.slim.fallback import needs_full_headers

TORCH = str(toolchain.torch().root)

OWN_ERRORS = [
    "cpp_sources:4:1: error: 'Tensr' does not name a type",
    'cuda_sources(7): error: identifier "idx" is undefined',
    'cuda_sources(7): error: identifier "warp_total" is undefined',
    "cpp_sources:4:1: error: expected ';' before 'return'",
    'cuda_sources(9): error: no instance of overloaded function "atomicAdd" matches the argument list\n'
    "            argument types are: (float *, double)",
    'cuda_sources(9): error: class "at::Tensor" has no member "no_such_member"',
    "cpp_sources:2:10: fatal error: no_such_header.h: No such file or directory",
    "functions:2:1: error: 'forward' was not declared in this scope",
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
    "cpp_sources:4:1: error: no match for 'operator<<' (operand types are 'std::ostream' and 'at::Tensor')",
    "cpp_sources:5:3: error: invalid use of incomplete type 'class at::Context'",
    f"{TORCH}/include/ATen/cuda/CUDAContext.h:9:3: error: 'hooks' was not declared in this scope",
]


@pytest.mark.parametrize("log", OWN_ERRORS)
def test_an_error_of_the_author_is_reported_at_once(log: str) -> None:
    assert not needs_full_headers(f"{log}\nninja: build stopped: subcommand failed.", ["int f();"])


@pytest.mark.parametrize("log", TORCH_ERRORS)
def test_an_error_that_names_what_only_full_headers_declare_gets_a_second_try(log: str) -> None:
    assert needs_full_headers(f"{log}\nninja: build stopped: subcommand failed.", ["int f();"])


@pytest.mark.parametrize(("source", "needs"), [
    ("auto y = torch::nn::functional::relu(x);", True), ("using namespace torch; auto y = nn::Linear(2, 3);", True),
    ("int f() { return mine::batch_count(rows, cols); }", False), ("std::vector<at::Tensor> f();", False),
    ("TORCH_MODULE(Net);", True), ("CHECK(x > 0);", True), ("#define CHECK(x) assert(x)\nCHECK(x > 0);", False),
    ("#define BLOCK_SIZE 256\nint n = BLOCK_SIZE;", False), ("TORCH_CHECK(x, BLOCK_SIZE);", False),
])
def test_a_source_that_says_what_only_full_headers_declare_gets_a_second_try(source: str, needs: bool) -> None:
    """nvcc does not name an unknown namespace, and no compiler an unknown macro."""
    log = 'cuda_sources(1): error: name followed by "::" must be a class or namespace name'
    assert needs_full_headers(log, [source]) is needs
