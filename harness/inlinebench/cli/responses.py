"""A model's answer (`--response`): its code, put into files for as long as the run takes."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from inlinebench.records.catalog import Solution
from inlinebench.records.errors import UsageError
from inlinebench.records.options import STANDARD_INPUT, Options
from inlinebench.report.text import one_line

if TYPE_CHECKING:
    from inlinebench.response import Block

NAME = "answer"
LONGEST_BYTES = 16 << 20


@contextmanager
def answered(options: Options) -> Iterator[Options]:
    """The options with the answer's solutions in them; as they are where no answer is given.

    Says on stderr which block was chosen, and why. An answer without a solution is one that is invalid. Raises
    UsageError if the answer can't be read.
    """
    if options.response is None:
        yield options
        return
    from inlinebench.response import NoSolution

    text = _read(options.response)
    name = NAME if str(options.response) == STANDARD_INPUT else options.response.stem
    with tempfile.TemporaryDirectory(prefix="inlinebench-answer-") as folder:
        try:
            found = _blocks(text, name, every=options.all_blocks)
        except NoSolution as error:
            yield replace(options, answers=(Solution("", name, options.response, str(error)),))
            return
        yield replace(options, answers=tuple(_file(Path(folder), *each) for each in found.items()))


def _blocks(text: str, name: str, *, every: bool) -> dict[str, Block]:
    """The blocks to evaluate, by the names that their solutions get. Raises NoSolution."""
    from inlinebench.response import choose, solutions

    if every:
        return {f"{name}_block_{block.index}": block for block in solutions(text)}
    chosen = choose(text)
    print(f"{name}: {one_line(chosen.why)}", file=sys.stderr)
    return {name: chosen.block}


def _file(folder: Path, name: str, block: Block) -> Solution:
    path = folder / f"{name}.py"
    path.write_text(block.source, encoding="utf-8", newline="\n")
    return Solution("", name, path)


def _read(path: Path) -> str:
    try:
        with sys.stdin.buffer if str(path) == STANDARD_INPUT else path.open("rb") as file:
            data = file.read(LONGEST_BYTES + 1)
        if len(data) > LONGEST_BYTES:
            raise UsageError(f"--response {path}: longer than {LONGEST_BYTES >> 20} MiB, which is no answer")
        return data.decode("utf-8")
    except OSError as error:
        raise UsageError(f"--response {path}: {error.strerror}; name a file with an answer, or - for standard input"
                         ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--response {path}: no UTF-8 text: {error.reason} at byte {error.start}") from error
