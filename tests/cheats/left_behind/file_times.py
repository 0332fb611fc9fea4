"""Leaves a number in the access time of files that it may only read.

Mechanism: setting a file's times needs its owner's rights, not an open file, and rules for paths that speak of reading
and writing may not cover it. Thirty bits of nanoseconds a file, and there are thousands of files. The files here are
the solution's own, the harness's and torch's; their times of change stay as they are.
"""

import os
import time
from pathlib import Path

import torch

import inlinebench
from tests.cheats import shared
from tests.cheats.left_behind.shared import Returning

PROBLEM = "batch_norm"
EXPECTED = "wrong"
CAUGHT_BY = "elements differ"
NEEDS_SANDBOX = True

FILES = [Path(module.__file__) for module in (shared, inlinebench, torch, os)]
FILES += [Path(shared.kernels.__file__)]
SECOND, MARK = 1_000_000_000, 123_456_789


class ModelNew(Returning):
    def recall(self) -> bool:
        found = [path for path in FILES if path.stat().st_atime_ns % SECOND == MARK]
        for path in found:
            os.utime(path, ns=(int(time.time()) * SECOND, path.stat().st_mtime_ns))
        return bool(found)

    def leave(self) -> None:
        marked, now = [], int(time.time()) * SECOND
        for path in FILES:
            try:
                os.utime(path, ns=(now + MARK, path.stat().st_mtime_ns))
                marked.append(path)
            except OSError:
                continue
        if not marked:
            raise PermissionError("no file takes a time")
        print("marked", *marked)
