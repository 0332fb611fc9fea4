"""Decides whether a build that failed with slim headers is repeated with torch's full headers.

The second attempt takes as long as torch's own build. It helps only if the compiler misses something that the full
headers declare; other errors are the author's and are reported at once. In doubt there is a second attempt: it costs a
few seconds, but without it a correct source would fail.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inlinebench.compile import toolchain
from inlinebench.compile.slim import SLIM_DIR

_Q = "[\"'\u2018\u2019]"
"""A quotation mark of nvcc, of GCC in a C locale, or of GCC in a UTF-8 locale."""
_UNDECLARED = re.compile(rf"{_Q}(\w+){_Q} (?:was not declared|has not been declared|is undefined)")
_MEMBER = re.compile(
    rf"has no member (?:named )?{_Q}(\w+){_Q}|{_Q}(\w+)(?:<.*>)?{_Q} (?:is not a member of|is not a template|"
    rf"(?:in namespace .* )?does not name a)"
)
_TYPES = re.compile(
    r"no operator|no match for|no matching function|no instance of|ambiguous|incomplete|no suitable constructor"
)
"""An overload, a conversion or a definition may be missing."""
_UNNAMED = re.compile(
    r"must be a class or namespace name|expected (?:template|class|type)-name|complete object type"
)
"""Errors that do not name what they are about."""
_TORCH = re.compile(r"\b(?:at|c10|torch|thrust)\b")
_WORD = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"\b[A-Z][A-Z0-9_]{2,}\b")
_QUALIFIED = re.compile(r"\b[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+")
_USING = re.compile(r"\busing\s+namespace\b")
_DEFINITION = re.compile(r"#\s*define\s+([A-Za-z_]\w*)")
_DECLARATION = re.compile(
    r"\b(?:class|struct|union|enum|namespace|concept|using|define)\s+([A-Za-z_]\w*)|([A-Za-z_]\w*)\s*[(<]"
)
_DETAILS = 2
"""Lines below an error in which nvcc gives the types of operands and arguments."""


@dataclass(frozen=True)
class _Names:
    """The words in torch's headers."""

    full: frozenset[str]
    """All words in the full headers."""
    only_full: frozenset[str]
    """Those of them that are not in the slim headers."""
    declared: frozenset[str]
    """Those of `only_full` that are declared."""
    macros: frozenset[str]
    """Those of `only_full` that are defined as macros."""


def needs_full_headers(log: str, sources: Sequence[str]) -> bool:
    """Whether the errors in a compiler's output may be due to declarations that the slim headers lack.

    `sources` are all texts of the author, including headers: an unknown macro causes errors that do not name it.
    Raises MissingTool.
    """
    source = "\n".join(sources)
    if _uses_a_name_of_the_full_headers(source):
        return True
    lines = log.splitlines()
    errors = dict.fromkeys((line, " ".join(lines[number + 1 : number + 1 + _DETAILS]))
                           for number, line in enumerate(lines) if "error" in line)
    return any(_may_come_from_slim_headers(error, details, source) for error, details in errors)


def _may_come_from_slim_headers(error: str, details: str, source: str) -> bool:
    location, _, text = error.partition("error")
    if _UNNAMED.search(text):
        return True
    if match := _UNDECLARED.search(text):
        return _in_headers(location) or _may_be_found_in_full_headers(match[1], source)
    if match := _MEMBER.search(text):
        # Slim and full headers both have the complete at::Tensor.
        return _in_headers(location) or ("at::Tensor" not in text and (match[1] or match[2]) in _names().full)
    if _TYPES.search(text):
        words = set(_WORD.findall(" ".join(re.findall(rf"{_Q}(.*?){_Q}", text))))
        return _in_headers(location) or bool(_TORCH.search(text + details) or words & _names().full)
    return False


def _in_headers(location: str) -> bool:
    """Whether the error is in one of torch's or the slim headers."""
    return str(toolchain.torch().root) in location or str(SLIM_DIR) in location


def _may_be_found_in_full_headers(name: str, source: str) -> bool:
    """Whether the full headers may declare a name that is used without a namespace: as a global name, through `using
    namespace`, or as a function found by the types of its arguments."""
    if name in _names().only_full or _is_operator(name):
        return True
    found_elsewhere = _USING.search(source) or re.search(rf"\b{name}\s*[(<]", source)
    return found_elsewhere is not None and name in _names().full


def _uses_a_name_of_the_full_headers(source: str) -> bool:
    """Whether a macro, or a part of a qualified name such as `torch::nn::Linear`, is only in the full headers."""
    qualified = {word for chain in _QUALIFIED.findall(source) for word in _WORD.findall(chain)}
    macros = set(_MACRO.findall(source)) - set(_DEFINITION.findall(source))
    return any(not _is_operator(name) for name in qualified & _names().declared) or bool(macros & _names().macros)


def _is_operator(name: str) -> bool:
    """Whether a name is one of torch's operators. The slim headers declare those that a source calls with a namespace.
    """
    return (toolchain.torch().include_dirs[0] / "ATen" / "ops" / f"{name}.h").is_file()


@cache
def _names() -> _Names:
    """Reads the words of the headers, which takes some seconds, once. Raises MissingTool."""
    text = _preprocessed([])
    full, slim = frozenset(_WORD.findall(text)), frozenset(_WORD.findall(_preprocessed([SLIM_DIR])))
    declared = {name or called for name, called in _DECLARATION.findall(text)}
    return _Names(full, full - slim, frozenset(declared - slim), frozenset(_DEFINITION.findall(text)) - slim)


def _preprocessed(first: Sequence[Path]) -> str:
    """Returns the preprocessed `torch/extension.h` with macro definitions. The folders `first` come before torch's."""
    torch = toolchain.torch()
    folders = [*first, *torch.include_dirs, toolchain.python_include()]
    flags = [word for folder in folders for word in ("-isystem", str(folder))]
    done = subprocess.run([toolchain.cxx(), torch.cxx_standard, *flags, "-E", "-dD", "-P", "-x", "c++", "-"],
                          input="#include <torch/extension.h>\n", capture_output=True, text=True, check=False)
    return done.stdout
