"""Decides from a solution's text whether it needs Triton on a machine that lacks it."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

TRITON = "triton"
LACKS_TRITON = "the solution calls a Triton function, and triton is not installed here; install triton to evaluate it"


def lacks_triton(solution: Path, without_cuda: bool = False) -> bool:
    """Whether Triton is not installed and the file imports it in a statement of the module itself.

    Importing such a file would always fail. An import in `try`, `if` or a function may not. The text decides, and not
    what the candidate says, because a solution can raise every error itself. With `without_cuda`, the file must have no
    other kernels than Triton's: it does not mention `cpp_extension`.
    """
    if importlib.util.find_spec(TRITON) is not None:
        return False
    try:
        text = solution.read_bytes()
        body = ast.parse(text).body
    except (SyntaxError, ValueError, OSError):
        return False  # importing it fails with a better message
    return any(TRITON in _imported(statement) for statement in body) and not (
        without_cuda and b"cpp_extension" in text)


def _imported(statement: ast.stmt) -> set[str]:
    """Returns the packages that a statement imports."""
    if isinstance(statement, ast.Import):
        return {alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.ImportFrom) and statement.level == 0:
        return {str(statement.module).partition(".")[0]}
    return set()
