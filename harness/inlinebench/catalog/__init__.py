"""Finds problems, solutions and shapes. Parses files as text and never executes them.

Folders have this project's layout, or KernelBench's: `level1/12_Matmul.py` in the folder of problems, and
`level_1_problem_12_sample_0_kernel.py` in the folder of solutions. Problems may be definitions of FlashInfer-Trace or
SOL-ExecBench as well (`inlinebench.catalog.traces`).
"""

from __future__ import annotations

import ast
import os
import re
import stat
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from inlinebench.catalog.natural_sort import natural
from inlinebench.catalog.random_draws import random_draws
from inlinebench.catalog.traces import read_trace
from inlinebench.catalog.traces.fields import DefinitionError
from inlinebench.catalog.traces.layout import definitions, is_definition, name_of
from inlinebench.catalog.workloads import DeclaredWorkload, read_workloads
from inlinebench.errors import UsageError
from inlinebench.parsing import parse
from inlinebench.problem.shapes.derive import Derived, derive
from inlinebench.problem.shapes.ranges import Range, derive_ranges, read_ranges
from inlinebench.results.result import WITH_BACKWARD

FULL = "full"
DERIVED = "derived"
"""The name of the small shape of a problem that declares no shapes."""
REFERENCE = "@reference"
ABOUT = ("SHAPES", "WORKLOADS", "RANGES", "LEVEL", "TAGS", "BACKWARD")
"""Names of metadata in a problem file, which are not constants that a shape can replace."""
MOST_KEPT = 2048
"""How many texts of problem files are not parsed again."""
_LEVEL_FOLDER = re.compile(r"level_?([0-9]+)")
_NUMBER = re.compile(r"([0-9]+)_")
_SAMPLES = "level_*_kernel.py"
_SAMPLE = re.compile(r"level_([0-9]+)_problem_([0-9]+)_sample_([0-9]+)_kernel\.py")


@dataclass(frozen=True)
class Problem:
    """A problem file, as its text declares it."""

    name: str
    """The file's name without `.py`, or the name of a definition."""
    path: Path
    shapes: tuple[str, ...] = ()
    """Names of the declared shapes, without `full`."""
    constants: tuple[str, ...] = ()
    """Names of the module-level constants."""
    workloads: tuple[DeclaredWorkload, ...] = ()
    """`WORKLOADS`, in order."""
    derived: tuple[Mapping[str, Any], ...] = ()
    """Constants of derived shapes, to be tried in turn; see `inlinebench.problem.shapes.derive`. Empty for a problem
    that declares shapes, or is small."""
    confirming: tuple[Mapping[str, Any], ...] = ()
    """Constants of shapes at which a failure at a derived shape is tried again."""
    ranges: Mapping[str, Range] = field(default_factory=dict)
    """`RANGES`, or else the ranges that are derived from the text. Empty without a constant whose value may change."""
    level: int | None = None
    """`LEVEL` (1: a single operator, 2: a fusion, 3: a block), or else the number of the folder `level1`."""
    tags: tuple[str, ...] = ()
    """`TAGS`."""
    backward: bool = False
    """`BACKWARD`: whether a call is a forward and a backward."""
    draws: tuple[str, ...] = ()
    """Names of what may draw random numbers in `forward`; see `inlinebench.catalog.random_draws`."""
    error: str = ""
    """Why the text cannot be parsed as Python. Such a problem has neither shapes nor constants."""

    @property
    def number(self) -> int | None:
        """The number at the start of the name: 12 for `12_Matmul`."""
        match = _NUMBER.match(self.name)
        return int(match[1]) if match else None


@dataclass(frozen=True)
class Solution:
    """A solution file, or the problem's own reference."""

    problem: str
    """Name of the problem."""
    name: str
    """Name of the solution; `@reference` for the reference."""
    path: Path
    """The solution file; the problem file for the reference."""
    error: str = ""
    """Why the file is not a solution, if that is known without an evaluation."""
    alone: bool = False
    """Whether the files next to it do not belong to it. This is so for KernelBench's samples, which share a folder."""
    level: int | None = None
    """The level of a sample of KernelBench's, whose problem may not exist."""

    def __str__(self) -> str:
        return f"{self.problem}/{self.name}"


