"""Reads text as Python: whether it is valid, what it defines, and where its strings end."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inlinebench.parsing import parse

MODEL = "ModelNew"
_ALWAYS = frozenset(dir(builtins)) | {"__file__", "__annotations__", "__builtins__", "__module__", "__qualname__"}
_TOKENS = {
    "": re.compile(r"\"\"\"|'''|[\"'#]"),
    **{quote: re.compile(rf"\\.?|{quote}") for quote in ('"', "'", '"""', "'''")},
}


@dataclass(frozen=True)
class Reading:
    """A text as Python. If it is not valid Python, all fields but `error` and `line` are empty."""

    defines_model: bool = False
    """Whether it defines `ModelNew`."""
    bound: frozenset[str] = frozenset()
    """The names that it binds at module level."""
    missing: frozenset[str] = frozenset()
    """The names that it uses but does not bind."""
    error: str = ""
    """Why it is not valid Python."""
    line: int | None = None
    """The line of the error, from 1; None if unknown."""


def read(source: str) -> Reading:
    """Reads a text without running it. `missing` is empty if ModelNew is not mentioned, or with `import *`.

    The symbol table is built first: unlike `ast.parse` on Python 3.10, it survives deeply nested expressions.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an unknown escape, which is not an error
            top = symtable.symtable(source, "response", "exec")
            tree = parse(source) if MODEL in source else None
    except SyntaxError as error:
        return Reading(error=error.msg or "invalid syntax", line=error.lineno or None)
    except ValueError as error:  # a null byte, or half a surrogate pair
        return Reading(error=str(error))
    except (RecursionError, MemoryError):
        return Reading(error="it is nested too deeply for Python")
    bound, used = _names(top)
    if tree is None:
        return Reading(bound=bound)
    statements = list(_statements(tree))
    star = any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in statements)
    return Reading(_defines_model(statements), bound, frozenset() if star else used - bound - _ALWAYS)


def string_after(line: str, inside: str) -> str:
    """Returns the quote of the string that is open after a line; empty if none is.

    `inside` is the quote of the string that is open before the line. An f-string that contains its own quote, as Python
    3.12 allows, may be misread.
    """
    position = 0
    while token := _TOKENS[inside].search(line, position):
        text, position = token[0], token.end()
        if text == "#":
            return ""
        if text == "\\":  # a backslash at the end of the line continues the string
            return inside
        if not text.startswith("\\"):
            inside = "" if inside else text
    return inside if len(inside) == 3 else ""


def _names(top: symtable.SymbolTable) -> tuple[frozenset[str], frozenset[str]]:
    """Returns the module-level names that a text binds, and those that it uses, at any depth."""
    bound: set[str] = set()
    used: set[str] = set()
    waiting = [top]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        for symbol in table.get_symbols():
            if table is top or symbol.is_global():
                binds = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
                (bound if binds else used).add(symbol.get_name())
    return frozenset(bound), frozenset(used)


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yields the statements that run at import: those at module level, also inside `if`, `try`, `with` and loops."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += [child for child in ast.iter_child_nodes(node)
                        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case)]


def _defines_model(statements: Sequence[ast.stmt]) -> bool:
    classes = {node.name for node in statements if isinstance(node, ast.ClassDef)}
    return MODEL in classes or any(
        isinstance(node.value, ast.Name) and node.value.id in classes
        and any(isinstance(target, ast.Name) and target.id == MODEL for target in node.targets)
        for node in statements if isinstance(node, ast.Assign)
    )
