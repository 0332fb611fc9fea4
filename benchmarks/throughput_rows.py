"""The rows of throughput.py: raw figures, their bars, their tables and their file.

Does not measure anything. All times are in seconds unless a name says otherwise. A missing figure misses its bar.
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from accuracy_bars import Row, middle, number, percent

MEDIAN_RATIO, EACH_RATIO, FIRST_RATIO = 4.0, 3.5, 3.0
"""The least speedups of builds: of their median, of each, and of the first with an empty cache."""
SUITE_RATIO, DEVICES_RATIO = 10.0, 1.8
"""The least speedups."""
WARM_S, BEYOND_IMPORT_S = 6.0, 1.5
NEXT_CHECKED_S, NEXT_TIMED_S = 1.5, 4.0
LARGE_S = 20.0
UNDISTURBED = 0.02
"""The largest difference of medians, as a share."""


@dataclass(frozen=True)
class Built(Row):
    """One cold build by torch's own `load_inline` and by the harness, or the median of several builds."""

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "solution", "builds beside it", "stock `load_inline` (s)", "precompiled before, once (s)", "harness (s)",
        "headers", "times as fast", "at least")

    beside: int = 0
    """The number of other builds that ran at the same time."""
    stock_s: float | None = None
    """The time of torch's own `load_inline`."""
    precompiling_s: float | None = None
    """The time to precompile headers, if that was done before."""
    ours_s: float | None = None
    """The time of the harness."""
    headers: str = ""
    """The headers that the harness used."""
    ratios: list[float] = field(default_factory=list)
    """The speedups of several builds, if the row is their median."""

    @property
    def faster(self) -> float:
        return statistics.median(self.ratios) if self.ratios else ratio(self.stock_s, self.ours_s)

    @property
    def at_least(self) -> float:
        """The bar."""
        if self.ratios:
            return MEDIAN_RATIO
        return FIRST_RATIO if self.precompiling_s is None else EACH_RATIO

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.what, str(self.beside), seconds(self.stock_s), seconds(self.precompiling_s), seconds(self.ours_s),
                self.headers or "-", times(self.faster), times(self.at_least))

    @property
    def met(self) -> bool:
        return self.faster >= self.at_least


@dataclass(frozen=True)
class Warm(Row):
    """A command on a built solution from start to exit, alternating with a process that imports torch and starts CUDA.

    The medians are compared with the bars.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "command", "processes", "best (s)", "median (s)", "under (s)", "import and CUDA start: best (s)",
        "median (s)", "beyond it (s)", "under (s)")

    ours_s: list[float] = field(default_factory=list)
    """The time of the command, in each process."""
    plain_s: list[float] = field(default_factory=list)
    """The time to import torch and start CUDA, in each process."""

    @property
    def beyond_s(self) -> float:
        return middle(self.ours_s) - middle(self.plain_s)

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.what, str(len(self.ours_s)), *best_and_median(self.ours_s), seconds(WARM_S),
                *best_and_median(self.plain_s), seconds(self.beyond_s), seconds(BEYOND_IMPORT_S))

    @property
    def met(self) -> bool:
        return middle(self.ours_s) < WARM_S and self.beyond_s < BEYOND_IMPORT_S


@dataclass(frozen=True)
class Further(Row):
    """A run of one solution, and a run of it and `further` copies, from start to exit."""

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "evaluation", "run of 1 (s)", "run of more (s)", "further ones", "each of them (s)", "under (s)")

    timed: bool = False
    further: int = 0
    one_s: float | None = None
    more_s: float | None = None

    @property
    def each_s(self) -> float:
        if self.one_s is None or self.more_s is None or self.further < 1:
            return math.nan
        return (self.more_s - self.one_s) / self.further

    @property
    def allowed_s(self) -> float:
        return NEXT_TIMED_S if self.timed else NEXT_CHECKED_S

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.what, seconds(self.one_s), seconds(self.more_s), str(self.further), seconds(self.each_s),
                seconds(self.allowed_s))

    @property
    def met(self) -> bool:
        return 0 < self.each_s < self.allowed_s  # a solution that takes no time was not evaluated


@dataclass(frozen=True)
class Large(Row):
    """One evaluation of a built solution with `gib` GiB of inputs, in a session whose judge has started."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("problem", "inputs (GiB)", "calls", "evaluation (s)", "under (s)")

    gib: float = 0.0
    calls: int = 0
    took_s: float | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        return self.what, number(self.gib, ".3g"), str(self.calls), seconds(self.took_s), seconds(LARGE_S)

    @property
    def met(self) -> bool:
        return self.took_s is not None and self.took_s < LARGE_S