@dataclass(frozen=True)
class Catalog:
    """All problems and solutions of a run's folders."""

    problems: dict[str, Problem]
    """Problems by name, in natural order of their paths."""
    solutions: tuple[Solution, ...]
    """Solutions in natural order of their paths, KernelBench's samples last."""

    def of(self, problem: str) -> tuple[Solution, ...]:
        """Returns the solutions of a problem."""
        return tuple(solution for solution in self.solutions if solution.problem == problem)


def read(problems: Path, solutions: Path) -> Catalog:
    """Returns the catalog of a folder of problem files and a folder of `<problem>/<name>.py` files.

    Files whose names begin with `_` are helpers and are skipped. A solution whose problem does not exist is kept, so
    that it is reported when it is selected. Raises UsageError if the folder of problems does not exist, or if two
    problems have the same name.
    """
    if not problems.is_dir():
        raise UsageError(f"{problems}: no such folder; --problems must name the folder of problem files")
    found: dict[str, Problem] = {}
    for path in _in_order(problems.glob("*.py"), *(folder.glob("*.py") for folder in _level_folders(problems)),
                          definitions(problems)):
        name = name_of(path)
        if name in found:
            raise UsageError(f"{found[name].path} and {path} have the same name; use --problems {path.parent} to "
                             "read only one of them")
        found[name] = read_problem(path)
    own = [_solution(path.parent.name, path.stem, path) for path in _in_order(solutions.glob("*/*.py"))]
    return Catalog(found, (*own, *_samples(solutions, found.values())))


def _level_folders(problems: Path) -> list[Path]:
    return [folder for folder in problems.iterdir() if folder.is_dir() and _LEVEL_FOLDER.fullmatch(folder.name)]


def _in_order(*files: Iterable[Path]) -> list[Path]:
    found = [path for paths in files for path in paths if not path.name.startswith("_")]
    return sorted(found, key=lambda path: natural(str(path)))


def _samples(folder: Path, problems: Collection[Problem]) -> list[Solution]:
    """Returns KernelBench's samples for the levels of these problems, as solutions named `sample_S`."""
    names = {(problem.level, problem.number): problem.name for problem in problems}
    levels = {problem.level for problem in problems}
    found = []
    for path in _in_order(folder.glob(_SAMPLES)):
        match = _SAMPLE.fullmatch(path.name)
        if match and int(match[1]) in levels:
            problem = names.get((int(match[1]), int(match[2])), f"level_{match[1]}_problem_{match[2]}")
            found.append(replace(_solution(problem, f"sample_{match[3]}", path), alone=True, level=int(match[1])))
    return found


def has_samples(folder: Path) -> bool:
    """Whether a folder of solutions has KernelBench's layout."""
    return any(_SAMPLE.fullmatch(path.name) for path in folder.glob(_SAMPLES))


def _solution(problem: str, name: str, path: Path) -> Solution:
    if name == REFERENCE:
        return Solution(problem, f"{name}.py", path, f"{path}: {REFERENCE} is the problem's reference; rename the file")
    return Solution(problem, name, path, _file_error(path))


def _file_error(path: Path) -> str:
    """Returns why a file cannot be used, without reading it. Empty if no reason is known."""
    try:
        path.name.encode()
        return "" if stat.S_ISREG(path.stat().st_mode) else f"{path}: not a regular file"
    except UnicodeEncodeError:  # Python has surrogates for bytes that are not UTF-8
        return f"{os.fsencode(path.name)!r}: the name is not UTF-8; rename the file"
    except OSError as failure:  # a broken link, or links in a circle
        return f"{path}: {failure.strerror}"


def read_problem(path: Path) -> Problem:
    """Returns the declarations of a problem file. `error` is set if the file cannot be read or parsed."""
    name = name_of(path)
    if unusable := _file_error(path):
        return Problem(name, path, error=unusable)
    try:
        text = source(path)
    except (OSError, ValueError) as error:
        return Problem(name, path, error=describe_syntax_error(path, error))
    return _read_problem(path, text)


