"""Counts planted bottlenecks that feedback names on a GPU, and good kernels for which it names one.

    python benchmarks/bottlenecks.py [--part planted] [--keep DIR]    evaluate; status 1 below the bar
    python benchmarks/bottlenecks.py --again DIR                      apply the rules to what was kept, without a GPU

The bar: 11 of 12 planted bottlenecks named, and none in 10 good kernels. A line of the table is printed as soon as its
solution is evaluated. What needs Nsight Compute is evaluated in a run of its own, with `--profile`.

DIR gets two files for each solution: its result as JSON, which has all that the rules look at, and the metrics of
Nsight Compute as CSV. `--again` reads the counters from the latter and prints everything, so thresholds (`RULES` in
report/bottlenecks.py) and names of metrics (profiling/counters.py) can be corrected without evaluating again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

from inlinebench.foreign import one_line, quotation  # noqa: E402
from inlinebench.profiling.counters import read as read_counters  # noqa: E402
from inlinebench.profiling.counters import with_counters  # noqa: E402
from inlinebench.report.bottlenecks import bottlenecks  # noqa: E402
from inlinebench.results import jsonl  # noqa: E402
from inlinebench.results.result import Result, Verdict  # noqa: E402
from inlinebench.results.result_json import from_json, to_json  # noqa: E402
from tests.planted import SAID, Planted, evaluate_all, read_all  # noqa: E402

PLANTED, GOOD = "planted", "good"
LEAST_NAMED, PLANTS = 11, 12
COUNTED = ("uncoalesced access", "bank conflicts", "atomics on one address", "no tensor cores")
"""Bottlenecks that are named only with counters."""
NEAR = ("transpose", "row_sum", "gelu", "layer_norm", "cumsum", "matmul_transposed_b")
FAR = ("bmm", "causal_attention", "conv_bias_relu_pool", "matmul_lower_triangular")
"""Problems whose fast solutions are near the roofline and farthest from it. Counters can accuse only the latter."""
CALLS = ("--min-calls", "20", "--max-calls", "20", "--device", "cuda")
LONGEST_NAME, POLL_S = 60, 0.2


@dataclass(frozen=True)
class Evaluated:
    """A solution and its result."""

    case: Planted
    """The solution."""
    row: Result
    """Its result."""

    @property
    def named(self) -> list[str]:
        """The names of its bottlenecks."""
        return [each.name for each in bottlenecks(self.row)]

    @property
    def is_fine(self) -> bool:
        """Whether the planted bottleneck is named, or a good solution has none."""
        if self.row.verdict is not Verdict.PASSED or self.row.timing is None or self.row.kernels is None:
            return False
        return self.case.bottleneck in self.named if self.case.bottleneck else not self.named

    @property
    def has_counters(self) -> bool:
        """Whether Nsight Compute counted something."""
        return self.row.kernels is not None and any(each.counters for each in self.row.kernels.top)


def chosen(part: str | None) -> list[Planted]:
    """Returns the solutions of a part, or all of them."""
    planted = read_all("bottlenecks/*.py")
    good = [Planted(ROOT / "solutions" / name / "fast.py", name, shape="full") for name in (*NEAR, *FAR)]
    return {PLANTED: planted, GOOD: good, None: [*planted, *good]}[part]


def evaluate(
    cases: Sequence[Planted], keep: Path, arguments: Sequence[str], *, counters: bool
) -> Iterator[Evaluated]:
    """Evaluates solutions and keeps their results in a folder. Yields each as soon as it is there."""
    counted = [case for case in cases if case.bottleneck in COUNTED or (not case.bottleneck and case.problem in FAR)]
    timed = [case for case in cases if case not in counted]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield from _run(timed, folder / "timed", keep, arguments)
        profile = ("--profile", str(folder / "ncu")) if counters else ()
        for each in _run(counted, folder / "counted", keep, (*arguments, *profile)):
            for table in (folder / "ncu").glob(f"{each.row.problem}-{each.row.solution}-*.csv"):
                (keep / f"{each.case.name}.csv").write_text(table.read_text(encoding="utf-8"), encoding="utf-8")
            yield each


def _run(cases: Sequence[Planted], folder: Path, keep: Path, arguments: Sequence[str]) -> Iterator[Evaluated]:
    """Evaluates solutions in one run. Builds are made in parallel, evaluations one after the other."""
    by_name, seen = {case.name: case for case in cases}, set()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(evaluate_all, cases, folder, *CALLS, *arguments)
        while True:
            ended = done.done()
            for row in [row for path in sorted(folder.glob("*.jsonl")) for row in jsonl.read(path)]:
                if row.solution not in seen:
                    seen.add(row.solution)
                    (keep / f"{row.solution}.json").write_text(to_json(row), encoding="utf-8")
                    yield Evaluated(by_name[row.solution], row)
            if ended:
                done.result()
                break
            time.sleep(POLL_S)
    if cases:
        for text in (folder / SAID).read_text().splitlines():
            if "no report from" in text or "could not be read" in text:  # Nsight Compute failed
                print(text, file=sys.stderr)


def again(cases: Sequence[Planted], keep: Path) -> Iterator[Evaluated]:
    """Yields the results that a folder has, with counters as they are read now."""
    for case in cases:
        kept, table = keep / f"{case.name}.json", keep / f"{case.name}.csv"
        if not kept.exists():
            continue
        row = from_json(kept.read_text(encoding="utf-8"))
        if table.exists() and row.kernels is not None:
            row = replace(row, kernels=with_counters(row.kernels, read_counters(table.read_text(encoding="utf-8"))))
        yield Evaluated(case, row)


def line(found: Evaluated) -> str:
    """Returns the line of the table."""
    timing, row = found.row.timing, found.row
    share = "unknown" if timing is None or timing.roofline is None else (
        f"{timing.roofline.ms / timing.solution_ms.median:.1%}")
    mark = "" if found.is_fine else " **(not as expected)**"
    what = ", ".join(found.named) or "none" if row.verdict is Verdict.PASSED else row.verdict
    return (f"| {found.case.name} | {found.case.bottleneck or 'none'} | {what}{mark} | {share} | "
            f"{'yes' if found.has_counters else 'no'} |")


def evidence(found: Evaluated) -> Iterator[str]:
    """Yields what is named in a result, and what the rules look at."""
    row = found.row
    yield f"\n{found.case.name}"
    if row.verdict is not Verdict.PASSED:
        yield quotation(f"{row.reason}\n{(row.log or '')[-1500:]}")
    yield from (f"  {each.name}: {each.evidence}" for each in bottlenecks(row))
    if row.timing is not None:
        yield f"  {row.timing.solution_ms.median:.4g} ms, {row.timing.roofline}"
    if row.kernels is not None:
        yield f"  activities {row.kernels.activities}, idle {row.kernels.idle_ms} ms"
        for share in row.kernels.top[:3]:
            name = one_line(share.name, LONGEST_NAME)
            yield f"  {name}: {share.share:.1%}, {share.ms:.4g} ms, {share.launches} times"
            yield from (f"    {asdict(facts)}" for facts in (share.launch, share.counters) if facts is not None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=(PLANTED, GOOD), help="only tests/bottlenecks, or only bundled solutions")
    parser.add_argument("--no-counters", dest="counters", action="store_false", help="without Nsight Compute")
    parser.add_argument("--cache", type=Path, help="folder for builds (default: the harness's)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder for results and metrics")
    parser.add_argument("--again", type=Path, metavar="DIR", help="folder of an earlier --keep")
    given = parser.parse_args()
    arguments = [] if given.cache is None else ["--cache", str(given.cache)]
    begin, cases, rows = time.monotonic(), chosen(given.part), []
    print("| solution | expected | named | % of roofline | counters |\n| --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as unkept:
        keep = given.keep or Path(unkept)
        keep.mkdir(parents=True, exist_ok=True)
        for found in again(cases, given.again) if given.again else (
                evaluate(cases, keep, arguments, counters=given.counters)):
            print(line(found), flush=True)
            rows.append(found)
    for found in rows:
        if given.again or not found.is_fine:
            print(*evidence(found), sep="\n")
    missed = sum(not found.is_fine for found in rows if found.case.bottleneck)
    accused = sum(not found.is_fine for found in rows if not found.case.bottleneck)
    print(f"\n{len(rows)} solutions: {missed} planted bottlenecks not named; {accused} good solutions have one or "
          f"failed; {time.monotonic() - begin:.0f} s")
    return int(missed > PLANTS - LEAST_NAMED or accused > 0 or len(rows) < len(cases))


if __name__ == "__main__":
    sys.exit(main())
