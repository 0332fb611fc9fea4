"""Counts planted bottlenecks that feedback names on a GPU, and good kernels for which it names one.

    python benchmarks/bottlenecks.py [--part planted] [--keep DIR]    evaluate; status 1 below the bar
    python benchmarks/bottlenecks.py --again DIR                      apply the rules to what was kept, without a GPU
    python benchmarks/bottlenecks.py --again DIR --count              count what was kept with --no-counters

The bar: 11 of 12 planted bottlenecks named, and none in 10 good kernels. All solutions are evaluated in one run, whose
builds are made in parallel. Then Nsight Compute profiles those that need its counters, one after the other. A line of
the table is printed as soon as it is known.

DIR gets two files for each solution: its result as JSON, which has all that the rules look at, and the metrics of
Nsight Compute as CSV. `--again` reads the counters from the latter and prints everything, so thresholds (`RULES` in
report/bottlenecks.py) and names of metrics (profiling/counters.py) can be corrected without evaluating again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

from inlinebench.cli.arguments import parse  # noqa: E402
from inlinebench.foreign import one_line, quotation  # noqa: E402
from inlinebench.messages import Evaluate, ProblemAt  # noqa: E402
from inlinebench.options import Options  # noqa: E402
from inlinebench.profiling import ncu  # noqa: E402
from inlinebench.profiling.counters import read as read_counters  # noqa: E402
from inlinebench.profiling.counters import with_counters  # noqa: E402
from inlinebench.report.bottlenecks import bottlenecks  # noqa: E402
from inlinebench.results import jsonl  # noqa: E402
from inlinebench.results.result import Result, Verdict  # noqa: E402
from inlinebench.results.result_json import from_json, to_json  # noqa: E402
from tests.planted import PROBLEMS, Planted, evaluate_all, read_all  # noqa: E402

PLANTED, GOOD = "planted", "good"
LEAST_NAMED, PLANTS = 11, 12
COUNTED = ("spills", "uncoalesced access", "bank conflicts", "atomics on one address", "no tensor cores")
"""Bottlenecks that are named only with counters."""
NEAR = ("transpose", "row_sum", "gelu", "layer_norm", "cumsum", "matmul_transposed_b")
FAR = ("bmm", "causal_attention", "conv_bias_relu_pool", "matmul_lower_triangular")
"""Problems whose fast solutions are near the roofline and farthest from it. Counters can accuse only the latter."""
CALLS = ("--min-calls", "20", "--max-calls", "20", "--device", "cuda")
LONGEST_NAME, LONGEST_TROUBLE, POLL_S = 60, 200, 0.2
PATIENCE_S = 60.0
"""The limit for one solution under Nsight Compute, which takes about a quarter of it."""


@dataclass(frozen=True)
class Evaluated:
    """A solution and its result."""

    case: Planted
    """The solution."""
    row: Result
    """Its result."""
    trouble: str = ""
    """Why Nsight Compute counted nothing, though it should."""

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
    def needs_counters(self) -> bool:
        """Whether counters decide: those of Nsight Compute, which has not profiled it yet."""
        decisive = self.case.bottleneck in COUNTED if self.case.bottleneck else self.case.problem in FAR
        return decisive and self.row.verdict is Verdict.PASSED and not self.has_counters

    @property
    def has_counters(self) -> bool:
        """Whether Nsight Compute counted something."""
        return self.row.kernels is not None and any(each.counters for each in self.row.kernels.top)


def chosen(part: str | None) -> list[Planted]:
    """Returns the solutions of a part, or all of them."""
    planted = read_all("bottlenecks/*.py")
    good = [Planted(ROOT / "solutions" / name / "fast.py", name, shape="full") for name in (*NEAR, *FAR)]
    return {PLANTED: planted, GOOD: good, None: [*planted, *good]}[part]


def evaluate(cases: Sequence[Planted], keep: Path, arguments: Sequence[str]) -> Iterator[Evaluated]:
    """Evaluates solutions in one run and keeps their results in a folder. Yields each as soon as it is there."""
    by_name, seen = {case.name: case for case in cases}, set()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(1) as pool:
        folder = Path(name)
        done = pool.submit(evaluate_all, cases, folder, *CALLS, *arguments)
        while True:
            ended = done.done()
            for row in [row for path in sorted(folder.glob("*.jsonl")) for row in jsonl.read(path)]:
                if row.solution not in seen:
                    seen.add(row.solution)
                    (keep / f"{row.solution}.json").write_text(to_json(row), encoding="utf-8")
                    yield Evaluated(by_name[row.solution], row)
            if ended:
                break
            time.sleep(POLL_S)
        if (error := done.exception()) is not None:
            print(f"the run failed: {error}", file=sys.stderr)


def counted(found: Iterable[Evaluated], keep: Path, arguments: Sequence[str]) -> Iterator[Evaluated]:
    """Yields results, at the end those that need counters: with these, or with the reason why there are none."""
    waiting = []
    for each in found:
        if each.needs_counters:
            waiting.append(each)
        else:
            yield each
    for each in waiting:
        with tempfile.TemporaryDirectory() as folder:
            options = parse(["--profile", folder, *arguments], {})
            yield _count(each, keep, options)


def _count(found: Evaluated, keep: Path, options: Options) -> Evaluated:
    """Profiles a solution, and keeps its result and its metrics."""
    program, case = ncu.program(), found.case
    if program is None:
        return replace(found, trouble=f"{ncu.PROGRAM} is not installed")
    assert options.profile is not None
    problem = next(path for folder in PROBLEMS if (path := folder / f"{case.problem}.py").exists())
    job = Evaluate(case.problem, case.name, ProblemAt(problem, found.row.shape, {}), case.path.resolve(),
                   found.row.shape)
    said, row = ncu.report(program, job, found.row, options, PATIENCE_S)
    for table in options.profile.glob("*.csv"):
        (keep / f"{case.name}.csv").write_text(table.read_text(encoding="utf-8"), encoding="utf-8")
    (keep / f"{case.name}.json").write_text(to_json(row), encoding="utf-8")
    now = Evaluated(case, row)
    return now if now.has_counters else replace(now, trouble=said)


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
    counters = "yes" if found.has_counters else "no"
    if found.trouble:
        counters += f": {one_line(found.trouble, LONGEST_TROUBLE).replace('|', '/')}"
    return f"| {found.case.name} | {found.case.bottleneck or 'none'} | {what}{mark} | {share} | {counters} |"


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


def results(cases: Sequence[Planted], given: argparse.Namespace, keep: Path) -> Iterator[Evaluated]:
    """Yields the results that the command line asks for."""
    arguments = [] if given.cache is None else ["--cache", str(given.cache)]
    found = again(cases, given.again) if given.again else evaluate(cases, keep, arguments)
    counts = given.count if given.again else given.counters
    yield from counted(found, keep, arguments) if counts else found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=(PLANTED, GOOD), help="only tests/bottlenecks, or only bundled solutions")
    parser.add_argument("--no-counters", dest="counters", action="store_false", help="without Nsight Compute")
    parser.add_argument("--cache", type=Path, help="folder for builds (default: the harness's)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder for results and metrics")
    parser.add_argument("--again", type=Path, metavar="DIR", help="folder of an earlier --keep")
    parser.add_argument("--count", action="store_true", help="with --again: keep what Nsight Compute counts")
    given = parser.parse_args()
    begin, cases, rows = time.monotonic(), chosen(given.part), []
    print("| solution | expected | named | % of roofline | counters |\n| --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as unkept:
        keep = given.again or given.keep or Path(unkept)
        keep.mkdir(parents=True, exist_ok=True)
        for found in results(cases, given, keep):
            print(line(found), flush=True)
            rows.append(found)
    for found in rows:
        if given.again or not found.is_fine:
            print(*evidence(found), sep="\n")
    summary, fine = verdict(cases, rows)
    print(f"\n{summary}; {time.monotonic() - begin:.0f} s")
    return int(not fine)


def verdict(cases: Sequence[Planted], rows: Sequence[Evaluated]) -> tuple[str, bool]:
    """Returns how many results are as expected in words, and whether they reach the bar."""
    missed = sum(not found.is_fine for found in rows if found.case.bottleneck)
    accused = sum(not found.is_fine for found in rows if not found.case.bottleneck)
    absent = sorted({case.name for case in cases} - {found.case.name for found in rows})
    said = (f"{len(rows)} solutions: {missed} planted bottlenecks not named; {accused} good solutions have one or "
            f"failed; without a result: {', '.join(absent) or 'none'}")
    return said, missed <= PLANTS - LEAST_NAMED and not accused and not absent


if __name__ == "__main__":
    sys.exit(main())
