"""The reports of `--build-only`, and their table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from inlinebench.foreign import one_line
from inlinebench.records.build_request import BuildOutcome
from inlinebench.report.text import ABSENT, brief_reason, grid
from inlinebench.scheduler.prebuild import Prebuilt

LATER = "its constructor needs a GPU; it is built when it is evaluated"
NOTHING = "requested no build when it was constructed; later builds run when it is evaluated"
_TRACEBACK = "Traceback (most recent call last)"
_OF_A_GPU = re.compile(r"\b(lib)?cuda\b|\bgpus?\b|nvidia|nvml|\bdrivers?\b", re.IGNORECASE)
_WHATEVER_THE_MACHINE = re.compile(r"(undefined symbol|SyntaxError|IndentationError|NameError|ModuleNotFoundError)\b")
_COLUMNS = {"problem": "left", "solution": "left", "build": "left", "seconds": "right", "cached": "left",
            "headers": "left"}


class State(str, Enum):
    """Whether the libraries that a solution asked for are in the cache."""

    BUILT = "built"
    """The solution was constructed, and its libraries are in the cache."""
    FAILED = "failed"
    """A build or the constructor failed."""
    SKIPPED = "skipped"
    """The solution cannot run on the CPU."""
    LATER = "later"
    """Its constructor needs a GPU, and builds see no GPU."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class BuildReport:
    """The outcome of building one solution."""

    problem: str
    """Name of the problem."""
    solution: str
    """Name of the solution."""
    state: State
    """Whether its libraries are in the cache."""
    reason: str = ""
    """Why it was not built, or a remark; may be empty."""
    builds: tuple[BuildOutcome, ...] = ()
    """The outcomes of its builds."""


def summed_up(problem: str, solution: str, parts: Sequence[Prebuilt], *, for_gpu: bool) -> BuildReport:
    """Summarizes a solution that was constructed once for each set of arguments. The worst state counts."""
    builds = tuple(dict.fromkeys(outcome for part in parts for outcome in part.builds))
    states = [_state(part, for_gpu) for part in parts]
    order = [State.FAILED, State.LATER, State.SKIPPED, State.BUILT]
    state, reason = min(states, key=lambda found: order.index(found[0]))
    if state is State.BUILT and not builds:
        reason = NOTHING
    return BuildReport(problem, solution, state, reason, builds)


def _state(part: Prebuilt, for_gpu: bool) -> tuple[State, str]:
    broken = next((outcome for outcome in part.builds if outcome.library is None), None)
    if not part.failure:
        # The solution handled the failed build, and may do so in its evaluation too.
        return State.BUILT, f"a library was not built, but the solution handles that: {broken.reason}" if broken else ""
    if broken:
        return State.SKIPPED if broken.unsupported else State.FAILED, broken.reason
    if for_gpu and _needs_gpu(part):
        return State.LATER, LATER
    return State.FAILED, part.failure


def _needs_gpu(part: Prebuilt) -> bool:
    """Whether a solution may have failed only because there is no GPU.

    True if the message, or the line of code that raised, mentions GPUs. A wrong guess shows in the evaluation.
    """
    if _WHATEVER_THE_MACHINE.match(part.failure):
        return False
    code = [line for line in part.log.rpartition(_TRACEBACK)[2].splitlines() if not line.startswith('  File "')]
    return any(_OF_A_GPU.search(text) for text in (part.failure, *code))


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
