"""Finds the lines of a compiler's log that say what is wrong."""

from __future__ import annotations

import re

SHOWN = 3
_ERROR = re.compile(
    r"(\berror\s*:|\bfatal error\b|\berror #\d+|undefined reference|cannot find -l|\bptxas (fatal|error)\b)",
    re.IGNORECASE,
)


def first_errors(log: str) -> str:
    """The first error lines, at most three, joined by `; `; the log's last line where none looks like an error."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = list(dict.fromkeys(line for line in lines if _ERROR.search(line)))
    if not errors:
        return lines[-1] if lines else "the compiler said nothing"
    more = f" (and {len(errors) - SHOWN} more errors)" if len(errors) > SHOWN else ""
    return "; ".join(errors[:SHOWN]) + more
