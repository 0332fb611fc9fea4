"""Evaluates third-party solutions for real_code.py --check, and compares the verdicts with those of their source."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from inlinebench.foreign import first_line
from inlinebench.results import jsonl
from inlinebench.results.result import Result, Verdict

ROOT = Path(__file__).resolve().parent.parent
SHOWN = 400
"""The most characters of a reason in the list. The file has more."""
PASSED, UNKNOWN = "passed", "unknown"
"""The recorded verdict of a solution that should pass, and of one without a record."""


def check(folder: Path, names: Sequence[str], out: Path, more: Sequence[str]) -> list[Result]:
    """Evaluates solutions like `run_eval.py --check`, and returns the results of these that the file has then.

    Args:
        folder: has `problems/` and `solutions/`.
        names: the solutions, as `problem/solution`.
        out: the file of results. Results that it has already are not repeated.
        more: further arguments of `run_eval.py`.
    """
    command = [sys.executable, str(ROOT / "run_eval.py"), *names, "--check", "--problems", str(folder / "problems"),
               "--solutions", str(folder / "solutions"), "--out", str(out), "--resume", *more]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    wanted = set(names)
    return [result for result in jsonl.read(out) if name_of(result) in wanted] if out.exists() else []


def name_of(result: Result) -> str:
    return f"{result.problem}/{result.solution}"


def report(results: Sequence[Result], recorded: Mapping[str, str], left: int) -> str:
    """Returns Markdown: verdicts by recorded verdict, and each solution that should pass and does not."""
    counts = Counter((str(result.verdict), recorded.get(name_of(result), UNKNOWN)) for result in results)
    columns = sorted({column for _, column in counts})
    head = ["### Verdicts", "", f"| verdict | {' | '.join(f'recorded {column}' for column in columns)} |",
            f"| --- |{' ---: |' * len(columns)}"]
    rows = [f"| {verdict} | {' | '.join(str(counts[verdict.value, column]) for column in columns)} |"
            for verdict in Verdict if any(counts[verdict.value, column] for column in columns)]
    blocks = ["\n".join([*head, *rows]), "\n".join(_not_passed(results, recorded)),
              f"{left} solutions are left to do." if left else ""]
    return "\n\n".join(filter(None, blocks))


def _not_passed(results: Sequence[Result], recorded: Mapping[str, str]) -> Iterator[str]:
    found = [result for result in results
             if result.verdict is not Verdict.PASSED and recorded.get(name_of(result)) == PASSED]
    if found:
        yield "### Recorded as passed\n"
    for result in found:
        yield f"- {name_of(result)}: {result.verdict}{_errors(result)}: {first_line(result.reason)[:SHOWN]}"


def _errors(result: Result) -> str:
    """Returns the errors against float64 of the solution and of the reference, where both are known."""
    check = result.check
    if check is None or check.rel_l2_error is None or check.reference_rel_l2_error is None:
        return ""
    return f" (error {check.rel_l2_error:.1e}, the reference's {check.reference_rel_l2_error:.1e})"
