"""Which problems, solutions and shapes exist. Reads files as text and never runs one.

Folders are laid out as ours are, or as KernelBench's: `level1/12_Matmul.py` below the folder of problems, and
`level_1_problem_12_sample_0_kernel.py` in that of solutions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from inlinebench.records.errors import UsageError
from inlinebench.records.natural_sort import natural

FULL = "full"
REFERENCE = "@reference"
ABOUT = ("SHAPES", "LEVEL", "TAGS")
"""What a problem file says of itself: no constant that a shape could replace."""
_LEVEL_FOLDER = re.compile(r"level_?([0-9]+)")
_NUMBER = re.compile(r"([0-9]+)_")
_SAMPLE = re.compile(r"level_([0-9]+)_problem_([0-9]+)_sample_([0-9]+)_kernel\.py")


@dataclass(frozen=True)
class Problem:
    """A problem file: its declared shapes (without `full`), its module-level constants, by name, and what it says of
    itself: `LEVEL` (1: a single operator, 2: a fusion, 3: a block; else that of a folder `level1`) and `TAGS`.

    `error` says why the text can't be read as Python; such a problem has neither shapes nor constants.
    """

    name: str
    path: Path
    shapes: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    level: int | None = None
    tags: tuple[str, ...] = ()
    error: str = ""

    @property
    def number(self) -> int | None:
        """That of `12_Matmul`: 12."""
        match = _NUMBER.match(self.name)
        return int(match[1]) if match else None


@dataclass(frozen=True)
class Solution:
    """A solution file, or the problem's own reference (`name` is `@reference`, `path` the problem's). `error` says why
    what is in the file is no solution, where that is known before it is tried."""

    problem: str
    name: str
    path: Path
    error: str = ""

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

    Files whose names begin with `_` are helpers, not problems. A solution whose problem doesn't exist is kept: it is
    reported when it is asked for or when all are. Raises UsageError if the folder of problems doesn't exist, or if two
    problems have one name.
    """
    if not problems.is_dir():
        raise UsageError(f"{problems}: no such folder; --problems names the folder of problem files")
    found: dict[str, Problem] = {}
    for path in _in_order(problems.glob("*.py"), *(folder.glob("*.py") for folder in _level_folders(problems))):
        if path.stem in found:
            raise UsageError(f"{found[path.stem].path} and {path} have one name; --problems {path.parent} has only one "
                             "of them")
        found[path.stem] = read_problem(path)
    own = [Solution(path.parent.name, path.stem, path) for path in _in_order(solutions.glob("*/*.py"))]
    return Catalog(found, (*own, *_samples(solutions, found.values())))


def _level_folders(problems: Path) -> list[Path]:
    return [folder for folder in problems.iterdir() if folder.is_dir() and _LEVEL_FOLDER.fullmatch(folder.name)]


def _in_order(*files: Iterable[Path]) -> list[Path]:
    found = [path for paths in files for path in paths if not path.name.startswith("_")]
    return sorted(found, key=lambda path: natural(str(path)))


def _samples(folder: Path, problems: Collection[Problem]) -> list[Solution]:
    """KernelBench's samples of the levels that there are problems of, as solutions `sample_S`."""
    names = {(problem.level, problem.number): problem.name for problem in problems}
    levels = {problem.level for problem in problems}
    found = []
    for path in _in_order(folder.glob("level_*_kernel.py")):
        match = _SAMPLE.fullmatch(path.name)
        if match and int(match[1]) in levels:
            problem = names.get((int(match[1]), int(match[2])), f"level_{match[1]}_problem_{match[2]}")
            found.append(Solution(problem, f"sample_{match[3]}", path))
    return found


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
        path.stem, path, shapes, constants, level if isinstance(level, int) else _level_of_folder(path),
        tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, tuple | list) else (),
    )


def _level_of_folder(path: Path) -> int | None:
    match = _LEVEL_FOLDER.fullmatch(path.resolve().parent.name)
    return int(match[1]) if match else None


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
