"""Decides from a solution's text whether it needs Triton on a machine that lacks it."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

TRITON = "triton"
LACKS_TRITON = "the solution imports triton, which is not installed here; install triton to evaluate it"


def lacks_triton(solution: Path) -> bool:
    """Whether Triton is not installed and the file imports it in a statement of the module itself.

    Importing such a file always fails. An import in `try`, `if` or a function may not: its solution is evaluated. The
    text decides, and not what the candidate says, because a solution can raise every error itself.
    """
    if importlib.util.find_spec(TRITON) is not None:
        return False
    try:
        body = ast.parse(solution.read_bytes()).body
    except (SyntaxError, ValueError):
        return False  # importing it fails with a better message
    return any(TRITON in _imported(statement) for statement in body)


def _imported(statement: ast.stmt) -> set[str]:
    """Returns the packages that a statement imports."""
    if isinstance(statement, ast.Import):
        return {alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.ImportFrom) and statement.level == 0:
        return {str(statement.module).partition(".")[0]}
    return set()
