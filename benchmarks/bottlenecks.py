"""Counts planted bottlenecks that feedback names on a GPU, and good kernels for which it names one.

    python benchmarks/bottlenecks.py                   print a Markdown table and the evidence; status 1 below the bar
    python benchmarks/bottlenecks.py --part planted    only tests/bottlenecks, or `good`: only bundled solutions
    python benchmarks/bottlenecks.py --no-counters     only what needs no Nsight Compute

The bar: 11 of 12 planted bottlenecks named, and none in 10 good kernels. All solutions are evaluated first. Planted
ones without their name, and good ones that are not near the roofline, are evaluated again with counters (`--profile`).
Below the table stands all that the rules look at, to choose their thresholds (`RULES` in report/bottlenecks.py).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

from inlinebench.foreign import one_line, quotation  # noqa: E402
from inlinebench.report.bottlenecks import NEAR_ROOFLINE, bottlenecks  # noqa: E402
from inlinebench.results.result import Result, Verdict  # noqa: E402
from tests.planted import Planted, evaluate_all, read_all  # noqa: E402

PLANTED, GOOD = "planted", "good"
LEAST_NAMED, PLANTS = 11, 12
GOOD_ONES = ("transpose", "row_sum", "gelu", "layer_norm", "cumsum", "matmul_transposed_b", "bmm", "causal_attention",
             "conv_bias_relu_pool", "matmul_lower_triangular")
"""Six that are near the roofline, and the four fast solutions that are farthest from it, all with the problems of
planted ones where possible, so that fewer workloads are set up."""
CALLS = ("--min-calls", "20", "--max-calls", "20", "--device", "cuda")
LONGEST_NAME, KERNELS = 60, 3


def named(row: Result) -> list[str]:
    """Returns the names of a result's bottlenecks."""
    return [each.name for each in bottlenecks(row)]


def is_fine(case: Planted, row: Result) -> bool:
    """Whether the planted bottleneck is named, or a good solution has none."""
    if row.verdict is not Verdict.PASSED or row.timing is None or row.kernels is None:
        return False
    return case.bottleneck in named(row) if case.bottleneck else not named(row)


def reached(row: Result) -> float | None:
    """Returns the share of the roofline that a solution reaches."""
    timing = row.timing
    return None if timing is None or timing.roofline is None else timing.roofline.ms / timing.solution_ms.median


def wants_counters(case: Planted, row: Result) -> bool:
    """Whether counters could change what is named."""
    if row.verdict is not Verdict.PASSED:
        return False
    return not is_fine(case, row) if case.bottleneck else (reached(row) or 0.0) < NEAR_ROOFLINE


def evaluate(cases: Sequence[Planted], folder: Path, arguments: Sequence[str], *, counters: bool) -> dict[str, Result]:
    """Returns the results by name."""
    results = evaluate_all(cases, folder / "timed", *CALLS, *arguments)
    again = [case for case in cases if wants_counters(case, results[case.name])]
    if not counters or not again:
        return results
    print(f"with counters: {', '.join(case.name for case in again)}", file=sys.stderr)
    return {**results, **evaluate_all(again, folder / "counted", *CALLS, *arguments, "--profile", str(folder / "ncu"))}


def report(cases: Sequence[Planted], results: dict[str, Result]) -> None:
    """Prints the table, and the evidence below it."""
    print("| solution | expected | named | % of roofline | counters |\n| --- | --- | --- | --- | --- |")
    for case in cases:
        row = results[case.name]
        share, counted = reached(row), any(each.counters for each in (row.kernels.top if row.kernels else ()))
        mark = "" if is_fine(case, row) else " **(not as expected)**"
        what = ", ".join(named(row)) or "none" if row.verdict is Verdict.PASSED else row.verdict
        print(f"| {case.name} | {case.bottleneck or 'none'} | {what}{mark} | "
              f"{'unknown' if share is None else f'{share:.1%}'} | {'yes' if counted else 'no'} |")
    for case in cases:
        print(f"\n{case.name}")
        evidence(results[case.name])


def evidence(row: Result) -> None:
    """Prints what is named in a result, and what the rules look at."""
    if row.verdict is not Verdict.PASSED:
        print(quotation(f"{row.reason}\n{(row.log or '')[-1500:]}"))
        return
    for each in bottlenecks(row):
        print(f"  {each.name}: {each.evidence}")
    if row.timing is not None:
        print(f"  {row.timing.solution_ms.median:.4g} ms, {row.timing.roofline}")
    if row.kernels is not None:
        print(f"  activities {row.kernels.activities}, idle {row.kernels.idle_ms} ms")
        for share in row.kernels.top[:KERNELS]:
            name = one_line(share.name, LONGEST_NAME)
            print(f"  {name}: {share.share:.1%}, {share.ms:.4g} ms, {share.launches} times")
            print(*(f"    {asdict(facts)}" for facts in (share.launch, share.counters) if facts is not None), sep="\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=(PLANTED, GOOD))
    parser.add_argument("--no-counters", dest="counters", action="store_false")
    parser.add_argument("--cache", type=Path, help="folder for builds (default: the harness's)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder for results and profiles")
    given = parser.parse_args()
    planted = [] if given.part == GOOD else read_all("bottlenecks/*.py")
    good = [] if given.part == PLANTED else [
        Planted(ROOT / "solutions" / name / "fast.py", name, shape="full") for name in GOOD_ONES]
    arguments = [] if given.cache is None else ["--cache", str(given.cache)]
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        results = evaluate([*planted, *good], given.keep or Path(folder), arguments, counters=given.counters)
        report([*planted, *good], results)
    found = sum(is_fine(case, results[case.name]) for case in planted)
    accused = sum(not is_fine(case, results[case.name]) for case in good)
    print(f"\n{found} of {len(planted)} planted bottlenecks named; {accused} of {len(good)} good solutions have one or "
          f"failed; {time.monotonic() - begin:.0f} s")
    return int(found < len(planted) - (PLANTS - LEAST_NAMED) or accused > 0)


if __name__ == "__main__":
    sys.exit(main())
