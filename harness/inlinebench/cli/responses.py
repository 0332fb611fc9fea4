"""`--response`: the code of a model's response, written to temporary files for the duration of a run."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from inlinebench.catalog import Solution
from inlinebench.cli.exits import say
from inlinebench.errors import UsageError
from inlinebench.options import STANDARD_INPUT, Options

if TYPE_CHECKING:
    from inlinebench.response import Block

NAME = "response"
"""Name of the solution when the response comes from standard input."""
LONGEST_BYTES = 16 << 20


@contextmanager
def with_responses(options: Options) -> Iterator[Options]:
    """The options with the solutions of the response added; unchanged without a response.

    Says on stderr which code block was chosen, and why. A response without a solution is evaluated as `invalid`. Raises
    UsageError if the response cannot be read.
    """
    if options.response is None:
        yield options
        return
    from inlinebench.response import NoSolution

    text = _read(options.response)
    name = NAME if str(options.response) == STANDARD_INPUT else options.response.stem
    with tempfile.TemporaryDirectory(prefix="inlinebench-response-") as folder:
        try:
            found = _blocks(text, name, every=options.all_blocks)
        except NoSolution as error:
            yield replace(options, responses=(Solution("", name, options.response, str(error)),))
            return
        yield replace(options, responses=tuple(_file(Path(folder), *each) for each in found.items()))


def _blocks(text: str, name: str, *, every: bool) -> dict[str, Block]:
    """The code blocks to evaluate, by the names of their solutions. Raises NoSolution."""
    from inlinebench.response import choose, solutions

    if every:
        return {f"{name}_block_{block.index}": block for block in solutions(text)}
    chosen = choose(text)
    say(f"{name}: {chosen.why}")
    return {name: chosen.block}


def _file(folder: Path, name: str, block: Block) -> Solution:
    path = folder / f"{name}.py"
    path.write_text(block.source, encoding="utf-8", newline="\n")
    return Solution("", name, path, alone=True)


def _read(path: Path) -> str:
    if str(path) == STANDARD_INPUT and sys.stdin is None:  # closed by the shell (`<&-`)
        raise UsageError("--response -: standard input is closed; pipe a response in, or name a file")
    try:
        with sys.stdin.buffer if str(path) == STANDARD_INPUT else path.open("rb") as file:
            data = file.read(LONGEST_BYTES + 1)
        if len(data) > LONGEST_BYTES:
            raise UsageError(f"--response {path}: longer than {LONGEST_BYTES >> 20} MiB, which is not a response")
        return data.decode("utf-8")
    except OSError as error:
        raise UsageError(f"--response {path}: {error.strerror}; name a file with a response, or - for standard input"
                         ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--response {path}: not UTF-8 text: {error.reason} at byte {error.start}") from error
