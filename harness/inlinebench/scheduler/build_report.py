"""Sums up the builds of a solution for `--build-only`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inlinebench.builds.report import BuildReport, State
from inlinebench.results.result import Verdict
from inlinebench.scheduler.prebuild import Prebuilt

LATER = "its constructor needs a GPU; it is built when it is evaluated"
NOTHING = "requested no build when it was constructed; later builds run when it is evaluated"
_TRACEBACK = "Traceback (most recent call last)"
_OF_A_GPU = re.compile(r"\b(lib)?cuda\b|\bgpus?\b|nvidia|nvml|\bdrivers?\b", re.IGNORECASE)
_WHATEVER_THE_MACHINE = re.compile(r"(undefined symbol|SyntaxError|IndentationError|NameError|ModuleNotFoundError)\b")


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
        return State.SKIPPED if broken.verdict is Verdict.SKIPPED else State.FAILED, broken.reason
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
