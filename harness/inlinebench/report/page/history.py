"""Renders the page of a history: the changes, and a chart for each row, those with the worst changes first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from markupsafe import Markup

from inlinebench.foreign import first_line, one_line
from inlinebench.report.history.tracks import History, TrackChange, what_differs
from inlinebench.report.page.template import environment, own, policy
from inlinebench.report.page.trends import chart, kind
from inlinebench.report.terminal.history import between, label, unchanged, what


@dataclass(frozen=True)
class ListedChange:
    """A change as a line of the table."""

    kind: str
    """Its class: `now-failing`, `now-passing`, `slower` or `faster`."""
    name: str
    """The row."""
    number: int
    """The number of the row's chart."""
    what: str
    """What changed."""
    between: str
    """Between which runs."""
    note: str
    """The reason of a failure, or what else changed."""

    @property
    def colour(self) -> str:
        """The class of the colour of its kind."""
        return "red" if self.kind in ("now-failing", "slower") else "green"


def render(found: History, title: str) -> str:
    """Returns the page."""
    style, script = own("page.css") + own("history.css"), own("page.js")
    several = len(found.models) > 1
    names = [label(track, with_model=several) for track in found.tracks]
    figures = [(name, Markup(chart(track, found.runs, name))) for name, track in zip(names, found.tracks, strict=True)]
    changed = sum(bool(track.changes) for track in found.tracks)
    numbers = {id(track): number for number, track in enumerate(found.tracks)}
    listed = [_listed(found, change, names[numbers[id(track)]], numbers[id(track)]) for track, change in found.changes]
    counts = Counter((each.kind, each.colour) for each in listed)
    return environment().get_template("history.html").render(
        title=one_line(title), policy=policy(style, script), style=Markup(style), script=Markup(script),
        about=_about(found), left_out=found.left_out, unchanged=unchanged(found), listed=listed,
        counts=[(name.replace("-", " "), colour, count) for (name, colour), count in counts.items()],
        rows=len(names), changed=figures[:changed], others=figures[changed:],
    )


def _about(found: History) -> str:
    runs = f"{len(found.runs)} runs from {one_line(found.runs[0])} to {one_line(found.runs[-1])}"
    return " \N{MIDDLE DOT} ".join([runs, ", ".join(map(one_line, found.models))])


def _listed(found: History, change: TrackChange, name: str, number: int) -> ListedChange:
    note = what_differs(change) if change.ms else first_line(change.new.reason)
    return ListedChange(kind(change), name, number, what(change), between(found, change), note)
