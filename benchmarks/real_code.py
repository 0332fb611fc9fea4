"""Builds third-party solutions with the harness, and compares the builds with stock `load_inline`.

    python benchmarks/real_code.py FOLDER --arch 90              all solutions, and 60 of them also by stock torch
    python benchmarks/real_code.py FOLDER --arch 90 --stock 0    by the harness only
    python benchmarks/real_code.py FOLDER --out FILE.jsonl --time-limit 480
                                                                 keep finished builds, start none after 480 s; run the
                                                                 same command again to continue and print the tables
    python benchmarks/real_code.py FOLDER --check --out FILE.jsonl -- --device cpu --min-calls 5
                                                                 evaluate instead, and compare the verdicts with those
                                                                 of the solutions' source; further arguments are
                                                                 run_eval.py's

The folder has `problems/<problem>.py`, `solutions/<problem>/<name>.py`, and optionally `verdicts.tsv`: the verdicts of
the solutions' source, with the columns problem, solution and verdict and a header line. A verdict is `passed`, `failed`
(built, but raised, crashed or gave wrong values), `build_failed` or `unknown`.

1. Some solutions are built by torch's own `load_inline` and `load`, each in its own process with an empty
   TORCH_EXTENSIONS_DIR. **These processes run the solutions' code without a sandbox.**
2. The harness builds the same solutions, like `run_eval.py --build-only`, with an empty cache and the same number of
   parallel builds.
3. The harness builds the other solutions.

Only the time inside `load_inline` and `load` counts, as measured by the solution. With --arch no GPU is needed.
Solutions see no GPU, and what they build when they are called is not built.

| what                                            | bar                        |
| ----------------------------------------------- | -------------------------- |
| solutions whose builds hang in the harness      | 0                          |
| solutions that only stock torch builds          | 0                          |
| solutions that take no longer than with stock   | 95 %                       |
| the largest ratio of harness to stock           | 1.2; 2.0 with a second try |

A second try uses torch's full headers, if the harness's slim ones lack something. Exit status: 1 if a bar is missed,
else 2 if builds are left to do, else 0.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "harness"))

from real_code_builds import Task, by_harness, by_stock, verdicts  # noqa: E402
from real_code_check import check  # noqa: E402
from real_code_check import report as check_report  # noqa: E402
from real_code_rows import Maker, Record, bars, report  # noqa: E402

from inlinebench import catalog  # noqa: E402
from inlinebench.compile import toolchain  # noqa: E402
from inlinebench.compile.service import default_jobs  # noqa: E402
from inlinebench.devices.cuda import driver  # noqa: E402
from inlinebench.errors import NoDevice, NoSandbox, UsageError  # noqa: E402

STOCK = 60
BUILD_TIMEOUT_S = 300.0


def main(arguments: Sequence[str] | None = None) -> int:
    given = read_options(arguments)
    if given.check:
        return check_all(given)
    begin = time.monotonic()
    try:
        task = Task(given.folder.resolve(), target(given), given.jobs or default_jobs(), given.timeout,
                    begin + given.time_limit)
        names = [str(each) for each in catalog.read(task.problems, task.solutions).solutions]
        beside = chosen(names, given, task.architectures)
        with tempfile.TemporaryDirectory(prefix="inlinebench-") as folder:
            record = Record(given.out, setup(task))
            build_all(task, names, beside, record, Path(folder))
    except (NoDevice, NoSandbox, UsageError, toolchain.MissingTool, OSError) as error:
        print(f"real_code.py: {error}", file=sys.stderr)
        return 2
    left = len(record.missing(Maker.STOCK, beside)) + len(record.missing(Maker.HARNESS, names))
    ours, pairs = record.of(Maker.HARNESS, names), record.pairs(beside)
    print(f"{setup(task)}; {len(names)} solutions, {len(beside)} of them beside stock\n")
    print(report(ours, pairs, verdicts(task.folder / "verdicts.tsv"), left))
    print(f"\n{time.monotonic() - begin:.0f} s")
    if any(bar.met is False for bar in bars(ours, pairs)):
        return 1
    return 2 if left else 0


def check_all(given: argparse.Namespace) -> int:
    """Evaluates all solutions, or those with a recorded verdict, and prints the tables. Returns 2 if some are left."""
    recorded = verdicts(given.folder / "verdicts.tsv")
    try:
        names = [str(each) for each in catalog.read(given.folder / "problems", given.folder / "solutions").solutions]
        names = [name for name in names if given.recorded in (None, recorded.get(name))]
        with tempfile.TemporaryDirectory(prefix="inlinebench-") as folder:
            results = check(given.folder, names, given.out or Path(folder) / "results.jsonl", given.more)
    except (UsageError, OSError) as error:
        print(f"real_code.py: {error}", file=sys.stderr)
        return 2
    left = len(names) - len(results)
    print(check_report(results, recorded, left))
    return 2 if left else 0


def build_all(task: Task, names: Sequence[str], beside: Sequence[str], record: Record, folder: Path) -> None:
    """Builds what the record lacks: by stock, the same by the harness, then the rest by the harness.

    All builds of the harness share a cache.
    """
    rest = [name for name in names if name not in set(beside)]
    for build in chain(
        by_stock(task, record.missing(Maker.STOCK, beside), folder / "stock"),
        by_harness(task, record.missing(Maker.HARNESS, beside), folder / "cache"),
        by_harness(task, record.missing(Maker.HARNESS, rest), folder / "cache"),
    ):
        record.put(build)
        print(f"{build.maker.value}: {build.solution}: {build.end.value}, {build.seconds:.1f} s", file=sys.stderr,
              flush=True)


def target(given: argparse.Namespace) -> tuple[str, ...]:
    """Returns the architectures to build for: --arch, else that of the installed GPU; none means the CPU."""
    if given.arch:
        return tuple(given.arch.split(","))
    try:
        return (driver.ask(0),)
    except driver.NoGpu as error:
        print(f"real_code.py: {error}; building for the CPU", file=sys.stderr)
        return ()


def chosen(names: Sequence[str], given: argparse.Namespace, architectures: Sequence[str]) -> list[str]:
    """Returns the solutions to compare with stock, spread evenly over all or over the list. Raises UsageError."""
    if given.stock_list is not None:
        names = listed(given.stock_list, names)
    wanted = given.stock if given.stock is not None else len(names) if given.stock_list else STOCK
    if wanted and (cause := not_comparable(architectures)):
        if given.stock or given.stock_list:
            raise UsageError(f"{cause}; leave out --stock and --stock-list")
        print(f"real_code.py: {cause}; continuing with the harness only", file=sys.stderr)
        return []
    wanted = min(wanted, len(names))
    return [names[number * len(names) // wanted] for number in range(wanted)]


def listed(path: Path, names: Sequence[str]) -> list[str]:
    """Returns the names of solutions in a file, one on each line. Raises UsageError for unknown names."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    if unknown := set(found) - set(names):
        raise UsageError(f"{path}: unknown solution {min(unknown)}")
    return found


