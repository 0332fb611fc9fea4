"""Evaluates every reference of a KernelBench folder against itself.

    python benchmarks/kernelbench.py FOLDER [-- further arguments of run_eval.py]

All references of levels 1 to 3 must load and pass, except those in EXCEPTIONS, each with its cause. The folder is not
part of this repository. On the CPU they are evaluated at derived shapes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "harness"))

from inlinebench.foreign import first_line  # noqa: E402
from inlinebench.results.jsonl import read  # noqa: E402
from inlinebench.results.result import Result, Verdict  # noqa: E402

LEVELS = (1, 2, 3)
EXCEPTIONS: dict[str, str] = {}
"""Problems that may fail, and why. A problem that is skipped for its size needs no entry."""


def main(arguments: Sequence[str]) -> int:
    """Evaluates all references and prints failures. Returns 1 if one of them is not an exception."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("folder", type=Path, help="folder with level1, level2 and level3")
    add("--levels", type=int, nargs="+", default=LEVELS)
    add("--out", type=Path, help="file for the results; an existing file is resumed")
    end = arguments.index("--") if "--" in arguments else len(arguments)
    given, more = parser.parse_args(arguments[:end]), arguments[end + 1 :]
    with tempfile.TemporaryDirectory(prefix="inlinebench-kernelbench-") as scratch:
        out = given.out or Path(scratch) / "results.jsonl"
        levels = [word for level in given.levels for word in ("--level", str(level))]
        subprocess.run([sys.executable, str(ROOT / "run_eval.py"), "*/@reference", "--problems", str(given.folder),
                        *levels, "--allow-library", "--out", str(out), "--resume", *more], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, check=False)
        return report(list(read(out)))


def report(results: Sequence[Result]) -> int:
    """Prints counts by level, and each result that is not `passed`. Returns 1 if one of them is unexpected."""
    for level in sorted({result.level or 0 for result in results}):
        counts = Counter(str(result.verdict) for result in results if (result.level or 0) == level)
        print(f"level {level}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    unexpected = 0
    for result in results:
        if result.verdict is Verdict.PASSED:
            continue
        expected = result.verdict is Verdict.SKIPPED or result.problem in EXCEPTIONS
        unexpected += not expected
        cause = EXCEPTIONS.get(result.problem, "" if expected else "UNEXPECTED")
        print(f"{result.problem}: {result.verdict}: {first_line(result.reason)} {f'({cause})' if cause else ''}")
    return int(unexpected > 0 or not results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
