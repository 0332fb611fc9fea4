"""Loads a problem file at a shape, and builds its reference model."""

from __future__ import annotations

import ast
import copy
import functools
import importlib.util
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from inlinebench.messages import CONSTRUCTION_SEED, ProblemAt
from inlinebench.records.catalog import FULL, assigned_names, describe_syntax_error
from inlinebench.wire.arithmetic import cast, seed_all
from inlinebench.wire.tree import flatten, unflatten

_PRECISION = "__precision__"
"""In a module: what `inputs` and `construct` cast to."""
NEEDED = ("Model", "get_inputs", "get_init_inputs")


class ProblemError(Exception):
    """The problem's file or its reference fails; the text names the file and says what to do."""


class PackageMissing(ProblemError):
    """The problem's file imports a package that isn't installed here."""


def load_at(problem: ProblemAt) -> types.ModuleType:
    """The module of a problem at a shape and a precision. Raises ProblemError."""
    module = load(problem.path, problem.shape, problem.constants)
    if problem.precision is not None:
        vars(module)[_PRECISION] = problem.precision
    return module


def load(path: Path, shape: str = FULL, constants: Mapping[str, Any] | None = None) -> types.ModuleType:
    """The problem's module, with the shape's constants (and these ones) in place of the file's.

    The file is evaluated anew: behind each assignment to a replaced constant stands one of the new value, so that
    everything computed from it follows. Raises ProblemError.
    """
    module = _execute(path, _tree_at(path, shape, constants or {}))
    missing = [name for name in NEEDED if not hasattr(module, name)]
    if missing:
        raise ProblemError(f"{path}: no {', '.join(missing)}; a problem file defines {', '.join(NEEDED)}")
    return module


def source_at(path: Path, shape: str, constants: Mapping[str, Any]) -> str:
    """The text of the problem file with the shape's constants in it. Raises ProblemError."""
    return ast.unparse(_tree_at(path, shape, constants))


def init_inputs(module: types.ModuleType) -> tuple[list[Any], dict[str, Any]]:
    """The constructor's positional and keyword arguments.

    Raises ProblemError if `get_init_inputs` raises or gives no list, tuple or `[args, kwargs]`.
    """
    seed_all(CONSTRUCTION_SEED)  # drawn arguments are the same for both models
    given = _call(module, "get_init_inputs")
    if not isinstance(given, list | tuple):
        raise ProblemError(f"{module.__file__}: get_init_inputs() gives {type(given).__name__}, not a list")
    # KernelBench level 4 writes [[args...], {kwargs...}].
    if len(given) == 2 and isinstance(given[0], list | tuple) and isinstance(given[1], dict):
        return list(given[0]), dict(given[1])
    return list(given), {}


def inputs(module: types.ModuleType) -> list[Any]:
    """The arguments of `forward`, as the file draws them, in the precision asked for. Raises ProblemError."""
    given = _call(module, "get_inputs")
    if not isinstance(given, list | tuple):
        raise ProblemError(
            f"{module.__file__}: get_inputs() gives {type(given).__name__}; it must be a list of forward's arguments"
        )
    if _PRECISION not in vars(module):
        return list(given)
    skeleton, leaves = flatten(list(given))
    return list(unflatten(skeleton, [cast(leaf, vars(module)[_PRECISION]) for leaf in leaves]))


def construct(module: types.ModuleType) -> torch.nn.Module:
    """The reference model on the CPU, under the public seed, in the precision asked for. Raises ProblemError."""
    arguments, named = init_inputs(module)
    seed_all(CONSTRUCTION_SEED)
    try:
        model = module.Model(*copy.deepcopy(arguments), **copy.deepcopy(named))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise ProblemError(f"{module.__file__}: Model(...) raises {describe(error)}") from error
    if not isinstance(model, torch.nn.Module):
        raise ProblemError(f"{module.__file__}: Model is no torch.nn.Module")
    return cast(model, vars(module)[_PRECISION]) if _PRECISION in vars(module) else model


