"""The list of problems and solutions, as text."""

from __future__ import annotations

from collections.abc import Collection

from tabulate import tabulate

from inlinebench.records.catalog import FULL, Catalog
from inlinebench.records.natural_sort import natural


def listing(catalog: Catalog, levels: Collection[int] = (), tags: Collection[str] = ()) -> str:
    """Problems of the levels and tags (all, if none are given), then solutions whose problem does not exist."""
    chosen = [each for each in catalog.problems.values()
              if (not levels or each.level in levels) and (not tags or set(tags) & set(each.tags))]
    rows = [
        [problem.name, problem.level, " ".join(problem.tags), problem.error or " ".join((FULL, *problem.shapes)),
         " ".join(solution.name for solution in catalog.of(problem.name))]
        for problem in sorted(chosen, key=lambda each: (each.level or 0, natural(each.name)))
    ]
    text = tabulate(rows, headers=["problem", "level", "tags", "shapes", "solutions"])
    lost = [str(solution) for solution in catalog.solutions if solution.problem not in catalog.problems]
    return "\n".join([text, *(f"{name}: there is no such problem" for name in lost)])
