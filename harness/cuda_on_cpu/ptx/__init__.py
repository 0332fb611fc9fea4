"""Translates inline PTX, the asm statements of CUDA sources, into C++ for `include/cuda_on_cpu/ptx.h`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import Unsupported
from ..tokens import Code
from .statement import KEYWORDS, read_statement, string_macros
from .syntax import PtxError
from .translation import to_cpp

__all__ = ["rename_parameters", "rewrite_assembly", "string_macros"]

_PARAMETER = "cuda_on_cpu_parameter_"
_ADVICE = "cannot run on the CPU; run with a CUDA device"
_FAMILIES = [
    (r"wgmma", "wgmma, the tensor cores of a warp group,"),
    (r"tcgen05", "tcgen05, the tensor cores of Blackwell,"),
    (r"cp\.(async|reduce\.async)\.bulk|tensormap|prefetch\.tensormap", "TMA"),
    (r"e4m3|e5m2|e3m2|e2m3|e2m1|ue8m0|f8f6f4", "8-bit and smaller floats"),
    (r"\bcluster|cluster_|mapa", "thread block clusters"),
]


def rename_parameters(head: str, body: Code) -> str:
    """Renames the parameters of a macro that has asm statements, in `body` and in the returned head, so that they do
    not stand for names in the translation."""
    name, opening, parameters = head.partition("(")
    if not opening or not any(body.words(*KEYWORDS)):
        return head
    for position in list(body.words(*re.findall(r"\w+", parameters))):
        body.replace(position, f"{_PARAMETER}{body.text(position)}")
    return name + opening + re.sub(r"\w+", lambda word: f"{_PARAMETER}{word.group()}", parameters)


def rewrite_assembly(code: Code, strings: Mapping[str, str]) -> None:
    """Rewrites every asm statement in place. `strings` are the macros that may stand in their text. Raises Unsupported
    with the name of the instruction that cannot be translated."""
    for position in reversed(list(code.words(*KEYWORDS))):
        line = code.tokens[position].line
        try:
            statement = read_statement(code, position, strings)
            if not statement.text.strip() and not statement.operands:
                continue  # it only keeps the compiler from reordering memory accesses
            cpp = to_cpp(statement.text, statement.operands)
        except PtxError as error:
            raise Unsupported(f"inline PTX {error}", line, _reason(str(error))) from error
        line_ends = code.line_ends(statement.start, statement.end, in_strings=True)
        code.splice(statement.start, statement.end + 1, cpp + line_ends)


def _reason(message: str) -> str:
    for pattern, what in _FAMILIES:
        if re.search(pattern, message):
            return f"{what} {_ADVICE}"
    return f"this PTX {_ADVICE}"