def twin(module: types.ModuleType, model: torch.nn.Module) -> torch.nn.Module:
    """Another model like one that was constructed from the module, which shares nothing with it. Raises ProblemError.

    A copy, or where that fails or isn't enough, a model made anew by the same seed, on the CPU, with the same weights:
    some modules hold what can't be copied, and a copy of a function that closes over modules, such as a lambda, would
    go on using the original's.
    """
    if not any(_closes_over_something(value) for each in model.modules() for value in vars(each).values()):
        try:
            return copy.deepcopy(model)
        except (RuntimeError, TypeError):
            pass
    made = construct(module)
    known = dict([*model.named_parameters(), *model.named_buffers()])
    with torch.no_grad():
        for name, mine in (*made.named_parameters(), *made.named_buffers()):
            if name in known and not is_lazy(mine) and not is_lazy(known[name]):
                mine.copy_(known[name])
    return made


def _closes_over_something(value: object) -> bool:
    """Whether there is a function with variables of its surroundings, alone, in a partial call or in a collection."""
    if isinstance(value, types.FunctionType):
        return value.__closure__ is not None
    if isinstance(value, functools.partial):
        return _closes_over_something(value.func)
    if isinstance(value, list | tuple | set):
        return any(map(_closes_over_something, value))
    return isinstance(value, Mapping) and any(map(_closes_over_something, value.values()))


def describe(error: BaseException) -> str:
    """An exception in one line."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _tree_at(path: Path, shape: str, constants: Mapping[str, Any]) -> ast.Module:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    except (OSError, SyntaxError, ValueError) as error:
        raise ProblemError(describe_syntax_error(path, error)) from error
    replaced = dict(constants)
    if shape != FULL:
        replaced |= _shape_constants(path, tree, shape)
    return _replace(path, tree, replaced)


def _shape_constants(path: Path, tree: ast.Module, shape: str) -> dict[str, Any]:
    shapes = getattr(_execute(path, tree), "SHAPES", None)
    if not isinstance(shapes, Mapping) or shape not in shapes:
        known = ", ".join([FULL, *shapes]) if isinstance(shapes, Mapping) else FULL
        raise ProblemError(f"{path}: no shape {shape!r}; there is {known}")
    return dict(shapes[shape])


def _replace(path: Path, tree: ast.Module, constants: Mapping[str, Any]) -> ast.Module:
    body: list[ast.stmt] = []
    found = set()
    for statement in tree.body:
        body.append(statement)
        for name in dict.fromkeys(assigned_names(statement)):
            if name in constants:
                found.add(name)
                value = ast.parse(repr(constants[name]), mode="eval").body
                assignment = ast.Assign([ast.Name(name, ast.Store())], value)
                body.append(ast.fix_missing_locations(ast.copy_location(assignment, statement)))
    if missing := sorted(set(constants) - found):
        raise ProblemError(f"{path}: no constant {', '.join(missing)} to be replaced at module level")
    return ast.Module(body, tree.type_ignores)


def _execute(path: Path, tree: ast.Module) -> types.ModuleType:
    module = types.ModuleType(f"inlinebench_problem_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # pickle, dataclasses and inspect look a class's module up
    try:
        exec(compile(tree, str(path), "exec"), module.__dict__)
    except torch.OutOfMemoryError:
        raise
    except (Exception, SystemExit) as error:
        text = f"{path}: loading it raises {describe(error)}"
        if isinstance(error, ModuleNotFoundError) and (package := _missing_package(error)):
            raise PackageMissing(f"{text}; install the package {package} to evaluate it") from error
        raise ProblemError(text) from error
    return module


def _missing_package(error: ModuleNotFoundError) -> str | None:
    """The package that can't be found at all; None where only a part of one is missing."""
    package = (error.name or "").partition(".")[0]
    return package if package and importlib.util.find_spec(package) is None else None


def _call(module: types.ModuleType, function: str) -> Any:
    try:
        return getattr(module, function)()
    except torch.OutOfMemoryError:
        raise
    except (Exception, SystemExit) as error:
        raise ProblemError(f"{module.__file__}: {function}() raises {describe(error)}") from error
