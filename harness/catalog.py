"""Which problems, solutions and shapes exist. Reads files as text and never runs one."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from harness.errors import UsageError

FULL = "full"
REFERENCE = "@reference"
ABOUT = ("SHAPES", "LEVEL", "TAGS")
"""What a problem file says of itself: no constant that a shape could replace."""


@dataclass(frozen=True)
class Problem:
    """A problem file: its declared shapes (without `full`), its module-level constants, by name, and what it says of
    itself: `LEVEL` (1: a single operator, 2: a fusion, 3: a block) and `TAGS`.

    `error` says why the text can't be read as Python; such a problem has neither shapes nor constants.
    """

    name: str
    path: Path
    shapes: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    level: int | None = None
    tags: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Solution:
    """A solution file, or the problem's own reference (`name` is `@reference`, `path` the problem's)."""

    problem: str
    name: str
    path: Path

    def __str__(self) -> str:
        return f"{self.problem}/{self.name}"


@dataclass(frozen=True)
class Catalog:
    """All problems and all solutions, by name, in order."""

    problems: dict[str, Problem]
    solutions: tuple[Solution, ...]

    def of(self, problem: str) -> tuple[Solution, ...]:
        return tuple(solution for solution in self.solutions if solution.problem == problem)


def read(problems: Path, solutions: Path) -> Catalog:
    """The catalog of a folder of problem files and a folder of `<problem>/<name>.py` files.

    Raises UsageError if the folder of problems doesn't exist. Files whose names begin with `_` are helpers, not
    problems. A solution whose problem doesn't exist is kept: it is reported when it is asked for or when all are.
    """
    if not problems.is_dir():
        raise UsageError(f"{problems}: no such folder; --problems names the folder of problem files")
    found = {path.stem: read_problem(path) for path in sorted(problems.glob("*.py")) if not path.name.startswith("_")}
    files = sorted(path for path in solutions.glob("*/*.py") if not path.name.startswith("_"))
    return Catalog(found, tuple(Solution(path.parent.name, path.stem, path) for path in files))


def read_problem(path: Path) -> Problem:
    """What the text of a problem file declares; `error` is set where it is no Python."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    except (OSError, SyntaxError, ValueError) as error:
        return Problem(path.stem, path, error=describe_syntax_error(path, error))
    assigned = {name: node for node in tree.body for name in assigned_names(node)}
    shapes: tuple[str, ...] = ()
    declared = getattr(assigned.get("SHAPES"), "value", None)
    if isinstance(declared, ast.Dict):
        keys = (key.value for key in declared.keys if isinstance(key, ast.Constant))
        shapes = tuple(key for key in keys if isinstance(key, str))
    constants = tuple(name for name in assigned if name not in ABOUT)
    level, tags = _literal(assigned.get("LEVEL")), _literal(assigned.get("TAGS"))
    return Problem(
        path.stem, path, shapes, constants, level if isinstance(level, int) else None,
        tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, tuple | list) else (),
    )


def _literal(statement: ast.stmt | None) -> object:
    """What an assignment binds, if that stands there as it is."""
    try:
        return ast.literal_eval(getattr(statement, "value", None) or ast.Constant(None))
    except ValueError:
        return None


def assigned_names(statement: ast.stmt) -> tuple[str, ...]:
    """The names that a module-level assignment binds (`A = 1`, `A, B = 1, 2`, `A: int = 1`); none for the rest."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    else:
        return ()
    return tuple(node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))


def describe_syntax_error(path: Path, error: Exception) -> str:
    """One line for a file that can't be read or parsed."""
    if isinstance(error, SyntaxError):
        return f"{path}, line {error.lineno}: {error.msg}"
    return f"{path}: {error}"


def select(catalog: Catalog, names: Sequence[str]) -> tuple[tuple[Problem | None, Solution], ...]:
    """The evaluations that names ask for: all of them without a name, each once, in the catalog's order.

    A name is a problem, `problem/solution`, a glob of either, or the path of a problem file. A solution without its
    problem comes with None. Raises UsageError for a name that means nothing, with the nearest names.
    """
    if not names:
        return tuple((catalog.problems.get(solution.problem), solution) for solution in catalog.solutions)
    chosen: dict[str, tuple[Problem | None, Solution]] = {}
    for name in names:
        for problem, solution in _matches(catalog, name):
            chosen[str(solution)] = (problem, solution)
    order = {str(solution): index for index, solution in enumerate(catalog.solutions)}
    return tuple(chosen[key] for key in sorted(chosen, key=lambda key: (order.get(key, len(order)), key)))


def find_problem(catalog: Catalog, name: str) -> Problem:
    """The one problem that a name or a path means. Raises UsageError if there is none."""
    path = Path(name)
    if path.suffix == ".py" and path.is_file():
        return read_problem(path)
    if name not in catalog.problems:
        raise UsageError(_unknown("problem", name, catalog.problems))
    return catalog.problems[name]


def _matches(catalog: Catalog, name: str) -> list[tuple[Problem | None, Solution]]:
    path = Path(name)
    if path.suffix == ".py" and path.is_file():
        problem = read_problem(path)
        solutions = catalog.of(problem.name)
        if not solutions:
            raise UsageError(f"{name}: no solution in the folder {problem.name}/ of the solutions; "
                             "--solution FILE names one anywhere")
        return [(problem, solution) for solution in solutions]
    wanted, slash, solution_name = name.partition("/")
    if slash and solution_name == REFERENCE:
        problems = [problem for problem in catalog.problems.values() if fnmatchcase(problem.name, wanted)]
        if not problems:
            raise UsageError(_unknown("problem", wanted, catalog.problems))
        return [(problem, Solution(problem.name, REFERENCE, problem.path)) for problem in problems]
    pattern = name if slash else f"{name}/*"
    found = [solution for solution in catalog.solutions if fnmatchcase(str(solution), pattern)]
    if not found:
        raise UsageError(_nothing_found(catalog, wanted, name))
    return [(catalog.problems.get(solution.problem), solution) for solution in found]


def _nothing_found(catalog: Catalog, problem: str, name: str) -> str:
    known = set(catalog.problems) | {solution.problem for solution in catalog.solutions}
    if not any(fnmatchcase(candidate, problem) for candidate in known):
        return _unknown("problem", problem, known)
    solutions = [str(solution) for solution in catalog.solutions]
    if "/" in name:
        return _unknown("solution", name, [*solutions, *(f"{each}/{REFERENCE}" for each in catalog.problems)])
    return f"problem {name!r} has no solution yet; --solution FILE names one anywhere, {name}/{REFERENCE} tries its own"


def _unknown(kind: str, name: str, known: Sequence[str] | dict[str, Problem] | set[str]) -> str:
    nearest = difflib.get_close_matches(name, list(known), n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(nearest)}?" if nearest else "--list shows what there is"
    return f"no {kind} {name!r}; {hint}"
