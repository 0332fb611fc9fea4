"""Decides whether a build that failed with slim headers gets a second try with torch's full ones.

The second try takes as long as torch's own build. It helps only where the compiler misses something that the full
headers declare and the slim ones do not; any other error is the author's, and is reported at once.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from inlinebench.build import toolchain
from inlinebench.build.slim import SLIM_DIR

_UNKNOWN = re.compile(
    r"was not declared|has not been declared|is undefined|does not name a|is not a template|not a member of|"
    r"has no member"
)
"""Errors about a name, which stands in quotes."""
_NO_FIT = re.compile(r"no operator|no match for|no matching function|no instance of|incomplete type")
"""Errors about types: an overload, a conversion or a definition may be missing."""
_TORCH = re.compile(r"\b(?:at|c10|torch)\b")
_QUOTED = re.compile("[\"'\u2018]([^\"'\u2018\u2019]*)[\"'\u2019]")
"""A name in an error, between the quotes of nvcc, of GCC in a C locale, or of GCC in a UTF-8 locale."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"\b[A-Z][A-Z0-9_]{2,}\b")
_QUALIFIED = re.compile(r"\b[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+")
_DEFINITION = re.compile(r"#\s*define\s+([A-Za-z_]\w*)")
_DECLARATION = re.compile(
    r"\b(?:class|struct|union|enum|namespace|concept|using|define)\s+([A-Za-z_]\w*)|([A-Za-z_]\w*)\s*[(<]"
)
_DETAILS = 2
"""Lines below an error in which nvcc gives the types of operands and arguments."""


def needs_full_headers(log: str, sources: Sequence[str]) -> bool:
    """Whether the errors in a compiler's output may come from what the slim headers leave out.

    An unknown macro or namespace leads to errors that do not name it, so what the sources say counts as well. Raises
    MissingTool.
    """
    if any(_says_a_name_of_the_full_headers(source) for source in sources):
        return True
    lines = log.splitlines()
    return any(_may_come_from_slim_headers(line, " ".join(lines[number + 1 : number + 1 + _DETAILS]))
               for number, line in enumerate(lines) if "error" in line)


def _may_come_from_slim_headers(error: str, details: str) -> bool:
    place, _, text = error.partition("error")
    if not (_UNKNOWN.search(text) or _NO_FIT.search(text)):
        return False
    if str(toolchain.torch().root) in place or str(SLIM_DIR) in place:
        return True  # one of torch's own headers misses something
    if _NO_FIT.search(text):
        return bool(_TORCH.search(text + details))
    names = {word for quoted in _QUOTED.findall(text) for word in _WORD.findall(quoted) if not _TORCH.fullmatch(word)}
    return any(_is_operator(name) or name in _full_only().declared for name in names)


def _says_a_name_of_the_full_headers(source: str) -> bool:
    """Whether a macro, or a part of a qualified name such as `torch::nn::Linear`, is only in the full headers."""
    qualified = {word for chain in _QUALIFIED.findall(source) for word in _WORD.findall(chain)}
    macros = set(_MACRO.findall(source)) - set(_DEFINITION.findall(source))
    return (any(not _is_operator(name) for name in qualified & _full_only().declared)
            or bool(macros & _full_only().macros))


def _is_operator(name: str) -> bool:
    """Whether it is one of torch's operators. The slim headers declare those that a source calls with a namespace."""
    return (toolchain.torch().include_dirs[0] / "ATen" / "ops" / f"{name}.h").is_file()


@dataclass(frozen=True)
class _Names:
    """Names that are declared in the full headers, and macros defined there, that the slim ones do not mention."""

    declared: frozenset[str]
    macros: frozenset[str]


@cache
def _full_only() -> _Names:
    """Takes some seconds, once. Raises MissingTool."""
    full, slim = _preprocessed([]), frozenset(_WORD.findall(_preprocessed([SLIM_DIR])))
    declared = {name or called for name, called in _DECLARATION.findall(full)}
    return _Names(frozenset(declared - slim), frozenset(_DEFINITION.findall(full)) - slim)


def _preprocessed(first: Sequence[Path]) -> str:
    """All that `torch/extension.h` brings, macros included, with these folders before torch's."""
    torch = toolchain.torch()
    folders = [*first, *torch.include_dirs, toolchain.python_include()]
    flags = [word for folder in folders for word in ("-isystem", str(folder))]
    done = subprocess.run([toolchain.cxx(), torch.cxx_standard, *flags, "-E", "-dD", "-P", "-x", "c++", "-"],
                          input="#include <torch/extension.h>\n", capture_output=True, text=True, check=False)
    return done.stdout
