"""`inlinebench schema`: prints the JSON schema of a line of results."""

from __future__ import annotations

import json
from collections.abc import Sequence

from inlinebench.cli.exits import show
from inlinebench.cli.parsing.parser import Parser
from inlinebench.results.result_schema import result_schema


def main(arguments: Sequence[str]) -> int:
    """Prints the schema and returns the exit status. Raises UsageError."""
    parser().parse_args(arguments)
    show(json.dumps(result_schema(), indent=2, ensure_ascii=False))
    return 0


def parser() -> Parser:
    return Parser("inlinebench schema", "Prints the JSON schema of a line that --out writes.",
                  examples="> result.schema.json     into a file")
