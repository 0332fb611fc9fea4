"""Each planted bug is found, and its fixed version passes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cuda_on_cpu import runtime_library

from .device import build_for_cpu

pytestmark = pytest.mark.slow

_BUGS = Path(__file__).parent / "bugs"
_PLANTED = sorted(path.stem for path in _BUGS.glob("*.cu") if not path.stem.endswith("_fixed"))
# A multiple of all sizes (an overrun reaches the guard page), an odd size (it reaches the canaries), at most one block.
_SIZES = [1024, 1001, 37]
_TOLERANCE = 1e-5


@cache
def _library(name: str, folder: Path) -> Path:
    return build_for_cpu(_BUGS / f"{name}.cu", folder)


def _run(name: str, size: int, folder: Path) -> tuple[dict[str, Any], str]:
    """Returns the process's line of JSON (empty if it crashed) and the message of the crash."""
    command = [sys.executable, str(Path(__file__).with_name("run_bug.py")), str(_library(name, folder))]
    result = subprocess.run(
        [*command, str(runtime_library(folder)), str(size)], capture_output=True, text=True, timeout=60, check=False
    )
    messages = [line for line in result.stderr.splitlines() if line.startswith("inlinebench:")]
    assert result.returncode <= 0, result.stderr
    return (json.loads(result.stdout) if result.returncode == 0 else {}), "\n".join(messages)


@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("name", _PLANTED)
def test_a_planted_bug_is_found(name: str, size: int, build_folder: Path) -> None:
    finding = (_BUGS / f"{name}.cu").read_text().splitlines()[0].removeprefix("// finds: ")
    if finding.endswith("(n > 64)") and size <= 64:
        pytest.skip("the bug needs at least two blocks")
    finding = finding.removesuffix(" (n > 64)")
    kind, _, text = finding.partition(" ")
    result, crash = _run(name, size, build_folder)
    message = crash or result["error"]
    if kind == "error" or message:
        assert "_kernel" in message
        assert text.removeprefix("or ") in message if text else kind == "error"
    else:
        # The result is wrong under at least one schedule: two that differ cannot both be right.
        assert kind in ("wrong", "schedule") and max(result["errors"]) > _TOLERANCE


@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("name", [f"{name}_fixed" for name in _PLANTED])
def test_the_fixed_version_passes(name: str, size: int, build_folder: Path) -> None:
    result, crash = _run(name, size, build_folder)
    assert crash == ""
    assert result["error"] == "" and max(result["errors"]) < _TOLERANCE


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("overrun_write", " at overrun_write.cu:7: 0 bytes past the end of `out` (global), which has 4096 bytes"),
        ("null_pointer", " at null_pointer.cu:8: "),
        ("misaligned", " at misaligned.cu:8"),
        ("misaligned_copy", " at misaligned_copy.cu:13: an access of 16 bytes at address "),
        ("zero_division", " at zero_division.cu:7"),
    ],
)
def test_a_fault_is_reported_with_its_line(name: str, place: str, build_folder: Path) -> None:
    assert place in _run(name, 1024, build_folder)[1]


def test_an_address_near_zero_is_past_a_null_pointer(build_folder: Path) -> None:
    """Which block of the kernel is the first to fault is not known."""
    message = _run("null_pointer", 1024, build_folder)[1]
    assert re.search("(null or misaligned address|[0-9]+ bytes past a null pointer)", message)
