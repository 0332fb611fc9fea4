"""Measures the accuracy of reported times. Each part prints a Markdown table and is compared with a bar.

    python benchmarks/timing_accuracy.py                           all parts; status 1 if a bar is missed, 2 if a part
                                                                   could not be measured
    python benchmarks/timing_accuracy.py --part cupti --part spin  only these parts
    python benchmarks/timing_accuracy.py --out FILE.json           also write raw figures as they are measured; figures
                                                                   of other parts from the same machine are kept
    python benchmarks/timing_accuracy.py --show FILE.json          print the tables of such a file, without a GPU
    ... --plot FILE.png                                            with either: plot the figures; needs matplotlib

| part   | what the times are compared with |
| ------ | -------------------------------- |
| cupti  | CUPTI's time stamps in the same calls, for work of 1 µs to 50 ms |
| others | for each row of `cupti`: the timer without CUPTI, events around the call, Triton's `do_bench` (no bar) |
| spin   | a kernel that spins for a known number of clock cycles |
| flush  | a copy kernel after a flush that leaves no dirty lines in L2 |
| repeat | the same solution in other processes |
| aa     | a reference evaluated against itself, whose speedup is 1 |
| differ | a solution that is 2 % slower than its reference |

It needs an otherwise idle GPU, and nvcc.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "harness"))

import torch  # noqa: E402
from accuracy_bars import FEWEST, KINDS, Row, head, line, read_row  # noqa: E402
from accuracy_gpu import Bench, Failed, flush, spin, trace  # noqa: E402
from accuracy_plot import plot  # noqa: E402
from accuracy_runs import against_itself, differ, repeat  # noqa: E402

from inlinebench.builds.request import NoRuntimeLibraries  # noqa: E402
from inlinebench.compile.toolchain import MissingTool  # noqa: E402
from inlinebench.devices.base import UnusableDevice  # noqa: E402
from inlinebench.devices.registry import of, resolve  # noqa: E402
from inlinebench.errors import JudgeDied, NoDevice, NoSandbox, UsageError  # noqa: E402
from inlinebench.options import Options  # noqa: E402
from inlinebench.problem.problem_file import ProblemError  # noqa: E402
from inlinebench.results.result import Environment  # noqa: E402
from inlinebench.version import __version__  # noqa: E402

OTHERS = "others"
PARTS = ("cupti", OTHERS, "spin", "flush", "repeat", "aa", "differ")
BROKEN = (Failed, JudgeDied, MissingTool, NoDevice, NoSandbox, NoRuntimeLibraries, OSError, ProblemError, RuntimeError,
          UsageError, subprocess.SubprocessError)
"""Exceptions that end a part, but not the following parts. CUDA errors are RuntimeErrors."""


class Record:
    """All figures by part. Written to `path`, if given; figures of another environment there are dropped."""

    def __init__(self, path: Path | None, environment: Mapping[str, Any]) -> None:
        self._path, self._environment = path, dict(environment)
        self.parts: dict[str, list[Row]] = {}
        if path is not None and path.exists():
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["environment"] == self._environment:  # rows of another version may have other columns
                self.parts = read_parts(data["parts"])

    def begin(self, part: str) -> None:
        """Starts a part, and removes its earlier figures."""
        self.parts[part] = []

    def put(self, part: str, row: Row) -> None:
        """Adds a row, in place of a row with the same name, and writes the file atomically."""
        self.parts[part] = [*(each for each in self.parts[part] if each.what != row.what), row]
        if self._path is None:
            return
        parts = {name: [asdict(each) for each in rows] for name, rows in self.parts.items()}
        text = json.dumps({"environment": self._environment, "parts": parts}, indent=1, ensure_ascii=False)
        fresh = self._path.with_name(self._path.name + ".new")
        fresh.write_text(text + "\n", encoding="utf-8")
        os.replace(fresh, self._path)


def read_record(path: Path) -> tuple[dict[str, Any], dict[str, list[Row]]]:
    """Returns the environment and the rows by part from a file that a Record wrote."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return data["environment"], read_parts(data["parts"])


def read_parts(data: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[Row]]:
    """Returns the rows of each part."""
    return {part: [read_row(part, row) for row in rows] for part, rows in data.items()}


