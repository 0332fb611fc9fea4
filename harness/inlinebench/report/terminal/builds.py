"""The table of `--build-only`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inlinebench.builds.report import BuildReport, State
from inlinebench.foreign import one_line
from inlinebench.report.text import ABSENT, brief_reason, grid

_COLUMNS = {"problem": "left", "solution": "left", "build": "left", "seconds": "right", "cached": "left",
            "headers": "left"}


def table(rows: Iterable[BuildReport], notes: Sequence[str] = ()) -> str:
    """Returns a table with a row for each solution, then the reasons, one line each, then the notes.

    Seconds are those of this run's compilers.
    """
    ordered = sorted(rows, key=lambda row: (row.problem, row.solution))
    said = [f"{one_line(row.problem)}/{one_line(row.solution)}: {row.state}: {brief_reason(row.reason)}"
            for row in ordered if row.reason]
    cells = [_cells(row) for row in ordered]
    blocks = [grid(list(_COLUMNS), cells, list(_COLUMNS.values())), "\n".join(said), "\n".join(notes)]
    return "\n\n".join(filter(None, blocks))


def _cells(row: BuildReport) -> list[str]:
    there = [outcome for outcome in row.builds if outcome.library is not None]
    cached = sum(outcome.cached for outcome in there)
    shown = "yes" if cached == len(there) else f"{cached} of {len(there)}" if cached else "no"
    seconds = sum(outcome.seconds for outcome in row.builds)
    headers = dict.fromkeys(outcome.headers.partition(",")[0] for outcome in there)
    return [
        one_line(row.problem), one_line(row.solution), str(row.state), f"{seconds:.1f}" if row.builds else ABSENT,
        shown if there else ABSENT, ", ".join(headers) or ABSENT,
    ]


def exit_status(rows: Iterable[BuildReport], strict: bool) -> int:
    """Returns 0 if nothing failed (with `strict`: and nothing was skipped), else 1."""
    bad = {State.FAILED, State.SKIPPED} if strict else {State.FAILED}
    return int(any(row.state in bad for row in rows))
