"""Judges honest and cheating arithmetic by the tolerance rule: which pass, and how far they are from the limit.

    python benchmarks/numerics.py [--device cuda] [--shape full] [--seeds 20] [NAME ...]

Prints a Markdown table with a row for each implementation in tests/numerics/pairs. Each is called on all kinds of
inputs with each seed. Status 1 if an honest implementation failed, or if a cheat passed every call.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

from tests.numerics.judging import PAIRS, Judged, Pair  # noqa: E402

HEAD = ("| problem | implementation | honest | calls | failed | median of worst / limit | largest | worst sigma |\n"
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")


def judge(path: Path, shape: str, device: torch.device, seeds: int) -> list[Judged]:
    """Returns all calls of a pair file."""
    with Pair(path, shape, device) as pair:
        return [judged for variant in pair.variants for seed in range(seeds) for judged in pair.call(variant, seed)]


def row(problem: str, calls: list[Judged]) -> tuple[str, bool]:
    """Returns the row of an implementation, and whether it is as it should be."""
    failed, shares = sum(bool(call.failure) for call in calls), [call.share for call in calls]
    sigmas = [call.errors.worst for call in calls if call.errors is not None]
    good = failed == 0 if calls[0].honest else failed > 0
    worst = f"{max(sigmas):.3g}" if sigmas else "-"
    return (f"| {problem} | {calls[0].name} | {'yes' if calls[0].honest else 'no'} | {len(calls)} | {failed} | "
            f"{median(shares):.3g} | {max(shares):.3g} | {worst} |{'' if good else ' <-'}"), good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="pair files; all if none is named")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", help="full on a GPU, else small")
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    shape = given.shape or ("full" if given.device == "cuda" else "small")
    print(HEAD)
    good, begin = True, time.monotonic()
    for path in sorted(PAIRS.glob("*.py")):
        if given.names and path.stem not in given.names:
            continue
        calls = judge(path, shape, torch.device(given.device), given.seeds)
        for name in dict.fromkeys(call.name for call in calls):
            line, fine = row(path.stem, [call for call in calls if call.name == name])
            print(line, flush=True)
            good = good and fine
    print(f"\n{time.monotonic() - begin:.0f} s", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
