"""Measures the speed of the harness itself. Each part prints a Markdown table and is compared with a bar.

    python benchmarks/throughput.py                           all parts; status 1 if a bar is missed, 2 if a part could
                                                              not be measured
    python benchmarks/throughput.py --part warm --part next   only these parts
    python benchmarks/throughput.py --out FILE.json           also write raw figures as they are measured; figures of
                                                              other parts from the same environment are kept
    python benchmarks/throughput.py --show FILE.json          print the tables of such a file, without a GPU

| part        | what                                                                 | bar                          |
| ----------- | -------------------------------------------------------------------- | ---------------------------- |
| builds      | cold builds of 8 bundled solutions, compared with stock load_inline  | 3.5 times as fast; median 4  |
| warm        | one built solution with `--check`, from process start to exit        | 6 s; 1.5 s over import torch |
| next        | each further built solution of a run                                 | 1.5 s checked, 4 s timed     |
| large       | an evaluation of 50 calls with 6 GiB of inputs                       | 20 s                         |
| suite       | 16 solutions, empty cache, compared with a simple harness            | 10 times as fast             |
| devices     | the built suite on two GPUs, compared with one                       | 1.8 times as fast            |
| undisturbed | device times during 8 builds, compared with an idle machine          | medians within 2 %           |

Both figures of a ratio are measured in the same run on the same machine. All parts take about 8 minutes on 16 cores,
and need an otherwise idle machine and GPU. `devices` is skipped with a single GPU. If there are enough cores, one stock
build of `suite` runs during `next` and `large`; nothing else overlaps unless a table says so. Everything is built in a
temporary folder, and no existing cache is used. `--device cpu` tests the parts on the CPU; its figures are meaningless.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "harness"))

from accuracy_bars import line  # noqa: E402
from throughput_parts import AT_SMALL, PLENTY_OF_CORES, Parts, Skipped  # noqa: E402
from throughput_processes import Failed, Machine  # noqa: E402
from throughput_rows import PARTS, Record, head, read_record, status_of  # noqa: E402

from inlinebench.compile.toolchain import MissingTool  # noqa: E402
from inlinebench.errors import JudgeDied, NoDevice, NoSandbox, UsageError  # noqa: E402

BESIDE = ("next", "large")
"""Parts during which one stock build runs, if `suite` follows."""
BROKEN = (Failed, JudgeDied, MissingTool, NoDevice, NoSandbox, OSError, RuntimeError, UsageError, ValueError,
          subprocess.SubprocessError)
"""Exceptions that end a part, but not the following parts. Invalid build requests and invalid JSON are ValueErrors."""


def measure(given: argparse.Namespace) -> int:
    """Measures the chosen parts one by one. Returns the exit status."""
    begin, status = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="inlinebench-") as folder:
        try:
            machine = Machine.look(given.device)
            record = Record(given.out, machine.environment)
            say(", ".join(f"{name} {fact}" for name, fact in machine.environment.items()))
            parts = Parts(given, machine, Path(folder))
            say(f"\nprepared in {parts.prepare():.0f} s")
        except BROKEN as error:
            return complain(str(error))
        try:
            for part in (each for each in PARTS if each in given.parts):
                if part in BESIDE and "suite" in given.parts:
                    parts.start_beside()
                status = max(status, run(part, parts, record))
        finally:
            parts.close()
    say(f"\nall of it: {time.monotonic() - begin:.0f} s")
    return status


def run(part: str, parts: Parts, record: Record) -> int:
    """Measures and prints a part. Returns its exit status."""
    begin = time.monotonic()
    record.begin(part)
    say(f"\n{head(part)}")
    try:
        for row in parts.rows(part, lambda row: record.put(part, row)):
            record.put(part, row)
            say(line(row))
    except Skipped as reason:
        record.drop(part)
        say(f"\nskipped: {reason}")
        return 0
    except BROKEN:
        traceback.print_exc()
        say(f"\nnot measured: {time.monotonic() - begin:.0f} s")
        return status_of(record.parts[part], finished=False)
    record.end(part, time.monotonic() - begin)
    say(f"\n{record.took_s[part]:.0f} s")
    return status_of(record.parts[part], finished=True)


def show(path: Path) -> int:
    """Prints the tables of a file of figures. Returns their exit status."""
    try:
        environment, parts, took_s = read_record(path)
    except (OSError, ValueError) as error:
        return complain(f"--show: {error}")
    say(", ".join(f"{name} {fact}" for name, fact in environment.items()))
    status = 0
    for part in (each for each in PARTS if each in parts):
        took = f"{took_s[part]:.0f} s" if part in took_s else "not measured to the end"
        say("\n".join(["", head(part), *map(line, parts[part]), "", took]))
        status = max(status, status_of(parts[part], part in took_s))
    return status


def say(text: str) -> None:
    print(text, flush=True)


def complain(message: str) -> int:
    """Prints an error. Returns the exit status."""
    print(f"throughput.py: {message}", file=sys.stderr)
    return 2


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--part", dest="parts", action="append", choices=PARTS, help="repeatable (default: all)")
    add("--device", default="cuda", metavar="NAME", help="cuda, cuda:N or cpu")
    add("--bundled", type=positive, default=8, metavar="N", help="bundled solutions in `builds`, spread evenly "
        "(default 8, whose compilers occupy 16 cores; 999 for all)")
    add("--processes", type=positive, default=5, metavar="N", help="processes of `warm` (default 5)")
    add("--further", type=positive, default=8, metavar="N", help="additional solutions in `next` (default 8)")
    add("--gib", type=float, default=6.0, metavar="GIB", help="size of the inputs of `large` (default 6)")
    add("--solutions", type=positive, default=16, metavar="N", help="solutions in `suite` and `devices` (default 16)")
    add("--stock", type=positive, default=2, metavar="N", help="of these, measured in the simple harness (default 2); "
        f"with {PLENTY_OF_CORES} cores or more, one builds during `next` and `large`")
    add("--evaluations", type=positive, default=8, metavar="N", help="evaluations of each kind in "
        f"`undisturbed` (default 8); {AT_SMALL} times as many at the shape `small`")
    add("--builds", type=positive, default=8, metavar="N", help="parallel builds in `undisturbed` (default 8)")
    add("--out", type=Path, metavar="FILE", help="write raw figures to FILE as JSON")
    add("--show", type=Path, metavar="FILE", help="print the tables of FILE instead of measuring")
    given = parser.parse_args(arguments)
    given.parts = given.parts or list(PARTS)
    if not given.gib > 0:
        parser.error(f"--gib {given.gib:g}: must be positive")
    if given.stock > given.solutions:
        parser.error(f"--stock {given.stock}: must not exceed --solutions {given.solutions}")
    return given


def main() -> int:
    given = read_options()
    return measure(given) if given.show is None else show(given.show)


if __name__ == "__main__":
    sys.exit(main())
