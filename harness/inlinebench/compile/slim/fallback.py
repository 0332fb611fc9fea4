"""Decides whether a build that failed with slim headers is repeated with torch's full headers.

It is repeated if an error may be about a declaration that only the full headers have. Most failed builds have errors of
the author's instead, and a second build takes much longer than the first: 26 s after 4 s of one core with nvcc, and 62
s after 21 s with the compiler for the CPU, for a missing semicolon in a short kernel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from inlinebench.compile import toolchain
from inlinebench.compile.slim import SLIM_DIR

_Q = "[\"'\u2018\u2019]"
"""A quotation mark of nvcc, of GCC in a C locale, or of GCC in a UTF-8 locale."""
_ERROR = re.compile(r"\berror\b")
"""The word in a message, but not in a command, which may have -fmax-errors."""
_LOOKUP = re.compile("declared|undefined|member|not name a|not a template|no operator|no match|no instance|ambiguous|"
                     "no suitable constructor")
"""Errors about a name, an overload or a conversion that was not found."""
_UNNAMED = re.compile("class or namespace name|expected (?:template|class|type)-name|incomplete|complete object type")
"""Errors about a missing declaration that need not name it."""
_FULL = re.compile(rf"\b(?:at|c10|torch|thrust|std)(?:::|{_Q})|{_Q}(?:D?CHECK|V?LOG|(?:C10|TORCH|RECORD|CAFFE)_)")
"""Names of which the full headers declare more: those in namespaces, and macros."""
_USING = re.compile(r"\busing\s+namespace\s+(?:at|c10|torch|std)\b")
_OVERLOADED = re.compile(rf"(?:call to|function(?: template)?) {_Q}(\w+)[({_Q[1:-1]}]")
"""An error about the arguments of a function, with its name."""
_DETAILS = 2
"""Lines below an error in which nvcc gives the types of operands and arguments."""


def needs_full_headers(log: str, sources: Sequence[str]) -> bool:
    """Whether the errors in a compiler's output may be due to declarations that the slim headers lack.

    `sources` are all texts of the author, including headers.
    """
    source, lines = "\n".join(sources), log.splitlines()
    return any(_may_lack_headers(line, " ".join(lines[number : number + 1 + _DETAILS]), source)
               for number, line in enumerate(lines) if _ERROR.search(line))


def _may_lack_headers(line: str, details: str, source: str) -> bool:
    torch, (location, _, text) = toolchain.torch(), line.partition("error")
    if str(torch.root) in location or str(SLIM_DIR) in location or _UNNAMED.search(text):
        return True
    if not _LOOKUP.search(text) or ("at::Tensor" in text and "no member" in text):  # both declare all of at::Tensor
        return False
    overloaded = _OVERLOADED.search(text)
    if overloaded and _defines(source, overloaded[1]):  # of the author's own, whatever the types of the arguments are
        return False
    called = [name for name in re.findall(rf"{_Q}(\w+){_Q}", text) if re.search(rf"\b{name}\s*\(", source)]
    operators = [name for name in called if (torch.include_dirs[0] / "ATen" / "ops" / f"{name}.h").is_file()]
    return bool(_FULL.search(details) or _USING.search(source) or operators)


def _defines(source: str, name: str) -> bool:
    """Whether a source declares a function, rather than only calling it: `float name(` or `Tensor& name(`."""
    return re.search(rf"(?:\b(?!return\b|else\b|throw\b)\w+\s|[>*&]\s*){name}\s*\(", source) is not None