def not_comparable(architectures: Sequence[str]) -> str:
    """Returns why stock torch cannot build here what the harness builds; empty if it can."""
    if not architectures:
        return "stock torch cannot build CUDA sources for the CPU, so there is nothing to compare with"
    if toolchain.torch().cuda is None:
        return f"torch {toolchain.torch().version} is built without CUDA, so it cannot build CUDA sources"
    return ""


def setup(task: Task) -> str:
    """Describes what the figures depend on, apart from the machine. Figures of other setups are not comparable."""
    built_for = ", ".join(f"sm_{each}" for each in task.architectures) or "the CPU"
    return f"torch {toolchain.torch().version}, {built_for}, {task.jobs} side by side, {task.timeout:g} s each"


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("folder", type=Path, help="folder with problems/ and solutions/")
    add("--arch", metavar="LIST", help="compute capabilities, such as 90 or 80,90a (default: that of the installed "
        "GPU, or the CPU)")
    add("--stock", type=int, metavar="K", help="also build K solutions by stock torch, evenly spread (default "
        f"{STOCK})")
    add("--stock-list", type=Path, metavar="FILE", help="also build these by stock torch; one name on each line")
    add("--jobs", type=int, metavar="N", help="parallel builds (default: as the harness chooses)")
    add("--timeout", type=float, default=BUILD_TIMEOUT_S, metavar="S", help="time limit of a build, which then counts "
        f"as hung (default {BUILD_TIMEOUT_S:g})")
    add("--time-limit", type=float, default=float("inf"), metavar="S", help="start no build after S seconds; "
        "running builds are finished")
    add("--out", type=Path, metavar="FILE", help="append each build to FILE as a line of JSON; skip builds that it has "
        "from the same setup")
    add("--check", action="store_true", help="evaluate the solutions instead; arguments after -- are run_eval.py's")
    add("--recorded", metavar="VERDICT", help="with --check: only solutions with this verdict in verdicts.tsv")
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if "--" in words else len(words)
    return parser.parse_args(words[:end], argparse.Namespace(more=words[end + 1:]))


if __name__ == "__main__":
    sys.exit(main())
