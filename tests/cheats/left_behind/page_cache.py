"""Leaves a pattern of pages of a readable file in memory, every other one, and has the rest dropped.

Mechanism: the kernel keeps what was read, for all processes, and drops it for anyone who asks. Whether a page is there
is told by a read that must not wait. One bit a page, written without any right to write.
"""

import os
from pathlib import Path

import torch

from tests.cheats.left_behind.shared import Returning

PROBLEM = "batch_norm"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_SANDBOX = True

PAGE, PAGES = 4096, 48


def unused_file() -> Path:
    """A file of enough pages that nobody maps, the same in every process."""
    folder = Path(torch.__file__).parent
    paths = [*sorted(folder.glob("lib/*.a")), *sorted(folder.glob("_C/*.pyi")), *sorted(folder.glob("test/*"))]
    return next(path for path in paths if path.stat().st_size > PAGE * PAGES)


def is_in_memory(file: int, page: int) -> bool:
    try:
        return os.preadv(file, [bytearray(1)], page * PAGE, os.RWF_NOWAIT) == 1
    except OSError:
        return False


class ModelNew(Returning):
    def recall(self) -> bool:
        with unused_file().open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no page but those that are asked for
            there = [is_in_memory(file.fileno(), page) for page in range(PAGES)]
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return there == [page % 2 == 0 for page in range(PAGES)]

    def leave(self) -> None:
        with unused_file().open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            for page in range(0, PAGES, 2):
                os.pread(file.fileno(), 1, page * PAGE)
