"""What there is to evaluate, as text."""

from __future__ import annotations

from tabulate import tabulate

from inlinebench.records.catalog import FULL, Catalog
from inlinebench.records.natural_sort import natural


def listing(catalog: Catalog) -> str:
    """Problems with their levels, tags, shapes and solutions; then solutions whose problem doesn't exist."""
    rows = [
        [problem.name, problem.level, " ".join(problem.tags), problem.error or " ".join((FULL, *problem.shapes)),
         " ".join(solution.name for solution in catalog.of(problem.name))]
        for problem in sorted(catalog.problems.values(), key=lambda each: (each.level or 0, natural(each.name)))
    ]
    text = tabulate(rows, headers=["problem", "level", "tags", "shapes", "solutions"])
    lost = [str(solution) for solution in catalog.solutions if solution.problem not in catalog.problems]
    return "\n".join([text, *(f"{name}: there is no such problem" for name in lost)])
