"""Runs a command of which one system call fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..running import ROOT

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Fault:
    """The `nth` system call of this name fails with an error number. The first is 1; -3 stands for all from the third.
    """

    call: str
    nth: int
    error: int

    def __str__(self) -> str:
        return f"{self.call} {self.nth}: {os.strerror(self.error)}"


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    status: int
    out: str
    err: str
    calls: Counter[str]
    """How often each call was made below the folder."""
    failed: bool
    """Whether the fault happened."""

    @property
    def text(self) -> str:
        """All that it printed."""
        return self.out + self.err


@cache
def library(folder: Path) -> Path:
    """Compiles the library that makes calls fail, and returns its path."""
    made = folder / "failing_calls.so"
    subprocess.run(["c++", "-shared", "-fPIC", "-O1", "-o", made, HERE / "failing_calls.cpp"], check=True)
    return made


def run(command: Sequence[str | Path], below: Path, fault: Fault | None, *, preload: Path, log: Path) -> Ended:
    """Runs a command whose calls below a folder count. `log` is a file for the counts, which is written anew."""
    log.unlink(missing_ok=True)
    found = fault or Fault("none", 0, 0)
    variables = {"LD_PRELOAD": str(preload), "FAULT_CALL": found.call, "FAULT_NTH": str(found.nth),
                 "FAULT_ERRNO": str(found.error), "FAULT_BELOW": str(below), "FAULT_LOG": str(log)}
    done = subprocess.run([*map(str, command)], env={**os.environ, **variables}, cwd=ROOT, check=False, text=True,
                          capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
    lines = log.read_text().splitlines() if log.exists() else []
    return Ended(done.returncode, done.stdout, done.stderr, Counter(lines), f"failed {found.call}" in lines)


def python(name: str, *arguments: str | Path) -> list[str | Path]:
    """Returns the command that runs a module of this folder."""
    return [sys.executable, "-m", f"tests.faults.{name}", *arguments]
