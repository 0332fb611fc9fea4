"""The records of a history: the verdicts and times of each row over many runs, and where they changed."""

from __future__ import annotations

from dataclasses import dataclass

from inlinebench.report.comparison import Row
from inlinebench.results.result import Result, Verdict


@dataclass(frozen=True)
class Level:
    """The runs in which the time of a row stayed the same."""

    first: int
    """The number of its first run."""
    last: int
    """The number of its last run."""
    ms: float
    """The median of the times in ms."""


@dataclass(frozen=True)
class TrackChange:
    """A change of a row between two runs, of its verdict or of its time."""

    before: int
    """The number of the last run before it."""
    after: int
    """The number of the first run after it."""
    old: Result
    """The result before it."""
    new: Result
    """The result after it."""
    ms: tuple[float, float] | None = None
    """The times of both levels in ms; None for a change of the verdict."""

    @property
    def step(self) -> float:
        """The new time over the old one, less 1; 0 for a change of the verdict."""
        return self.ms[1] / self.ms[0] - 1 if self.ms else 0.0

    @property
    def severity(self) -> tuple[int, float]:
        """Sorts changes: rows that fail now, rows that pass now, slower ones, faster ones; each the largest first."""
        if self.ms is None:
            return int(self.new.verdict is Verdict.PASSED), 0.0
        return (2, -self.step) if self.step > 0 else (3, self.step)


@dataclass(frozen=True)
class Track:
    """One row over all runs, on one model of device. Times of a run are divided by the factor of the run."""

    row: Row
    """Problem, solution, shape."""
    model: str
    """The model of the device, and whether TF32 was on."""
    verdicts: tuple[tuple[int, Verdict], ...]
    """The verdicts about the solution, by the number of the run."""
    points: tuple[tuple[int, float], ...] = ()
    """The times in ms, by the number of the run."""
    levels: tuple[Level, ...] = ()
    """The levels of these times, in order."""
    changes: tuple[TrackChange, ...] = ()
    """The changes, the worst first. Of the changes of the verdict only the last one."""


@dataclass(frozen=True)
class History:
    """The results of several runs, by row."""

    runs: tuple[str, ...]
    """The names of the runs, in order."""
    tracks: tuple[Track, ...]
    """All rows, those with the worst changes first."""
    left_out: tuple[str, ...]
    """What was not compared, one clause each."""

    @property
    def models(self) -> list[str]:
        """The models of devices."""
        return sorted({track.model for track in self.tracks})

    @property
    def changes(self) -> list[tuple[Track, TrackChange]]:
        """All changes, the worst first."""
        found = [(track, change) for track in self.tracks for change in track.changes]
        return sorted(found, key=lambda each: each[1].severity)


def what_differs(change: TrackChange) -> str:
    """Returns what else changed between both results, in words; empty if they do not say it.

    The key of a result covers the sources, the options and the versions, so that of two results with the same versions
    says whether sources or options differ.
    """
    old, new = change.old, change.new
    if old.key is None or new.key is None or old.environment is None or new.environment is None:
        return ""
    if old.key == new.key:
        return "same sources, options and versions"
    versions = [f"{name} {before} -> {after}" for name, before, after in (
        ("inlinebench", old.environment.harness, new.environment.harness),
        ("torch", old.environment.torch, new.environment.torch),
        ("CUDA", old.environment.cuda, new.environment.cuda),
        ("driver", old.environment.driver, new.environment.driver)) if before != after]
    return ", ".join(versions) or "other sources or options"
