"""A candidate under NVIDIA's compute-sanitizer: how it is started, and what the tool found."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from inlinebench.records.errors import UsageError

PROGRAM = "compute-sanitizer"
LOG = "sanitizer.log"
PATIENCE_S, SHORT_PATIENCE_S = 60.0, 5.0
"""For the report at the end: of a solution that ran to its end, and of one that failed."""
LONGEST_FINDING = 300
LONGEST_REPORT = 4000

_SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (?:\d+ hazards? displayed \()?(\d+) errors?", re.MULTILINE)
_FRAME = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "LEAK SUMMARY", "Warning", "Target application")
"""How the lines begin that are about the run, not about a finding."""
_LINE = re.compile(r"^=+ ?(.*)$", re.MULTILINE)


class NoReport(Exception):
    """The tool didn't say what it found."""


def command(tool: str) -> list[str]:
    """What starts a program under a tool. Raises UsageError if it isn't there."""
    program = shutil.which(PROGRAM) or shutil.which(PROGRAM, path="/usr/local/cuda/bin")
    if program is None:
        raise UsageError(f"--sanitize {tool}: no {PROGRAM} on PATH; it comes with the CUDA toolkit")
    options = ["--tool", tool, "--target-processes", "all", "--log-file", LOG, "--print-limit", "20"]
    # PyTorch probes for features by calls that may fail; only what kernels do is of interest.
    return [program, *options, *(["--report-api-errors", "no"] if tool == "memcheck" else [])]


def report(scratch: Path) -> str:
    """The end of a tool's report; empty if there is none."""
    log = scratch / LOG
    return log.read_text(encoding="utf-8", errors="replace")[-LONGEST_REPORT:] if log.is_file() else ""


def read(tool: str, scratch: Path) -> str:
    """What a tool found, in one line; empty if it found nothing. `scratch` is where the candidate ran.

    Raises NoReport, as `describe` does.
    """
    log = scratch / LOG
    if not log.is_file():
        raise NoReport(f"{tool} wrote no report")
    return describe(tool, log.read_text(encoding="utf-8", errors="replace"))


def describe(tool: str, report: str) -> str:
    """The number of errors in a report and the first of them, with its place; empty if there are none.

    Raises NoReport for one that doesn't end with its summary: that says nothing about the solution.
    """
    summary = _SUMMARY.findall(report)
    if not summary:
        raise NoReport(f"{tool} gave no summary: it may have been cut short")
    errors = sum(map(int, summary))
    if errors == 0:
        return ""
    lines = [line.strip() for line in _LINE.findall(report)]
    first = next((index for index, line in enumerate(lines) if _is_finding(line)), None)
    what = "" if first is None else "; ".join(part for part in lines[first : first + 3] if part)[:LONGEST_FINDING]
    return f"{tool}: {errors} error{'s' if errors > 1 else ''}, first: {what}"


def _is_finding(line: str) -> bool:
    return bool(line) and not line.startswith(_FRAME)
