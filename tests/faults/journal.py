"""The life of a file of results: appends to it as `--out` does, and reads it as `--resume` does.

    python -m tests.faults.journal FILE RESULTS
"""

from __future__ import annotations

import sys
from pathlib import Path

from inlinebench.cli.exits import ended, show
from inlinebench.results.jsonl import JsonLines, read
from inlinebench.scheduler.resume import EarlierResults

from ..report.samples import result


def main() -> int:
    """Appends results that the file lacks, and says how many it had and has."""
    path, wanted = Path(sys.argv[1]), int(sys.argv[2])
    earlier = EarlierResults.read(path)
    with JsonLines(path) as journal:
        for each in (result(f"p{number}/s") for number in range(wanted)):
            if each not in earlier:
                journal.write(each)
                show(f"written {each.problem}")
    show(f"complete: {sorted(each.problem for each in read(path))}")
    return 0


sys.exit(ended("journal", main))
