"""The history of many runs as text: a line for each change, the worst first."""

from __future__ import annotations

from inlinebench.foreign import first_line, one_line
from inlinebench.report.history.tracks import History, Track, TrackChange, what_differs
from inlinebench.report.text import significant


def report(found: History) -> str:
    """Returns the changes, or that there are none, and what was left out."""
    several = len(found.models) > 1
    lines = [line(found, track, change, with_model=several) for track, change in found.changes]
    return "\n".join([*(lines or [unchanged(found)]), *(f"left out: {each}" for each in found.left_out)])


def unchanged(found: History) -> str:
    """Says that nothing changed, in how many rows, problems and runs."""
    rows, problems = len(found.tracks), len({track.row[0] for track in found.tracks})
    return (f"no change in {rows} row{'s' * (rows != 1)} of {problems} problem{'s' * (problems != 1)} "
            f"over {len(found.runs)} runs")


def line(found: History, track: Track, change: TrackChange, *, with_model: bool) -> str:
    """Returns one change: `softmax/fast: 0.212 -> 0.231 ms (+9.0 %) between day3 and day4; same sources, ...`."""
    asides = [what_differs(change)] if change.ms else [first_line(change.new.reason)]
    told = f"{label(track, with_model=with_model)}: {what(change)} {between(found, change)}"
    return "; ".join(filter(None, [told, *asides]))


def label(track: Track, *, with_model: bool) -> str:
    """Returns the name of a row, with its shape unless that is `full`."""
    problem, solution, shape = map(one_line, track.row)
    return (f"{problem}/{solution}" + ("" if shape == "full" else f" ({shape})")
            + (f" on {one_line(track.model)}" if with_model else ""))


def what(change: TrackChange) -> str:
    """Returns what changed: `passed -> wrong` or `0.212 -> 0.231 ms (+9.0 %)`."""
    if change.ms is None:
        return f"{change.old.verdict} -> {change.new.verdict}"
    return f"{significant(change.ms[0])} -> {significant(change.ms[1])} ms ({100 * change.step:+.1f} %)"


def between(found: History, change: TrackChange) -> str:
    """Returns the runs before and after a change: `between day3 and day4`."""
    return f"between {one_line(found.runs[change.before])} and {one_line(found.runs[change.after])}"
