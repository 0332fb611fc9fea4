"""Resolves the names on a command line: problems, solutions, globs, numbers and ranges of numbers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from inlinebench.catalog import REFERENCE, Catalog, Problem, Solution, read_problem
from inlinebench.catalog.natural_sort import natural
from inlinebench.catalog.traces.layout import PROBLEM_SUFFIXES
from inlinebench.errors import UsageError
from inlinebench.results.library import LIBRARY

_NUMBERS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def select(catalog: Catalog, names: Sequence[str]) -> tuple[tuple[Problem | None, Solution], ...]:
    """Returns the problems and solutions that names select, each pair once, in the catalog's order.

    A name is a problem, `problem/solution`, a glob of either, or the path of a problem file. A problem can also be
    given by its number (`12` for `12_Matmul`) or a range of numbers (`12-20`). Without names everything is selected,
    except library solutions: only `problem/library` selects these, where `problem` may be a glob. The problem is None
    for a solution whose problem does not exist. Raises UsageError, with the nearest names, for a name that matches
    nothing.
    """
    if not names:
        return tuple((catalog.problems.get(each.problem), each) for each in catalog.solutions if each.name != LIBRARY)
    chosen: dict[str, tuple[Problem | None, Solution]] = {}
    for name in names:
        for problem, solution in _matches(catalog, name):
            chosen[str(solution)] = (problem, solution)
    order = {str(solution): index for index, solution in enumerate(catalog.solutions)}
    return tuple(chosen[key] for key in sorted(chosen, key=lambda key: (order.get(key, len(order)), key)))


def problems(
    catalog: Catalog, names: Sequence[str], levels: Collection[int], tags: Collection[str]
) -> tuple[Problem, ...]:
    """Returns the problems that names select, of one of the levels and with one of the tags, if any are given.

    Raises UsageError for a name that matches no problem, and if there is no problem of these levels and tags.
    """
    chosen = {problem.name: problem for name in names for problem in _problems(catalog, name)} or catalog.problems
    found = tuple(problem for problem in chosen.values() if is_kind(problem, levels, tags))
    if not found and (levels or tags):
        raise UsageError(no_such_kind(catalog, levels, tags))
    return found


def _problems(catalog: Catalog, name: str) -> list[Problem]:
    path = Path(name)
    if path.suffix in PROBLEM_SUFFIXES and path.is_file():
        return [read_problem(path)]
    wanted = name.partition("/")[0]
    named = _named(catalog, wanted)
    found = [problem for problem in catalog.problems.values() if problem.name in named]
    if not found:
        raise UsageError(_unknown("problem", name if path.suffix in PROBLEM_SUFFIXES else wanted, catalog.problems))
    return found


def is_kind(problem: Problem, levels: Collection[int], tags: Collection[str]) -> bool:
    """Whether a problem has one of these levels and one of these tags, if any are given."""
    return (not levels or problem.level in levels) and (not tags or not set(tags).isdisjoint(problem.tags))


def no_such_kind(catalog: Catalog, levels: Collection[int], tags: Collection[str]) -> str:
    """Says that there is no problem of these levels and tags, and which ones there are."""
    asked = [f"level {level}" for level in levels] + [f"tag {tag}" for tag in tags]
    known = sorted({problem.level for problem in catalog.problems.values() if problem.level is not None})
    named = sorted({tag for problem in catalog.problems.values() for tag in problem.tags})
    return (f"no problem of {' and '.join(asked)}; there are levels {', '.join(map(str, known)) or 'none'} and tags "
            f"{', '.join(named) or 'none'}")


def find_problem(catalog: Catalog, name: str) -> Problem:
    """Returns the problem with this name, number or path. Raises UsageError if there is not exactly one."""
    path = Path(name)
    if path.suffix in PROBLEM_SUFFIXES and path.is_file():
        return read_problem(path)
    named = [each for each in _named(catalog, name) if each in catalog.problems] if _NUMBERS.fullmatch(name) else [name]
    if len(named) > 1:
        raise UsageError(f"{name} is the number of {' and of '.join(sorted(named, key=natural))}; use a name instead")
    if not named or named[0] not in catalog.problems:
        raise UsageError(_unknown("problem", name, catalog.problems))
    return catalog.problems[named[0]]


def _matches(catalog: Catalog, name: str) -> list[tuple[Problem | None, Solution]]:
    path = Path(name)
    if path.suffix in PROBLEM_SUFFIXES and path.is_file():
        problem = read_problem(path)
        solutions = [solution for solution in catalog.of(problem.name) if solution.name != LIBRARY]
        if not solutions:
            raise UsageError(f"{name}: no solution in the folder {problem.name}/ of the solutions; add one there, or "
                             "use --solution FILE")
        return [(problem, solution) for solution in solutions]
    wanted, slash, solution_name = name.partition("/")
    named = _named(catalog, wanted)
    if slash and solution_name == REFERENCE:
        problems = [problem for problem in catalog.problems.values() if problem.name in named]
        if not problems:
            raise UsageError(_unknown("problem", wanted, catalog.problems))
        return [(problem, Solution(problem.name, REFERENCE, problem.path)) for problem in problems]
    found = [solution for solution in catalog.solutions
             if solution.problem in named and fnmatchcase(solution.name, solution_name if slash else "*")
             and (solution.name != LIBRARY or solution_name == LIBRARY)]
    if not found:
        raise UsageError(_nothing_found(catalog, wanted, name, named))
    return [(catalog.problems.get(solution.problem), solution) for solution in found]


def _named(catalog: Catalog, wanted: str) -> set[str]:
    """Returns the problems, with or without a file, that match a name, a glob, a number or a range of numbers."""
    known = set(catalog.problems) | {solution.problem for solution in catalog.solutions}
    numbers = _NUMBERS.fullmatch(wanted)
    if wanted in known or not numbers:
        return {name for name in known if fnmatchcase(name, wanted)}
    first, last = int(numbers[1]), int(numbers[2] or numbers[1])
    return {problem.name for problem in catalog.problems.values()
            if problem.number is not None and first <= problem.number <= last}


def _nothing_found(catalog: Catalog, problem: str, name: str, named: Collection[str]) -> str:
    if not named:
        known = set(catalog.problems) | {each.problem for each in catalog.solutions}
        return _unknown("problem", name if name.endswith(PROBLEM_SUFFIXES) else problem, known)
    solutions = [str(solution) for solution in catalog.solutions]
    if "/" in name:
        return _unknown("solution", name, [*solutions, *(f"{each}/{REFERENCE}" for each in catalog.problems)])
    return (f"problem {name!r} has no solution yet; use --solution FILE, or {name}/{REFERENCE} to evaluate its own "
            "reference")


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name, list(known), n=3, cutoff=0.4)
    hint = "there is no such file" if name.endswith(PROBLEM_SUFFIXES) else "`inlinebench list` shows all names"
    if nearest:
        hint = f"did you mean {' or '.join(nearest)}?"
    return f"no {kind} {name!r}; {hint}"