@dataclass(frozen=True)
class Suite(Row):
    """Several solutions with an empty cache, by one run of the harness, and one by one by a simple harness.

    The simple harness uses torch's own `load_inline`. Only the first few solutions are measured in it.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "solutions", "harness, all (s)", "stock, each measured (s)", "built beside other parts",
        "stock, all at their mean (s)", "times as fast", "at least")

    solutions: int = 0
    """The number of solutions."""
    ours_s: float | None = None
    """The time of the harness for all solutions."""
    stock_s: list[float] = field(default_factory=list)
    """The time of the simple harness for each measured solution."""
    beside: int = 0
    """How many of these were built while other parts ran on other cores."""

    @property
    def stock_all_s(self) -> float:
        return statistics.fmean(self.stock_s) * self.solutions if self.stock_s else math.nan

    @property
    def faster(self) -> float:
        return ratio(self.stock_all_s, self.ours_s)

    @property
    def cells(self) -> tuple[str, ...]:
        measured = ", ".join(map(seconds, self.stock_s)) or "-"
        return (self.what, seconds(self.ours_s), measured, f"{self.beside} of {len(self.stock_s)}",
                number(self.stock_all_s, ".0f"), times(self.faster), times(SUITE_RATIO))

    @property
    def met(self) -> bool:
        return self.faster >= SUITE_RATIO


@dataclass(frozen=True)
class Shared(Row):
    """The same built solutions on one device and on two, with judges that have started."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("work", "one device (s)", "two (s)", "times as fast", "at least")

    one_s: float | None = None
    two_s: float | None = None

    @property
    def faster(self) -> float:
        return ratio(self.one_s, self.two_s)

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.what, seconds(self.one_s), seconds(self.two_s), times(self.faster), times(DEVICES_RATIO))

    @property
    def met(self) -> bool:
        return self.faster >= DEVICES_RATIO


@dataclass(frozen=True)
class Undisturbed(Row):
    """A solution's median device time (µs) in evaluations on an idle machine and in others during builds."""

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "solution", "evaluations", "idle (µs)", "beside builds (µs)", "builds begun", "apart", "within")

    idle_us: list[float] = field(default_factory=list)
    busy_us: list[float] = field(default_factory=list)
    builds: int = 0
    """The number of builds that were started. Without any the row misses its bar."""

    @property
    def apart(self) -> float:
        return ratio(middle(self.busy_us), middle(self.idle_us)) - 1

    @property
    def cells(self) -> tuple[str, ...]:
        idle, busy = (number(middle(each), ".2f") for each in (self.idle_us, self.busy_us))
        evaluations = f"{len(self.idle_us)} + {len(self.busy_us)}"
        apart = number(self.apart, "+.2%").replace("%", " %")
        return self.what, evaluations, idle, busy, str(self.builds), apart, percent(UNDISTURBED, 0)

    @property
    def met(self) -> bool:
        return self.builds > 0 and abs(self.apart) <= UNDISTURBED


KINDS: Mapping[str, type[Row]] = {
    "builds": Built, "warm": Warm, "next": Further, "large": Large, "suite": Suite, "devices": Shared,
    "undisturbed": Undisturbed,
}
TITLES = {
    "builds": "Cold builds: the time inside stock `load_inline` and inside the harness's build service. "
    "As many side by side as there are cores for, first the stock ones and then ours; and the first of them alone. "
    "From its fourth build on a cache has headers in precompiled form; the last row is the first build of a cache",
    "warm": "One built solution, from the start of the process to its exit status; medians are held to the bars",
    "next": "Each further built solution of a run, at the shape `small`: what it adds to the run",
    "large": "An evaluation with large inputs, inside a session",
    "suite": "Many solutions with an empty cache, end to end: one run of the harness, against a fresh process with "
    "stock `load_inline` and inputs drawn on the CPU for each. Of the stock ones some are measured and multiplied",
    "devices": "The suite, built, with times: on two devices and on one, from the first evaluation on",
    "undisturbed": "Device times beside builds and on an idle machine; medians over evaluations",
}
PARTS = tuple(KINDS)


