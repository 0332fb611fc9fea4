"""Library solutions: the best PyTorch library call for a problem, one for each problem at most.

Rejected alternatives:

- An option, or a field of the problem's file, that names the solution. There is one best call, and a file beside the
  others is found, checked and timed like them.
- Timing the library call in the judge, like `torch.compile` of the reference. The judge would run a second foreign
  model, and every evaluation would need more time and memory.
- Computing the speedup in reports, from the rows of a file. Lines of JSON would lack it.
- A declaration in the file. A solution would then decide about its own check.
"""

from __future__ import annotations

from collections.abc import Sequence

from inlinebench.results.result import Result
from inlinebench.results.times import Baseline

LIBRARY = "library"
"""The reserved name of such a solution, and of the baseline that it is for the other solutions of its problem."""


def counted(results: Sequence[Result]) -> list[Result]:
    """Returns the results that count in summaries and in the exit status: all but those of library solutions.

    Results of library solutions alone do count: then they are what the run is about.
    """
    return [result for result in results if result.solution != LIBRARY] or list(results)


def over_library(result: Result) -> Baseline | None:
    """Returns the library solution as a baseline of a result; None on the CPU, and where it was not timed."""
    if result.timing is None or not result.times_are_comparable:
        return None
    return next((each for each in result.timing.baselines if each.name == LIBRARY), None)
