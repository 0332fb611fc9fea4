"""Makes the C++ compiler refuse arrays of variable length in device code, as nvcc does."""

from __future__ import annotations

from .functions import Function, find_functions
from .tokens import Code

BEGIN = '_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic error \\"-Wvla\\"") '
END = '_Pragma("GCC diagnostic pop") '
_NO_TYPES = {"return", "case", "goto", "new", "delete", "throw", "else", "do"}


def refuse_variable_lengths(code: Code) -> None:
    """Surrounds the bodies of device functions with pragmas, if they declare an array whose length is not a number. In
    host code nvcc allows such arrays."""
    for function in reversed(find_functions(code)):
        if function.on_device and _declares_array(code, function):
            code.insert(function.closing, END)
            code.insert(function.opening + 1, BEGIN)


def _declares_array(code: Code, function: Function) -> bool:
    for position in range(function.opening, function.closing):
        length = code.after(position)
        is_number = length < len(code) and code.tokens[length].kind == "number"
        if code.text(position) == "[" and not is_number and code.is_word(name := code.before(position)):
            before = code.before(name)
            if code.text(before) in ("*", ",", ">") or (code.is_word(before) and code.text(before) not in _NO_TYPES):
                return True
    return False