@lru_cache(MOST_KEPT)
def _read_problem(path: Path, text: bytes) -> Problem:
    """Returns the declarations of a problem file with this text. A service reads all problems for each evaluation."""
    name = name_of(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python would print a line of the file, such as one with an unknown escape
            tree = parse(text, filename=str(path))  # as Python reads it
    except (SyntaxError, ValueError) as error:
        return Problem(name, path, error=describe_syntax_error(path, error))
    assigned = {name: node for node in tree.body for name in assigned_names(node)}
    constants = tuple(name for name in assigned if name not in ABOUT)
    try:
        shapes = _shapes(getattr(assigned.get("SHAPES"), "value", None))
        declared = getattr(assigned.get("WORKLOADS"), "value", None)
        workloads = read_workloads(declared, constants, (FULL, DERIVED, *shapes))
        varied = getattr(assigned.get("RANGES"), "value", None)
        ranges = derive_ranges(tree) if varied is None else read_ranges(varied, constants)
    except ValueError as error:
        return Problem(name, path, error=f"{path}, {error}")
    level, tags = _literal(assigned.get("LEVEL")), _literal(assigned.get("TAGS"))
    small = Derived() if shapes else derive(tree)
    return Problem(
        name=name, path=path, shapes=shapes, workloads=workloads, constants=constants,
        derived=small.shapes, confirming=small.confirming, ranges=ranges,
        backward=_literal(assigned.get("BACKWARD")) is True,
        level=level if isinstance(level, int) else _level_of_folder(path),
        tags=tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, tuple | list) else (),
        draws=random_draws(tree),
    )


def source(path: Path) -> bytes:
    """Returns the Python source of a problem: its file, or the text that `inlinebench.catalog.traces` writes for a
    definition. Raises OSError, and ValueError if a definition or its workloads cannot be read."""
    return read_trace(path).encode() if is_definition(path) else path.read_bytes()


def _shapes(declared: ast.expr | None) -> tuple[str, ...]:
    """Returns the names of the shapes that a file declares. Raises ValueError if they cannot be known from its text."""
    if declared is None:
        return ()
    keys = declared.keys if isinstance(declared, ast.Dict) else [None]
    names = [key.value if isinstance(key, ast.Constant) else None for key in keys]
    if all(isinstance(name, str) for name in names):
        if doubles := [str(name) for name, count in Counter(names).items() if count > 1]:
            raise ValueError(f"line {declared.lineno}: SHAPES has two shapes of the name {doubles[0]!r}")
        if reserved := [str(name) for name in names if str(name).endswith(WITH_BACKWARD)]:
            raise ValueError(f"line {declared.lineno}: SHAPES has a shape {reserved[0]!r}; results of --backward have "
                             "such names, so rename it")
        return tuple(map(str, names))
    raise ValueError(f"line {declared.lineno}: SHAPES must be a dictionary of the constants of each shape by its name, "
                     'such as SHAPES = {"small": {"N": 16}}')


def _level_of_folder(path: Path) -> int | None:
    match = _LEVEL_FOLDER.fullmatch(path.resolve().parent.name)
    return int(match[1]) if match else None


def _literal(statement: ast.stmt | None) -> object:
    """Returns the value of an assignment if it is a literal, else None."""
    try:
        return ast.literal_eval(getattr(statement, "value", None) or ast.Constant(None))
    except ValueError:
        return None


def assigned_names(statement: ast.stmt) -> tuple[str, ...]:
    """Returns the names that an assignment binds (`A = 1`, `A, B = 1, 2`, `A: int = 1`); none for other statements."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    else:
        return ()
    return tuple(node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))


def describe_syntax_error(path: Path, error: Exception) -> str:
    """Describes in one line why a file cannot be read or parsed."""
    if isinstance(error, DefinitionError):
        return str(error)
    if isinstance(error, SyntaxError):
        return f"{path}{'' if error.lineno is None else f', line {error.lineno}'}: {error.msg}"
    return f"{path}: {error}"