class Measuring:
    """Runs parts on one device. `given` are the options; `folder` is for temporary files."""

    def __init__(self, given: argparse.Namespace, record: Record, device: torch.device, folder: Path) -> None:
        self._given, self._record, self._device, self._folder = given, record, device, folder

    @cached_property
    def _bench(self) -> Bench:
        """Created on first use: during `repeat` and `aa` this process must not use the GPU."""
        return Bench(self._device, self._given.cache, self._folder)

    def rows(self, part: str) -> Iterator[Row]:
        """Yields the rows of a part as they are finished."""
        given = self._given
        common = ["--device", str(self._device), "--cache", str(given.cache)]
        arguments = [*common, *shlex.split(given.arguments)]

        def note(row: Row) -> None:
            self._record.put(part, row)

        if part == "cupti":
            return trace(self._bench, given.calls, OTHERS in given.parts)
        if part == "spin":
            return spin(self._bench, given.calls)
        if part == "flush":
            return flush(self._bench, given.calls)
        if part == "repeat":
            return repeat(common, given.processes, note)
        if part == "aa":
            return against_itself(shlex.split(given.aa), arguments, given.evaluations, note)
        return differ(self._bench, self._folder, arguments, given.evaluations, note)

    def run(self, part: str) -> bool:
        """Measures and prints a part. Returns whether all its bars are met. Raises the exceptions in BROKEN."""
        begin, met = time.monotonic(), True
        self._record.begin(part)
        say(f"\n{head(part)}")
        for row in self.rows(part):
            self._record.put(part, row)
            say(line(row))
            met = met and row.met
        say(f"\n{time.monotonic() - begin:.0f} s")
        return met


def say(text: str) -> None:
    print(text, flush=True)


def complain(message: str) -> int:
    """Prints an error. Returns the exit status."""
    print(f"timing_accuracy.py: {message}", file=sys.stderr)
    return 2


def measure(given: argparse.Namespace) -> int:
    """Measures the chosen parts one by one. Returns the exit status."""
    try:
        device = resolve(given.device)
    except UnusableDevice as error:
        return complain(str(error))
    if device.type != "cuda":
        return complain("--device must be a GPU: times on the CPU are not measured")
    software = Environment(torch=str(torch.__version__), harness=__version__)
    environment = of(device).environment(software)
    record = Record(given.out, {name: fact for name, fact in asdict(environment).items() if fact is not None})
    say(f"{environment.gpu}, driver {environment.driver}, CUDA {environment.cuda}, torch {environment.torch}")
    chosen = [part for part in PARTS if part in given.parts and part != OTHERS]
    if OTHERS in given.parts and "cupti" not in chosen:
        chosen.insert(0, "cupti")
    status = 0
    with tempfile.TemporaryDirectory(prefix="inlinebench-") as folder:
        measuring = Measuring(given, record, device, Path(folder))
        for part in chosen:
            try:
                status = max(status, int(not measuring.run(part)))
            except BROKEN:
                traceback.print_exc()
                status = 2
    if given.plot is not None:
        plot(record.parts, given.plot)
    return status


def show(given: argparse.Namespace) -> int:
    """Prints the tables of a file of figures. Returns their exit status."""
    try:
        environment, parts = read_record(given.show)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return complain(f"--show {given.show}: not a file of figures ({error})")
    say(", ".join(f"{name} {fact}" for name, fact in environment.items()))
    for part in KINDS:
        if part in parts:
            say("\n".join(["", head(part), *map(line, parts[part])]))
    if given.plot is not None:
        plot(parts, given.plot)
    return int(not all(row.met for rows in parts.values() for row in rows))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--part", dest="parts", action="append", choices=PARTS, help="repeatable (default: all)")
    add("--device", default="cuda", metavar="NAME", help="cuda or cuda:N")
    add("--calls", type=int, default=15, metavar="N", help="timed calls for a row of device times (default 15)")
    add("--processes", type=int, default=10, metavar="N", help="processes for each row of `repeat` (default 10)")
    add("--evaluations", type=int, default=100, metavar="N", help="evaluations of `aa` and of `differ` (default 100)")
    add("--arguments", default="--trust", metavar="TEXT", help="more arguments of run_eval.py for `aa` and `differ` "
        "(default: %(default)s)")
    add("--aa", default="matmul_diag/@reference --set N=2048 --set M=2048", metavar="TEXT", help="the reference that "
        "`aa` evaluates, as arguments of run_eval.py (default: %(default)s)")
    add("--cache", type=Path, default=Options().cache, metavar="DIR", help="folder of built libraries")
    add("--out", type=Path, metavar="FILE", help="write raw figures to FILE as JSON")
    add("--plot", type=Path, metavar="FILE", help="plot the figures to FILE")
    add("--show", type=Path, metavar="FILE", help="print the tables of FILE instead of measuring")
    given = parser.parse_args()
    given.parts = given.parts or list(PARTS)
    if given.calls < FEWEST:
        parser.error(f"--calls {given.calls}: must be at least {FEWEST}")
    if given.plot is not None and find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib (pip install matplotlib)")  # before the measurements, not after
    return given


def main() -> int:
    given = read_options()
    return measure(given) if given.show is None else show(given)


if __name__ == "__main__":
    sys.exit(main())
