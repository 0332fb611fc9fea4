"""Parses Python, in one thread at a time."""

from __future__ import annotations

import ast
from threading import Lock

_one = Lock()


def parse(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """As `ast.parse`, which Python 3.11 fails with a SystemError if several threads call it (CPython issue 106905)."""
    with _one:
        return ast.parse(source, filename)


def parse_expression(source: str) -> ast.Expression:
    """As `ast.parse` with the mode `eval`."""
    with _one:
        return ast.parse(source, mode="eval")
