"""Judges honest and cheating arithmetic by the tolerance rule: which pass, and how far they are from the limit.

    python benchmarks/numerics.py [--device cuda:0] [--shape full] [--seeds 20] [NAME ...]
    python benchmarks/numerics.py --part cheats --as-drawn         only cheats, only on inputs as drawn
    python benchmarks/numerics.py --jobs 4 --seconds 500           four at a time, and about 500 s in all

Prints a Markdown table with a row for each implementation in tests/numerics/pairs. Each is called on all kinds of
inputs with each seed. Status 1 if an honest implementation failed, or if a cheat passed every call.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "harness"), str(ROOT)]

from tests.numerics.judging import PAIRS, Judged, Pair  # noqa: E402

PARTS = {"all": (True, False), "honest": (True,), "cheats": (False,)}
HEAD = ("| problem | implementation | honest | calls | failed | least error / limit | median | largest | sigmas |\n"
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")


@dataclass(frozen=True)
class Plan:
    """What is called."""

    shape: str
    """The name of the shape."""
    device: str
    """The device."""
    seeds: int
    """The most seeds."""
    honest: tuple[bool, ...]
    """Whether honest implementations, cheats or both are called."""
    as_drawn: bool
    """Whether only inputs as drawn are used."""
    seconds: float
    """The time after which no further seed begins."""


def judge(path: Path, plan: Plan) -> list[Judged] | str:
    """Returns all calls of a pair file, or what went wrong with it."""
    try:
        return list(_calls(path, plan))
    except Exception:  # noqa: BLE001 - the other files are judged in any case
        return traceback.format_exc()
    finally:
        torch.cuda.empty_cache()


def _calls(path: Path, plan: Plan) -> Iterator[Judged]:
    begin = time.monotonic()
    with Pair(path, plan.shape, torch.device(plan.device)) as pair:
        for seed in range(plan.seeds):
            for variant in pair.variants[: 1 if plan.as_drawn else None]:
                yield from pair.call(variant, seed, lambda name: pair.implementations[name] in plan.honest)
            if time.monotonic() - begin > plan.seconds:
                return


def row(problem: str, calls: list[Judged]) -> tuple[str, bool]:
    """Returns the row of an implementation, and whether it is as it should be."""
    failed, shares = sum(bool(call.failure) for call in calls), [call.share for call in calls]
    sigmas = [call.errors.worst for call in calls if call.errors is not None]
    good = failed == 0 if calls[0].honest else failed > 0
    cells = (problem, calls[0].name, "yes" if calls[0].honest else "no", len(calls), failed,
             *(f"{value:.3g}" for value in (min(shares), median(shares), max(shares))),
             f"{max(sigmas):.3g}" if sigmas else "-")
    return f"| {' | '.join(map(str, cells))} |" + ("" if good else " <-"), good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="pair files; all if none is named")
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", help="full on a GPU, else small")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--part", choices=PARTS, default="all")
    parser.add_argument("--as-drawn", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    paths = [path for path in sorted(PAIRS.glob("*.py")) if not given.names or path.stem in given.names]
    plan = Plan(given.shape or ("full" if given.device.startswith("cuda") else "small"), given.device, given.seeds,
                PARTS[given.part], given.as_drawn, given.seconds * given.jobs / len(paths))
    print(HEAD)
    good, begin = True, time.monotonic()
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool:
        for path, calls in zip(paths, pool.map(partial(judge, plan=plan), paths), strict=True):
            if isinstance(calls, str):
                print(f"{path.stem}: {calls}", file=sys.stderr, flush=True)
                good = False
                continue
            for name in dict.fromkeys(call.name for call in calls):
                line, fine = row(path.stem, [call for call in calls if call.name == name])
                print(line, flush=True)
                good = good and fine
            for call in calls:
                if call.honest and call.failure:
                    print(f"{path.stem}: {call.name} ({call.variant}): {call.failure}", file=sys.stderr, flush=True)
    print(f"\n{time.monotonic() - begin:.0f} s", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
