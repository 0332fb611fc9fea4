"""The builds of real_code.py: their records, their file, and the report."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from inlinebench.foreign import first_line

USUAL_RATIO, USUAL_SHARE = 1.0, 0.95
"""The least share of builds that take no longer than stock's."""
LONGEST_RATIO = 1.2
LONGEST_RATIO_TWICE = 2.0
"""The largest ratio for a source that needs a second try with torch's full headers."""
SHOWN = 300
"""The most characters of a reason in the tables. The file has more."""


class Maker(str, Enum):
    """Who built a solution."""

    HARNESS = "harness"
    STOCK = "stock"


class End(str, Enum):
    """The outcome of the builds that a solution requested during import and construction."""

    BUILT = "built"
    FAILED = "failed"
    """At least one build failed, or a library cannot be loaded."""
    HUNG = "hung"
    """A build exceeded the time limit."""
    NONE = "none"
    """It requested no build, or raised an exception before."""


@dataclass(frozen=True)
class Build:
    """All builds of one solution by one maker."""

    maker: Maker
    """Who built it."""
    solution: str
    """`problem/solution`."""
    end: End
    """The outcome."""
    seconds: float = 0.0
    """Seconds inside `load_inline` and `load`, over all calls."""
    builds: int = 0
    """The number of calls."""
    reason: str = ""
    """Why it failed."""
    headers: str = ""
    """The headers that the harness used."""
    second_try: bool = False
    """Whether slim headers did not suffice."""
    cached: bool = False
    """Whether another solution had requested the same library, so that the seconds are meaningless."""
    state: str = ""
    """The state that `--build-only` reports."""


@dataclass(frozen=True)
class Pair:
    """One solution, built by both makers."""

    stock: Build
    ours: Build

    @property
    def same_end(self) -> bool:
        return self.stock.end is self.ours.end

    @property
    def comparable(self) -> bool:
        """Whether the ratio counts: both makers built it completely."""
        return self.stock.end is self.ours.end is End.BUILT and not self.ours.cached and self.stock.seconds > 0

    @property
    def ratio(self) -> float | None:
        return self.ours.seconds / self.stock.seconds if self.stock.seconds > 0 and self.ours.builds else None


class Record:
    """All builds. Appended to `path` as lines of JSON, if given.

    Builds in the file from the same `setup` count as done. Lines of other setups stay there and are ignored.
    """

    def __init__(self, path: Path | None, setup: str) -> None:
        self._path, self._setup = path, setup
        self.builds: dict[tuple[Maker, str], Build] = {}
        if path is not None and path.exists():
            text = path.read_text(encoding="utf-8")
            self.builds = {(build.maker, build.solution): build for build in _read(text, setup)}
            if text and not text.endswith("\n"):  # the last run was killed while it wrote
                _append(path, "\n")

    def put(self, build: Build) -> None:
        self.builds[build.maker, build.solution] = build
        if self._path is not None:
            _append(self._path, json.dumps({"setup": self._setup, **asdict(build)}, ensure_ascii=False) + "\n")

    def missing(self, maker: Maker, solutions: Iterable[str]) -> list[str]:
        """Returns the solutions that this maker has not built yet, in order."""
        return [each for each in solutions if (maker, each) not in self.builds]

    def of(self, maker: Maker, solutions: Iterable[str]) -> list[Build]:
        """Returns the recorded builds of this maker, in order."""
        return [self.builds[maker, each] for each in solutions if (maker, each) in self.builds]

    def pairs(self, solutions: Iterable[str]) -> list[Pair]:
        """Returns the solutions that both makers have built, in order."""
        return [Pair(self.builds[Maker.STOCK, each], self.builds[Maker.HARNESS, each]) for each in solutions
                if (Maker.STOCK, each) in self.builds and (Maker.HARNESS, each) in self.builds]


def _read(text: str, setup: str) -> Iterator[Build]:
    for line in text.splitlines():
        try:
            facts = json.loads(line)
            if facts.pop("setup") == setup:
                yield Build(**{**facts, "maker": Maker(facts["maker"]), "end": End(facts["end"])})
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # half-written, or from another version: it is built again


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


@dataclass(frozen=True)
class Bar:
    """A figure and its bar. `met` is None if there is no figure or no bar."""

    what: str
    figure: str
    bar: str = ""
    met: bool | None = None


