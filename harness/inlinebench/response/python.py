"""What a text is as Python: whether it could be compiled, what it defines, and where its strings end."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MODEL = "ModelNew"
_ALWAYS = frozenset(dir(builtins)) | {"__file__", "__annotations__", "__builtins__", "__module__", "__qualname__"}
_TOKENS = {
    "": re.compile(r"\"\"\"|'''|[\"'#]"),
    **{quote: re.compile(rf"\\.?|{quote}") for quote in ('"', "'", '"""', "'''")},
}


@dataclass(frozen=True)
class Reading:
    """A text as Python: the names that its module level binds, and those it uses without binding them.

    `error` says why it isn't Python, `line` where (from 1; None if that is unknown); the rest is then empty.
    """

    defines_model: bool = False
    bound: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    error: str = ""
    line: int | None = None


def read(source: str) -> Reading:
    """Reads a text without running it. `missing` is left empty where ModelNew isn't mentioned, or after `import *`.

    The symbol table comes first: unlike `ast.parse` on Python 3.10, it survives an expression of any depth.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an unknown escape: the solution's own affair
            top = symtable.symtable(source, "response", "exec")
            tree = ast.parse(source) if MODEL in source else None
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
    """The quote of the string that goes on behind a line that begins inside `inside`; "" outside of strings.

    An f-string that holds its own quote, as Python 3.12 allows, may be misread.
    """
    position = 0
    while token := _TOKENS[inside].search(line, position):
        text, position = token[0], token.end()
        if text == "#":
            return ""
        if text == "\\":  # the last character of the line, which Python joins with the next
            return inside
        if not text.startswith("\\"):
            inside = "" if inside else text
    return inside if len(inside) == 3 else ""


def _names(top: symtable.SymbolTable) -> tuple[frozenset[str], frozenset[str]]:
    """The module's names that a text binds, and those that it uses, in whatever depth."""
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
    """The statements that run at import: those at module level, and below `if`, `try`, `with` and loops there."""
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
