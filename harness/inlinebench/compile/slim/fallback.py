"""Decides whether a build that failed with slim headers gets a second try with torch's full ones.

The second try takes as long as torch's own build. It helps only where the compiler misses something that the full
headers declare; other errors are the author's, and are reported at once. In doubt there is a second try: a few seconds
are lost, where an honest source would fail without one.
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
"""Errors that do not say which name it is about."""
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
    """Every word in the full headers, those that the slim ones do not have, and of these what is declared and defined
    as a macro."""

    full: frozenset[str]
    only_full: frozenset[str]
    declared: frozenset[str]
    macros: frozenset[str]


def needs_full_headers(log: str, sources: Sequence[str]) -> bool:
    """Whether the errors in a compiler's output may come from what the slim headers leave out.

    `sources` are all texts of the author's, headers included: an unknown macro leads to errors that do not name it.
    Raises MissingTool.
    """
    source = "\n".join(sources)
    if _says_a_name_of_the_full_headers(source):
        return True
    lines = log.splitlines()
    errors = dict.fromkeys((line, " ".join(lines[number + 1 : number + 1 + _DETAILS]))
                           for number, line in enumerate(lines) if "error" in line)
    return any(_may_come_from_slim_headers(error, details, source) for error, details in errors)


def _may_come_from_slim_headers(error: str, details: str, source: str) -> bool:
    place, _, text = error.partition("error")
    if _UNNAMED.search(text):
        return True
    if match := _UNDECLARED.search(text):
        return _in_headers(place) or _may_be_found_in_full_headers(match[1], source)
    if match := _MEMBER.search(text):
        # Both kinds of headers have the whole of at::Tensor.
        return _in_headers(place) or ("at::Tensor" not in text and (match[1] or match[2]) in _names().full)
    if _TYPES.search(text):
        words = set(_WORD.findall(" ".join(re.findall(rf"{_Q}(.*?){_Q}", text))))
        return _in_headers(place) or bool(_TORCH.search(text + details) or words & _names().full)
    return False


def _in_headers(place: str) -> bool:
    """Whether one of torch's own headers misses something."""
    return str(toolchain.torch().root) in place or str(SLIM_DIR) in place


def _may_be_found_in_full_headers(name: str, source: str) -> bool:
    """Whether the full headers may declare a name without a namespace: for all, by `using namespace`, or as a function
    that is found by its arguments' types."""
    if name in _names().only_full or _is_operator(name):
        return True
    found_elsewhere = _USING.search(source) or re.search(rf"\b{name}\s*[(<]", source)
    return found_elsewhere is not None and name in _names().full


def _says_a_name_of_the_full_headers(source: str) -> bool:
    """Whether a macro, or a part of a qualified name such as `torch::nn::Linear`, is only in the full headers."""
    qualified = {word for chain in _QUALIFIED.findall(source) for word in _WORD.findall(chain)}
    macros = set(_MACRO.findall(source)) - set(_DEFINITION.findall(source))
    return any(not _is_operator(name) for name in qualified & _names().declared) or bool(macros & _names().macros)


def _is_operator(name: str) -> bool:
    """Whether it is one of torch's operators. The slim headers declare those that a source calls with a namespace."""
    return (toolchain.torch().include_dirs[0] / "ATen" / "ops" / f"{name}.h").is_file()


@cache
def _names() -> _Names:
    """Takes some seconds, once. Raises MissingTool."""
    text = _preprocessed([])
    full, slim = frozenset(_WORD.findall(text)), frozenset(_WORD.findall(_preprocessed([SLIM_DIR])))
    declared = {name or called for name, called in _DECLARATION.findall(text)}
    return _Names(full, full - slim, frozenset(declared - slim), frozenset(_DEFINITION.findall(text)) - slim)


def _preprocessed(first: Sequence[Path]) -> str:
    """All that `torch/extension.h` brings, macros included, with these folders before torch's."""
    torch = toolchain.torch()
    folders = [*first, *torch.include_dirs, toolchain.python_include()]
    flags = [word for folder in folders for word in ("-isystem", str(folder))]
    done = subprocess.run([toolchain.cxx(), torch.cxx_standard, *flags, "-E", "-dD", "-P", "-x", "c++", "-"],
                          input="#include <torch/extension.h>\n", capture_output=True, text=True, check=False)
    return done.stdout
