"""The files that travel to a worker with a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from inlinebench.messages import Evaluate
from inlinebench.options import Options
from inlinebench.sandbox.given import files
from inlinebench.scheduler.identity import written

MOST_FILES, MOST_BYTES = 4096, 64 << 20
"""The most files and bytes of a solution to send. A worker evaluates without the others, unless it has them all."""


def of_solution(job: Evaluate, options: Options) -> dict[Path, bytes]:
    """Returns the contents of the files that a job's solution is given. Files that a candidate could not read on this
    machine are left out."""
    found: dict[Path, bytes] = {}
    left = MOST_BYTES
    readable = None if options.trust else [*job.given, options.solutions.resolve()]
    for path in _paths(job, options):
        with suppress(OSError):
            inside = readable is None or any(path.resolve().is_relative_to(each) for each in readable)
            if inside and path.is_file() and path.stat().st_size <= left:
                found[path] = path.read_bytes()
                left -= len(found[path])
    return found


def _paths(job: Evaluate, options: Options) -> Iterator[Path]:
    with suppress(OSError):  # a folder that cannot be read
        yield from (Path(path) for _, path in islice(files(job.given, written(options)), MOST_FILES))
