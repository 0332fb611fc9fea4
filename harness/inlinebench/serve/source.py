"""Writes a solution that is given as text to a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from inlinebench.options import Options

NAME = "solution"


@contextmanager
def as_file(options: Options, source: str | None) -> Iterator[Options]:
    """Yields the options with a temporary file of the source text as the solution; unchanged if `source` is None."""
    if source is None:
        yield options
        return
    with tempfile.TemporaryDirectory(prefix="inlinebench-") as folder:
        path = Path(folder) / f"{NAME}.py"
        path.write_text(source, encoding="utf-8")
        yield replace(options, solution_files=(path,))
