"""Builds one solution by torch's own `load_inline` and `load`, in its own process. Started by real_code.py.

    python benchmarks/real_code_stock.py SOLUTION PROBLEM

Imports both files and constructs the solution. Each call of `load_inline` and `load` prints two lines of JSON to
stdout: one at its start, and one with its seconds and its exception, if any. A last line has the exception of the
import or the constructor, if any.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from throughput_stock import load, watched
from torch.utils import cpp_extension

LONGEST = 100_000
"""The most characters of the start and of the end of a compiler's output."""


def main(solution: str, problem: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keeps the output of compilers and solutions apart from the JSON
    for name in ("load_inline", "load"):
        setattr(cpp_extension, name, noted(getattr(cpp_extension, name), answers))
    raised = ""
    try:
        reference = load(Path(problem))
        load(Path(solution)).ModelNew(*reference.get_init_inputs())
    except BaseException as error:  # noqa: BLE001
        # Builds count whatever the solution raises, including SystemExit.
        raised = described(error)
    say(answers, raised=raised)
    os._exit(0)  # threads of a solution would keep the process alive


def noted(build: Callable[..., Any], answers: TextIO) -> Callable[..., Any]:
    """Wraps a function to print the start, the seconds and the exception of each call."""
    spent: list[float] = []
    timed = watched(build, spent)

    def told(*arguments: Any, **named: Any) -> Any:
        error = ""
        say(answers, begun=True)
        try:
            return timed(*arguments, **named)
        except BaseException as raised:
            error = described(raised)
            raise
        finally:
            say(answers, seconds=spent[-1], error=error)

    return told


def described(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= 2 * LONGEST else f"{text[:LONGEST]}\n...\n{text[-LONGEST:]}"


def say(answers: TextIO, **facts: Any) -> None:
    print(json.dumps(facts), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
