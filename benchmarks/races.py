"""Counts the data races and accesses out of bounds that are found in the Indigo suite when it runs on the CPU.

    python benchmarks/races.py FOLDER [--sample N] [--jobs N]

FOLDER is `indigo` of the HiRace paper's artifact, with `indigo_sources`, `indigo_include` and `input`. Nothing of the
suite is part of this repository. Each kernel runs on a graph of 200 vertices in both schedules. A file name says which
bugs were planted: `atomicBug`, `guardBug`, `raceBug` and `syncBug` are data races; `boundsBug` is an access out of
bounds, which is not a race.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cuda_on_cpu import INCLUDE_DIR, RACE_FLAGS, SOURCE_FLAGS, link_flags, runtime_library, translate

FLAGS = [*SOURCE_FLAGS, *RACE_FLAGS, "-std=c++17", "-O1"]
GRAPH, THREADS, BLOCKS = "DAG_200n_400e.egr", 256, 1024
OUTSIDE, OUTSIDE_GRAPH = "boundsBug", "power_law_200n_1000e.egr"  # its last vertices have no edges
RACY = re.compile("atomicBug|guardBug|raceBug|syncBug")
SCHEDULES = ("ascending", "shuffled")

# Keeps errors of launches, so that the suite's main() ends as usual, and prints what was found.
_PRINTER = """
#include <cstddef>
#include <cstdio>
extern "C" {
void cuda_on_cpu_throw_errors(int);
std::size_t cuda_on_cpu_take_error(char*, std::size_t);
std::size_t cuda_on_cpu_take_race_notes(char*, std::size_t);
}
static struct Printer {
  Printer() { cuda_on_cpu_throw_errors(0); }
  ~Printer() {
    static char text[1 << 20];
    if (cuda_on_cpu_take_error(text, sizeof text)) std::printf("error: %s\\n", text);
    if (cuda_on_cpu_take_race_notes(text, sizeof text)) std::printf("note: %s\\n", text);
  }
} printer;
"""


@dataclass(frozen=True)
class Row:
    """The outcome of one kernel."""

    name: str
    racy: bool
    grade: str
    """`wrong`, `note` or `none`; `failed` if it was not built or did not end."""
    said: str
    """What was found, or why it failed."""
    outside: bool = False
    """Whether an access out of bounds was found."""


def build(source: Path, folder: Path, runtime: Path) -> Path:
    """Builds a kernel with its main(). Raises CalledProcessError."""
    program, translated, compiled = (folder / f"{source.stem}{suffix}" for suffix in ("", ".cpp", ".o"))
    translated.write_text(f'#line 1 "{source.name}"\n{translate(source.read_text())}')
    flags = [f"-I{folder}", *FLAGS, f"-I{INCLUDE_DIR}"]
    for command in (
        ["g++", *flags, "-c", str(translated), "-o", str(compiled)],
        ["g++", str(compiled), str(folder / "printer.o"), "-o", str(program), *link_flags(runtime)],
    ):
        subprocess.run(command, check=True, capture_output=True, text=True)
    translated.unlink()
    compiled.unlink()
    return program


def precompile(folder: Path) -> None:
    """Compiles the header that every source includes, once."""
    flags = [flag for flag in FLAGS if flag not in ("-include", "cuda_runtime.h")]
    source, compiled = INCLUDE_DIR / "cuda_runtime.h", folder / "cuda_runtime.h.gch"
    command = ["g++", *flags, f"-I{INCLUDE_DIR}", "-x", "c++-header", str(source), "-o", str(compiled)]
    subprocess.run(command, check=True)


def run(program: Path, graph: Path, schedule: str) -> str:
    """Returns what a program printed in one schedule."""
    environment = {"CUDA_ON_CPU_RACES": "1", "CUDA_ON_CPU_BLOCK_ORDER": schedule, "PATH": "/usr/bin:/bin"}
    command = [str(program), str(graph), str(THREADS), str(BLOCKS)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    return ended.stdout + ended.stderr


def check(source: Path, folder: Path, graph: Path, runtime: Path) -> Row:
    """Builds and runs one kernel in both schedules."""
    racy = RACY.search(source.stem) is not None
    try:
        program = build(source, folder, runtime)
        graphs = [graph, graph.with_name(OUTSIDE_GRAPH)] if OUTSIDE in source.stem else [graph]
        said = "".join(run(program, each, schedule) for each in graphs for schedule in SCHEDULES)
    except (subprocess.SubprocessError, ValueError) as error:
        return Row(source.stem, racy, "failed", f"{error}: {getattr(error, 'stderr', '')}")
    program.unlink()
    lines = [line for line in said.splitlines() if "data race on" in line]
    wrong = any(line.startswith(("error:", "inlinebench:")) for line in lines)
    return Row(source.stem, racy, "wrong" if wrong else "note" if lines else "none", "\n".join(lines),
               "out of bounds" in said)


def check_all(suite: Path, sources: Sequence[Path], jobs: int) -> list[Row]:
    """Checks kernels in parallel and prints those that are not as expected."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(jobs) as pool:
        folder = Path(name)
        runtime = runtime_library(folder)
        (folder / "printer.cpp").write_text(_PRINTER)
        subprocess.run(["g++", "-c", str(folder / "printer.cpp"), "-o", str(folder / "printer.o")], check=True)
        precompile(folder)
        for header in suite.glob("indigo_include/*.h"):
            (folder / header.name).write_text(translate(header.read_text()))
        graph = suite / "input" / GRAPH
        for row in pool.map(lambda source: check(source, folder, graph, runtime), sources):
            rows.append(row)
            if row.grade == "failed" or row.racy != (row.grade != "none"):
                print(f"{'MISSED' if row.racy else 'ACCUSED'} {row.name} ({row.grade})\n{row.said}", flush=True)
    return rows


def main(arguments: Sequence[str]) -> int:
    """Prints how many racy kernels were found, and how many others were accused."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, default=0, help="check only every n-th kernel, about this many")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    sources = sorted(given.folder.glob("indigo_sources/*/*.cu"))
    if given.sample:
        sources = sources[:: max(1, len(sources) // given.sample)]
    rows = check_all(given.folder, sources, given.jobs)
    for racy in (True, False):
        grades = Counter(row.grade for row in rows if row.racy == racy)
        total, found = sum(grades.values()), grades["wrong"] + grades["note"]
        print(f"{'racy' if racy else 'others'}: {total}, {'found' if racy else 'accused'}: {found} ({dict(grades)})")
    planted = [row for row in rows if OUTSIDE in row.name]
    accused = sum(row.outside for row in rows) - sum(row.outside for row in planted)
    print(f"out of bounds: {len(planted)}, found: {sum(row.outside for row in planted)}, others accused: {accused}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
