"""The list of problems and solutions, as text."""

from __future__ import annotations

from tabulate import tabulate

from inlinebench.records import selection
from inlinebench.records.catalog import FULL, Catalog
from inlinebench.records.natural_sort import natural
from inlinebench.records.options import Options


def listing(catalog: Catalog, options: Options) -> str:
    """The problems that the options select; of all problems, also the solutions whose problem does not exist.

    Raises UsageError if they select nothing.
    """
    chosen = selection.problems(catalog, options.names, options.levels, options.tags)
    everything = not (options.names or options.levels or options.tags)
    rows = [
        [problem.name, problem.level, " ".join(problem.tags), problem.error or " ".join((FULL, *problem.shapes)),
         " ".join(solution.name for solution in catalog.of(problem.name))]
        for problem in sorted(chosen, key=lambda each: (each.level or 0, natural(each.name)))
    ]
    text = tabulate(rows, headers=["problem", "level", "tags", "shapes", "solutions"])
    draws = [f"{problem.name}: may draw random numbers in forward ({', '.join(problem.draws)}); a solution must then "
             "draw the same ones from torch's generator" for problem in chosen if problem.draws]
    lost = [str(solution) for solution in catalog.solutions if everything and solution.problem not in catalog.problems]
    return "\n".join([text, *draws, *(f"{name}: there is no such problem" for name in lost)])