def bars(ours: Sequence[Build], pairs: Sequence[Pair]) -> list[Bar]:
    """Returns all figures with their bars. Builds that were not compared with stock count only for the first."""
    hung = sum(build.end is End.HUNG for build in ours)
    found = [Bar("builds that hung", f"{hung} of {len(ours)}", "0", hung == 0)]
    if not pairs:
        return found
    lost = sum(pair.stock.end is End.BUILT and not pair.same_end for pair in pairs)
    apart = sum(not pair.same_end for pair in pairs)
    ratios = [pair.ratio or 0.0 for pair in pairs if pair.comparable]
    usual = sum(ratio <= USUAL_RATIO for ratio in ratios)
    once = [pair.ratio or 0.0 for pair in pairs if pair.comparable and not pair.ours.second_try]
    twice = [pair.ratio or 0.0 for pair in pairs if pair.comparable and pair.ours.second_try]
    return [
        *found,
        Bar("built by stock and not by the harness", f"{lost} of {len(pairs)}", "0", lost == 0),
        Bar("ended otherwise than by stock, either way", f"{apart} of {len(pairs)}"),
        Bar(f"no longer than {USUAL_RATIO:g} times stock", f"{usual} of {len(ratios)}", f"{USUAL_SHARE:.0%}",
            usual >= USUAL_SHARE * len(ratios) if ratios else None),
        _largest("largest ratio", once, LONGEST_RATIO),
        _largest(f"largest ratio of the {len(twice)} with a second try", twice, LONGEST_RATIO_TWICE),
    ]


def _largest(what: str, ratios: Sequence[float], most: float) -> Bar:
    if not ratios:
        return Bar(what, "-", f"{most:g}")
    return Bar(what, f"{max(ratios):.2f}", f"{most:g}", max(ratios) <= most)


def report(ours: Sequence[Build], pairs: Sequence[Pair], recorded: Mapping[str, str], left: int) -> str:
    """Returns Markdown: pairs, different outcomes, failed builds, seconds, and the bars."""
    blocks = [_pairs(pairs), _listed("Ended otherwise than by stock", _different(pairs)),
              _listed("Not built by the harness", _not_built(ours, recorded)), _summary(ours),
              f"{left} builds are left to do." if left else "", _bars(bars(ours, pairs))]
    return "\n\n".join(filter(None, blocks))


def _pairs(pairs: Sequence[Pair]) -> str:
    if not pairs:
        return ""
    head = ["### Beside stock `load_inline`", "",
            "| solution | stock (s) | harness (s) | ratio | stock | harness | headers | ends |",
            "| --- | ---: | ---: | ---: | --- | --- | --- | --- |"]
    return "\n".join([*head, *map(_pair, pairs)])


def _pair(pair: Pair) -> str:
    ratio = "-" if pair.ratio is None else f"{pair.ratio:.2f}" if pair.comparable else f"({pair.ratio:.2f})"
    headers = "second try" if pair.ours.second_try else "cached" if pair.ours.cached else pair.ours.headers or "-"
    cells = [pair.ours.solution, f"{pair.stock.seconds:.1f}", f"{pair.ours.seconds:.1f}", ratio, pair.stock.end.value,
             pair.ours.end.value, headers, "SAME" if pair.same_end else "DIFFERENT"]
    return f"| {' | '.join(cells)} |"


def _different(pairs: Sequence[Pair]) -> Iterator[str]:
    for pair in pairs:
        if not pair.same_end:
            yield f"{pair.ours.solution}\n  - stock: {_end(pair.stock)}\n  - harness: {_end(pair.ours)}"


def _not_built(ours: Sequence[Build], recorded: Mapping[str, str]) -> Iterator[str]:
    for build in ours:
        if build.end is not End.BUILT:
            verdict = recorded.get(build.solution)
            yield f"{build.solution}{f' (recorded: {verdict})' if verdict else ''}: {_end(build)}"


def _end(build: Build) -> str:
    state = f" ({build.state})" if build.state not in ("", build.end.value) else ""
    return f"{build.end.value}{state}: {first_line(build.reason)[:SHOWN]}".rstrip(": ")


def _listed(title: str, items: Iterable[str]) -> str:
    lines = [f"- {item}" for item in items]
    return "\n".join([f"### {title}", "", *lines]) if lines else ""


def _summary(ours: Sequence[Build]) -> str:
    ends = Counter(build.end for build in ours)
    lines = ["### All builds of the harness", "", "| end | solutions | second try | median (s) | largest (s) |",
             "| --- | ---: | ---: | ---: | ---: |"]
    for end in (each for each in End if ends[each]):
        builds = [build for build in ours if build.end is end]
        seconds = [build.seconds for build in builds]
        twice = sum(build.second_try for build in builds)
        lines.append(f"| {end.value} | {len(builds)} | {twice} | {statistics.median(seconds):.1f} | "
                     f"{max(seconds):.1f} |")
    return "\n".join(lines)


def _bars(found: Sequence[Bar]) -> str:
    words = {True: "met", False: "**missed**", None: ""}
    rows = [f"| {bar.what} | {bar.figure} | {bar.bar} | {words[bar.met]} |" for bar in found]
    return "\n".join(["| | figure | bar | |", "| --- | ---: | ---: | --- |", *rows])
