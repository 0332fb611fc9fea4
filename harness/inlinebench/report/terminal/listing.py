"""The list of problems and solutions, as text."""

from __future__ import annotations

from collections.abc import Iterable

from tabulate import tabulate

from inlinebench.catalog import DERIVED, FULL, Catalog, Problem, selection
from inlinebench.catalog.natural_sort import natural
from inlinebench.foreign import one_line
from inlinebench.options import Options


def listing(catalog: Catalog, options: Options) -> str:
    """The problems that the options select; of all problems, also the solutions whose problem does not exist.

    Raises UsageError if they select nothing.
    """
    chosen = selection.problems(catalog, options.names, options.levels, options.tags)
    everything = not (options.names or options.levels or options.tags)
    rows = [
        [one_line(problem.name), problem.level, _joined(problem.tags),
         one_line(problem.error) or _joined(_shapes(problem)),
         _joined(solution.name for solution in catalog.of(problem.name))]
        for problem in sorted(chosen, key=lambda each: (each.level or 0, natural(each.name)))
    ]
    text = tabulate(rows, headers=["problem", "level", "tags", "shapes", "solutions"])
    draws = [f"{one_line(problem.name)}: may draw random numbers in forward ({', '.join(problem.draws)}); a solution "
             "must then draw the same numbers from torch's generator" for problem in chosen if problem.draws]
    lost = [str(solution) for solution in catalog.solutions if everything and solution.problem not in catalog.problems]
    return "\n".join([text, *draws, *(f"{one_line(name)}: no such problem" for name in lost)])


def _joined(names: Iterable[str]) -> str:
    return " ".join(map(one_line, names))


def _shapes(problem: Problem) -> tuple[str, ...]:
    """Returns the names of the shapes, the constants of a derived shape that an evaluation tries first, and the number
    of workloads."""
    workloads = [f"({len(problem.workloads)} workloads)"] if problem.workloads else []
    if not problem.derived:
        return FULL, *problem.shapes, *workloads
    constants = ", ".join(f"{name}={value}" for name, value in problem.derived[0].items())
    return FULL, f"{DERIVED} ({constants})", *workloads
