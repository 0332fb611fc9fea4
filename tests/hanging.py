"""Problem files whose own code hangs at one step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PROBLEM = """\
import ctypes
import subprocess
import sys
import time

import torch
from torch import nn

IN_JUDGE = "inlinebench.judge.loop" in sys.modules
drawn = 0


def hang():
    with open({mark!r}, "a") as mark:
        mark.write("hangs\\n")
    ctypes.PyDLL(None).sleep(3000)  # holds the interpreter's lock, so no signal handler and no thread of Python runs


{module}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {constructor}

    def forward(self, x):
        {forward}
        return x * 2


def get_inputs():
    global drawn
    drawn += 1
    {inputs}
    return [torch.rand(64) + 0.5]


def get_init_inputs():
    {init}
    return []


def work():
    {work}
    return {{"bytes": 64}}
"""
SOLUTION = """\
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * 2
"""


def write_problem(folder: Path, name: str, code: Mapping[str, str]) -> Path:
    """Writes a problem with statements at some of its steps: `module`, `init`, `constructor`, `inputs`, `forward` and
    `work`. `hang()` there adds a line to the file `mark_of` and does not return."""
    path = folder / f"{name}.py"
    steps = dict.fromkeys(("module", "init", "constructor", "inputs", "forward", "work"), "pass") | code
    path.write_text(PROBLEM.format(mark=str(mark_of(path)), **steps))
    return path


def mark_of(path: Path) -> Path:
    """Returns the file that has a line for each time that a problem's code hung."""
    return path.with_suffix(".mark")


def times_hung(path: Path) -> int:
    """Returns how many times a problem's code hung."""
    return len(mark_of(path).read_text().splitlines()) if mark_of(path).exists() else 0
