"""Counts cheats that pass and honest solutions that fail, over all files in tests/cheats and tests/honest.

    python benchmarks/cheats.py [--device cuda]        print a Markdown table; status 1 if a cheat passes or an honest
                                                       solution fails
    python benchmarks/cheats.py --only-gpu             only files that need a GPU
    python benchmarks/cheats.py --part honest          only one of the two folders

A cheat is caught if it gets the verdict and the reason that its file names. On a GPU, cheats about times are evaluated
at full size with times, other cheats with --check; honest solutions are always timed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

from inlinebench.foreign import message, one_line, quotation  # noqa: E402
from inlinebench.results.result import Result  # noqa: E402
from tests.planted import Planted, evaluate_all, read_all  # noqa: E402

CHEATS, HONEST = "cheats", "honest"
PATTERNS = {CHEATS: "cheats/*/*.py", HONEST: "honest/*.py"}
LIMITS = ("--host-memory", "6")
LONGEST_REASON = 90


def evaluate(part: str, cases: Sequence[Planted], folder: Path, arguments: Sequence[str]) -> dict[str, Result]:
    """Returns the results by name. Cheats that are not about times are evaluated with --check."""
    if part == HONEST:
        return evaluate_all(cases, folder / HONEST, *arguments)
    timed = [case for case in cases if case.shape == "full"]
    checked = [case for case in cases if case.shape != "full"]
    results = evaluate_all(timed, folder / "timed", *LIMITS, *arguments)
    return {**results, **evaluate_all(checked, folder / "checked", *LIMITS, "--check", *arguments)}


def choose(part: str, cases: Sequence[Planted], given: argparse.Namespace) -> list[Planted]:
    """Returns the cases that the options select."""
    if given.timed is not None:
        cases = [case for case in cases if (part == HONEST or case.shape == "full") == (given.timed == "yes")]
    if given.at_most is None:
        return list(cases)
    taken: Counter[Path] = Counter()
    chosen = []
    for case in cases:
        taken[case.path.parent] += not case.needs_gpu
        if case.needs_gpu or taken[case.path.parent] <= given.at_most:
            chosen.append(case)
    return chosen


def report(part: str, cases: Sequence[Planted], results: dict[str, Result], seconds: float) -> bool:
    """Prints the table. Returns whether all results were as expected."""
    wrong = [case for case in cases if not case.is_caught(results[case.name])]
    what = "passed, or failed for another reason" if part == CHEATS else "failed"
    families = len({case.path.parent for case in cases})
    print(f"\n### {part}: {len(cases)} in {families} folders, {len(wrong)} {what}, {seconds:.0f} s\n")
    print("| file | verdict | reason |\n| --- | --- | --- |")
    for case in cases:
        result = results[case.name]
        mark = "" if case.is_caught(result) else f" **(expected {case.expected}: {case.caught_by})**"
        reason = one_line(result.reason.replace("\n", " "), None).replace("|", "\\|")[:LONGEST_REASON]
        print(f"| {case.path.parent.name}/{case.path.stem} | {result.verdict}{mark} | {reason} |")
    for case in wrong:
        reason, log = results[case.name].reason, results[case.name].log or ""
        print(f"\n{message(f'{case.name}: {reason}')}\n{quotation(log[-1500:])}", file=sys.stderr)
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--only-gpu", action="store_true")
    parser.add_argument("--part", choices=(CHEATS, HONEST))
    parser.add_argument("--calls", default="20")
    parser.add_argument("--names", nargs="+", default=[""], help="only files whose path contains one of these")
    parser.add_argument("--timed", choices=("yes", "no"), help="only files that are evaluated with times, or without")
    parser.add_argument("--at-most", type=int, metavar="N", help="at most N files of each folder that need no GPU")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder for the results")
    given = parser.parse_args()
    arguments = ["--device", given.device, "--min-calls", given.calls, *(["--check"] if given.device == "cpu" else [])]
    fine = True
    for part in [given.part] if given.part else list(PATTERNS):
        cases = [case for case in read_all(PATTERNS[part]) if any(name in str(case.path) for name in given.names)
                 and (case.needs_gpu if given.only_gpu else given.device == "cuda" or not case.needs_gpu)]
        cases = choose(part, cases, given)
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            results = evaluate(part, cases, given.keep or Path(folder), arguments)
            fine = report(part, cases, results, time.monotonic() - begin) and fine
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
