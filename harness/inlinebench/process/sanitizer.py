"""Runs a candidate under NVIDIA's compute-sanitizer, and reads the tool's report.

The candidate is started through the tool instead of forked, outside the sandbox, because the tool communicates with the
process that it inspects. The shared buffers are in host memory, or `initcheck` would report inputs as uninitialized.
Each tensor has its own block, because the tool does not see an overrun inside a block that PyTorch rounded up.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from inlinebench.errors import UsageError

PROGRAM = "compute-sanitizer"
LOG = "sanitizer.log"
PATIENCE_S, SHORT_PATIENCE_S = 60.0, 5.0
"""How long to wait for the report, in seconds: of a solution that ran to its end, and of one that failed."""
LONGEST_FINDING = 300
LONGEST_REPORT = 4000

_SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (?:\d+ hazards? displayed \()?(\d+) errors?", re.MULTILINE)
_FRAME = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "LEAK SUMMARY", "Warning", "Target application")
"""The beginnings of lines that do not belong to a finding."""
_LINE = re.compile(r"^=+ ?(.*)$", re.MULTILINE)


class NoReport(Exception):
    """The tool wrote no complete report."""


def command(tool: str) -> list[str]:
    """Returns the command that runs a program under a tool, such as `memcheck`. Raises UsageError if it is missing."""
    program = shutil.which(PROGRAM) or shutil.which(PROGRAM, path="/usr/local/cuda/bin")
    if program is None:
        raise UsageError(f"--sanitize {tool}: {PROGRAM} is not on PATH; install the CUDA toolkit, which contains it")
    options = ["--tool", tool, "--target-processes", "all", "--log-file", LOG, "--print-limit", "20"]
    # PyTorch tests for features with API calls that may fail, so only errors of kernels are reported.
    return [program, *options, *(["--report-api-errors", "no"] if tool == "memcheck" else [])]


def report(scratch: Path) -> str:
    """Returns the end of a tool's report, or "" if there is none. `scratch` is the candidate's scratch folder."""
    log = scratch / LOG
    return log.read_text(encoding="utf-8", errors="replace")[-LONGEST_REPORT:] if log.is_file() else ""


def read(tool: str, scratch: Path) -> str:
    """Returns a tool's findings in one line, or "" if it found nothing. `scratch` is the candidate's scratch folder.

    Raises NoReport if the report is missing or incomplete.
    """
    log = scratch / LOG
    if not log.is_file():
        raise NoReport(f"{tool} wrote no report")
    return describe(tool, log.read_text(encoding="utf-8", errors="replace"))


def describe(tool: str, report: str) -> str:
    """Returns the number of errors in a report and the first error, or "" if there are none.

    Raises NoReport if the report has no summary. It is incomplete then, and says nothing about the solution.
    """
    summary = _SUMMARY.findall(report)
    if not summary:
        raise NoReport(f"{tool} printed no summary: it may have been interrupted")
    errors = sum(map(int, summary))
    if errors == 0:
        return ""
    lines = [line.strip() for line in _LINE.findall(report)]
    first = next((index for index, line in enumerate(lines) if _is_finding(line)), None)
    what = "" if first is None else "; ".join(part for part in lines[first : first + 3] if part)[:LONGEST_FINDING]
    return f"{tool}: {errors} error{'s' if errors > 1 else ''}, first: {what}"


def _is_finding(line: str) -> bool:
    return bool(line) and not line.startswith(_FRAME)