def head(part: str) -> str:
    """Returns the title and the table header of a part, as Markdown."""
    columns = (*KINDS[part].COLUMNS, "bar")
    rule = " | ".join(["---", *["---:"] * (len(columns) - 2), "---"])
    return f"### `{part}`\n\n{TITLES[part]}.\n\n| {' | '.join(columns)} |\n| {rule} |"


def seconds(value: float | None) -> str:
    """Formats a time to 10 ms."""
    return number(value, ".2f")


def times(factor: float) -> str:
    """Formats a factor with an `x`; a dash for NaN."""
    return number(factor, ".2f") + ("" if math.isnan(factor) else "x")


def ratio(slow: float | None, fast: float | None) -> float:
    """Returns the speedup. NaN, which misses every bar, if a time is missing or `fast` is 0."""
    if slow is None or fast is None or not fast > 0:
        return math.nan
    return slow / fast


def best_and_median(samples: Sequence[float]) -> tuple[str, str]:
    return seconds(min(samples, default=math.nan)), seconds(middle(samples))


class Record:
    """All figures by part, and the seconds of each finished part. Written to `path`, if given.

    Figures of another environment in the file are dropped.
    """

    def __init__(self, path: Path | None, environment: Mapping[str, Any]) -> None:
        self._path, self._environment = path, dict(environment)
        self.parts: dict[str, list[Row]] = {}
        self.took_s: dict[str, float] = {}
        if path is not None and path.exists():
            kept, parts, took_s = read_record(path)
            if kept == self._environment:
                self.parts, self.took_s = parts, took_s

    def begin(self, part: str) -> None:
        """Starts a part, and removes its earlier figures."""
        self._forget(part)
        self.parts[part] = []
        self._write()

    def put(self, part: str, row: Row) -> None:
        """Adds a row, in place of a row with the same name."""
        rows = self.parts[part]
        if row.what in [each.what for each in rows]:
            self.parts[part] = [row if each.what == row.what else each for each in rows]
        else:
            rows.append(row)
        self._write()

    def end(self, part: str, took_s: float) -> None:
        """Marks a part as finished after `took_s` seconds."""
        self.took_s[part] = took_s
        self._write()

    def drop(self, part: str) -> None:
        """Removes a part."""
        self._forget(part)
        self._write()

    def _forget(self, part: str) -> None:
        self.parts.pop(part, None)
        self.took_s.pop(part, None)

    def _write(self) -> None:
        """Writes the file atomically."""
        if self._path is None:
            return
        parts = {name: [asdict(row) for row in rows] for name, rows in self.parts.items()}
        facts = {"environment": self._environment, "parts": parts, "seconds": self.took_s}
        fresh = self._path.with_name(self._path.name + ".new")
        fresh.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(fresh, self._path)


def read_record(path: Path) -> tuple[dict[str, Any], dict[str, list[Row]], dict[str, float]]:
    """Returns the environment, the rows by part, and the seconds of finished parts from a file that a Record wrote.

    Raises OSError if the file cannot be read, ValueError if a Record did not write it.
    """
    text = path.read_text(encoding="utf-8")
    try:
        data = json.loads(text)
        parts = {part: [KINDS[part](**row) for row in rows] for part, rows in data["parts"].items()}
        return dict(data["environment"]), parts, dict(data["seconds"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a file of figures ({type(error).__name__}: {error})") from error


def status_of(rows: Sequence[Row], finished: bool) -> int:
    """Returns the exit status of a part: 2 if it was not measured completely, 1 if a bar was missed, else 0."""
    if not finished or not rows:
        return 2
    return int(not all(row.met for row in rows))
