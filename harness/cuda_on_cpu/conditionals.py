"""Finds text that the preprocessor is certain to drop, so that it is not checked or translated."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .tokens import Token, tokenize

# The values that translated sources see. include/cuda_on_cpu/qualifiers.h has the same.
CUDA_ARCH = 900
_KNOWN: dict[str, int] = {
    "__CUDA_ARCH__": CUDA_ARCH,
    "__CUDACC__": 1,
    "__NVCC__": 1,
    "CUDA_VERSION": 13000,
    "CUDART_VERSION": 13000,
    "__CUDACC_VER_MAJOR__": 13,
    "__CUDACC_VER_MINOR__": 0,
    "__cplusplus": 202002,
}
# Never defined. Sources use the last five for features of one generation of GPUs, with a branch for the others. nvcc
# also defines the last one for the host: the GPUs that it makes code for, of which there are none here.
_UNDEFINED = set(
    ["USE_ROCM", "__HIPCC__", "__HIP_PLATFORM_AMD__", "__HIP_DEVICE_COMPILE__", "_WIN32", "_MSC_VER", "__clang__",
     "__CUDA_ARCH_FEAT_SM90_ALL", "__CUDA_ARCH_FEAT_SM100_ALL", "__CUDA_ARCH_SPECIFIC__",
     "__CUDA_ARCH_FAMILY_SPECIFIC__", "__CUDA_ARCH_LIST__"]
)

_CONDITIONALS = ("if", "ifdef", "ifndef", "elif", "else", "endif")
_DIRECTIVE = re.compile(r"#\s*(\w*)(.*)", re.DOTALL)
_MACRO = re.compile(r"\s*(\w+)(\()?(.*)", re.DOTALL)


@dataclass
class _Branch:
    """An open #if: what is known about the current branch, and about all earlier branches together."""

    outer_dropped: bool
    value: bool | None
    taken: bool | None


def drop_inactive(tokens: list[Token]) -> list[Token]:
    """Replaces text that is certain to be dropped by spaces. If a condition is unknown, all its branches stay."""
    macros: dict[str, int | None] = dict(_KNOWN)
    stack: list[_Branch] = []
    dropped = False
    result: list[Token] = []
    for token in tokens:
        if token.kind == "directive":
            name, rest = split_directive(token.text)
            if name in ("if", "ifdef", "ifndef"):
                value = None if dropped else _condition(name, rest, macros)
                stack.append(_Branch(dropped, value, value))
            elif name in ("elif", "else") and stack:
                _next_branch(stack[-1], name, rest, macros)
            elif name == "endif" and stack:
                dropped = stack.pop().outer_dropped
            elif not dropped:
                certain = all(branch.value is True for branch in stack)
                _define(name, rest, macros, certain)
            if stack:
                dropped = stack[-1].outer_dropped or stack[-1].value is False
            gone = dropped and name not in _CONDITIONALS
            result.append(Token("space", token.text, token.line) if gone else token)
        else:
            result.append(Token("space", token.text, token.line) if dropped else token)
    return result


def split_directive(text: str) -> tuple[str, str]:
    """Returns the name of a directive (`define`) and the text after it, including joined lines and comments."""
    match = _DIRECTIVE.match(text)
    return (match.group(1), match.group(2)) if match else ("", "")


def _next_branch(branch: _Branch, name: str, rest: str, macros: dict[str, int | None]) -> None:
    if branch.taken is True:
        branch.value = False
        return
    value = True if name == "else" else _condition("if", rest, macros)
    # If an earlier branch may have been taken, this branch is unknown unless it is certainly false.
    branch.value = None if branch.taken is None and value is not False else value
    branch.taken = True if value is True and branch.taken is False else (branch.taken if value is False else None)


def _define(name: str, rest: str, macros: dict[str, int | None], certain: bool) -> None:
    match = _MACRO.match(rest)
    if name not in ("define", "undef") or not match:
        return
    macro, parameters, body = match.groups()
    if name == "undef":
        macros[macro] = None
    elif parameters or not certain or macro in _KNOWN:
        macros.setdefault(macro, None)
        if macro not in _KNOWN:
            macros[macro] = None
    else:
        try:
            macros[macro] = _evaluate(body, macros)
        except _Unknown:
            macros[macro] = None


def _condition(name: str, rest: str, macros: dict[str, int | None]) -> bool | None:
    if name in ("ifdef", "ifndef"):
        rest = f"{'!' if name == 'ifndef' else ''}defined({rest.strip().split()[0] if rest.split() else '_'})"
    try:
        return bool(_evaluate(rest, macros))
    except _Unknown:
        return None


class _Unknown(Exception):
    """The value depends on something that only the compiler knows."""


def _evaluate(text: str, macros: dict[str, int | None]) -> int:
    """Evaluates an #if condition. Raises `_Unknown` if its value depends on an unknown part."""
    words = [token.text for token in tokenize(text, directives=False) if token.kind != "space"]
    parser = _Parser(_merge_signs(words), macros)
    value = parser.binary(0)
    if parser.words or value is None:
        raise _Unknown
    return value


def _merge_signs(words: list[str]) -> list[str]:
    """Joins signs such as `<` and `=`, which the tokenizer separates because of template brackets."""
    merged: list[str] = []
    for word in words:
        if merged and merged[-1] in ("<", ">") and word in ("=", merged[-1]):
            merged[-1] += word
        else:
            merged.append(word)
    return merged


# Binary operators by precedence, lowest first.
_LEVELS = [level.split() for level in ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")]


class _Parser:
    """Parses a condition. None stands for an unknown value."""

    def __init__(self, words: list[str], macros: dict[str, int | None]) -> None:
        self.words = words[::-1]
        self.macros = macros

    def take(self) -> str:
        if not self.words:
            raise _Unknown
        return self.words.pop()

    def binary(self, level: int) -> int | None:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.words and self.words[-1] in _LEVELS[level]:
            left = _apply(self.words.pop(), left, self.binary(level + 1))
        return left

    def unary(self) -> int | None:
        word = self.take()
        if word in ("!", "-", "+"):
            value = self.unary()
            return None if value is None else {"!": int(not value), "-": -value, "+": value}[word]
        if word == "(":
            value = self.binary(0)
            if self.take() != ")":
                raise _Unknown
            return value
        if word == "defined":
            return self.defined()
        if word[0].isdigit():
            return _number(word)
        if word in _UNDEFINED:
            return 0
        if self.words and self.words[-1] == "(":  # for example __has_include
            raise _Unknown
        return self.macros.get(word)

    def defined(self) -> int | None:
        name = self.take()
        if name == "(":
            name = self.take()
            self.take()
        if name in _UNDEFINED:
            return 0
        return 1 if self.macros.get(name) is not None else None


def _number(word: str) -> int:
    try:
        return int(word.rstrip("uUlL").replace("'", ""), 0)
    except ValueError:
        raise _Unknown from None


def _apply(sign: str, left: int | None, right: int | None) -> int | None:
    if sign == "&&":
        return 0 if left == 0 or right == 0 else (None if left is None or right is None else 1)
    if sign == "||":
        return 1 if left or right else (None if left is None or right is None else 0)
    if left is None or right is None:
        return None
    if sign in ("/", "%") and right == 0:
        raise _Unknown
    return int(_OPERATIONS[sign](left, right))


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "<<": lambda a, b: a << b if 0 <= b < 64 else 0,
    ">>": lambda a, b: a >> b if 0 <= b < 64 else 0,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: int(a / b),
    "%": lambda a, b: a % b,
}
