"""Translates `__shared__` declarations into references into the running block's shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .errors import Unsupported
from .functions import Function, find_functions
from .tokens import Code

_DROPPED = {"__shared__", "static", "extern"}
_TAG = "cuda_on_cpu_shared"


@dataclass(frozen=True)
class _Declaration:
    """A declaration. `text` declares `names` as members of a struct; positions are the first token and the `;`."""

    start: int
    end: int
    text: str
    names: list[str]
    dynamic: bool


def rewrite_shared(code: Code) -> None:
    """Rewrites every `__shared__` declaration in place, inside and outside of functions."""
    _move_into_functions(code)
    while (position := next(code.words("__shared__"), -1)) >= 0:
        declaration = _read(code, position)
        text = _local_text(declaration)
        if not declaration.dynamic:
            _capture_by_reference(code, declaration)
        line_ends = code.line_ends(declaration.start, declaration.end)
        code.splice(declaration.start, declaration.end, text + line_ends)


def _flat(code: Code, start: int = 0, end: int | None = None) -> str:
    """Returns code on one line, without comments."""
    return " ".join(token.text for token in code.tokens[start:end] if token.kind != "space")


def _capture_by_reference(code: Code, declaration: _Declaration) -> None:
    """Replaces `[=]` by `[=, &name]` in the rest of the block, so that lambdas do not copy shared memory."""
    captures = "".join(f", &{name}" for name in declaration.names)
    for position in range(_block_end(code, declaration.end) - 1, declaration.end, -1):
        if code.text(position) == "[" and code.text(equals := code.after(position)) == "=":
            code.insert(equals + 1, captures)


def _block_end(code: Code, position: int) -> int:
    """Returns the `}` that closes the block around a position."""
    depth = 0
    while position < len(code):
        depth += {"{": 1, "}": -1}.get(code.text(position), 0)
        if depth < 0:
            break
        position += 1
    return position


def _read(code: Code, position: int) -> _Declaration:
    start = _statement_start(code, position)
    end = _statement_end(code, position)
    dynamic = any(code.text(here) == "extern" for here in range(start, position + 3))
    kept = [token for token in code.tokens[start:end] if token.text not in _DROPPED or token.kind != "word"]
    body = Code(kept)
    names = list(_declared_names(body))
    if not names:
        line = code.tokens[position].line
        raise Unsupported("__shared__", line, "this declaration is not supported; declare an array or a variable")
    if dynamic:
        _give_extent(body)
    return _Declaration(start, end, _flat(body), names, dynamic)


def _statement_start(code: Code, position: int) -> int:
    """Returns the first token of the statement that contains a position."""
    start = position
    while True:
        before = code.before(start)
        if before < 0 or code.tokens[before].kind == "directive" or code.text(before) in (";", "{", "}", ":"):
            return start
        start = code.opening(before) if code.text(before) == ")" else before


def _statement_end(code: Code, position: int) -> int:
    while position < len(code) and code.text(position) != ";":
        position = code.closing(position) if code.text(position) in ("(", "[", "{") else position
        position += 1
    return min(position, len(code))


def _declared_names(body: Code) -> Iterator[str]:
    """Iterates over the declared names, the last word of each declarator: `a` and `b` in `float a[2], b`."""
    name, position = "", 0
    while position < len(body):
        text = body.text(position)
        if text in ("[", "(", "{"):
            position = body.closing(position)
        elif text == "<":
            position = max(body.angle_closing(position), position)
        elif text in (",", "="):
            if name:
                yield name
            name = ""
        elif body.is_word(position):
            name = text
        position += 1
    if name:
        yield name


def _give_extent(body: Code) -> None:
    """Replaces `[]` by `[1]`, because a member of a struct needs a size."""
    for position in range(len(body)):
        if body.text(position) == "[" and body.text(body.after(position)) == "]":
            body.insert(position + 1, "1")
            return


def _local_text(declaration: _Declaration) -> str:
    """Returns a declaration for each name. The struct is in a lambda, so that a macro can declare several in one scope.
    """
    parts = []
    for index, name in enumerate(declaration.names):
        member = f"decltype({_TAG}::{name})"
        if declaration.dynamic:
            reference, value = "auto*", f"::cuda_on_cpu::dynamic_shared_array<{member}>()"
        else:
            reference, value = "auto&", f'::cuda_on_cpu::shared_variable<{_TAG}, {member}, {index}>("{name}")'
        body = f"struct {_TAG} {{ {declaration.text}; }}; return {value};"
        parts.append(f"{reference} {name} = []() -> {reference} {{ {body} }}()")
    return "; ".join(parts)


def _move_into_functions(code: Code) -> None:
    """Moves a `__shared__` variable at file scope into each function that uses it."""
    functions = find_functions(code)
    for position in reversed(list(code.words("__shared__"))):
        if any(function.header <= position < function.closing for function in functions):
            continue
        if not functions:
            return  # the text of a macro: it is used inside of functions
        declaration = _read(code, position)
        flat = _flat(code, declaration.start, declaration.end)
        line_ends = code.line_ends(declaration.start, declaration.end)
        code.splice(declaration.start, declaration.end + 1, line_ends)
        for function in reversed(find_functions(code)):
            if function.opening > declaration.start and _names_any(code, function, declaration.names):
                code.insert(function.opening + 1, f" {flat};")


def _names_any(code: Code, function: Function, names: list[str]) -> bool:
    return any(code.text(here) in names for here in range(function.opening, function.closing))
