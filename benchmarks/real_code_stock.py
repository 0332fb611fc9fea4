"""Builds one solution by torch's own `load_inline` and `load`, in a process of its own; started by real_code.py.

    python benchmarks/real_code_stock.py SOLUTION PROBLEM

Imports both files and constructs the solution. Each call of `load_inline` and `load` is two lines of JSON on stdout:
one when it begins, and one with the seconds inside it and what it raised, if it did. A last line says what import and
constructor raised, if they did.
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
"""Characters that are kept of the start and of the end of a compiler's output."""


def main(solution: str, problem: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what compilers and solutions print is no answer
    for name in ("load_inline", "load"):
        setattr(cpp_extension, name, noted(getattr(cpp_extension, name), answers))
    raised = ""
    try:
        reference = load(Path(problem))
        load(Path(solution)).ModelNew(*reference.get_init_inputs())
    except BaseException as error:  # noqa: BLE001
        # SystemExit, too: whatever a solution raises, its builds count.
        raised = described(error)
    say(answers, raised=raised)
    os._exit(0)  # threads that a solution started would keep the process


def noted(build: Callable[..., Any], answers: TextIO) -> Callable[..., Any]:
    """The same function, which also says how long it took and what it raised."""
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
