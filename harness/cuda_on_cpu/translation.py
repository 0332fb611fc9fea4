"""Translates CUDA C++ into C++ for the headers in `include/`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from .conditionals import drop_inactive, split_directive
from .device_arrays import refuse_variable_lengths
from .devices import rewrite_devices
from .launches import rewrite_launches
from .ptx import rename_parameters, rewrite_assembly, string_macros
from .shared_memory import rewrite_shared
from .tokens import Code, Token, join, tokenize
from .unsupported import drop_library_headers, refuse_device_constructs, refuse_words

# Names that the compiler or torch's headers would misinterpret, and their replacements.
_RENAMED = {
    "__CUDA_ARCH__": "CUDA_ON_CPU_CUDA_ARCH",
    "__CUDACC__": "CUDA_ON_CPU_CUDACC",
    "__NVCC__": "CUDA_ON_CPU_CUDACC",
    "__noinline__": "__attribute__((noinline))",
}
_MACRO_HEAD = re.compile(r"((?:[^\S\n]|\\\r?\n)*\w+(?:\([^)]*\))?)(.*)", re.DOTALL)
_RENAMED_PATTERN = re.compile(r"\b(__CUDA_ARCH__|__CUDACC__|__NVCC__)\b")


@lru_cache(64)
def translate(source: str, *, cuda: bool = True) -> str:
    """Translates `source` into C++ with the same lines. Raises `Unsupported` if it cannot run on the CPU.

    With `cuda=False`, `source` is a C++ source (`cpp_sources`): it may have inline assembly, and only names of devices
    are rewritten. Text that is not C++ is translated in some way and left to the compiler to reject.
    """
    code = Code(drop_inactive(tokenize(source)))
    strings = string_macros(code.tokens) if cuda else {}
    _rewrite(code, cuda, strings)
    if cuda:
        refuse_variable_lengths(code)
    code.tokens = [_rewrite_directive(token, cuda, strings) for token in code.tokens]
    return join(code.tokens)


def _rewrite(code: Code, cuda: bool, strings: Mapping[str, str]) -> None:
    drop_library_headers(code)
    refuse_words(code)
    rewrite_devices(code)
    if not cuda:
        return
    refuse_device_constructs(code)
    rewrite_launches(code)
    rewrite_shared(code)
    for position in code.words(*_RENAMED):
        code.replace(position, _RENAMED[code.text(position)])
    rewrite_assembly(code, strings)


def _rewrite_directive(token: Token, cuda: bool, strings: Mapping[str, str]) -> Token:
    """Rewrites the code in a macro, and in conditions the names that were renamed for the compiler."""
    if token.kind != "directive":
        return token
    name, rest = split_directive(token.text)
    start = len(token.text) - len(rest)
    if name == "define" and (match := _MACRO_HEAD.match(rest)):
        head, body = match.groups()
        code = Code(tokenize(body, token.line + token.text[: start + len(head)].count("\n"), directives=False))
        head = rename_parameters(head, code) if cuda else head
        _rewrite(code, cuda, strings)
        return Token("directive", token.text[:start] + head + join(code.tokens), token.line)
    if cuda and name in ("if", "elif", "ifdef", "ifndef"):
        renamed = _RENAMED_PATTERN.sub(lambda found: _RENAMED[found.group()], rest)
        return Token("directive", token.text[:start] + renamed, token.line)
    return token
