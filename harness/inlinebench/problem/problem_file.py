"""Loads a problem file at a shape, and constructs its reference model."""

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

from inlinebench.catalog import FULL, assigned_names, describe_syntax_error, source
from inlinebench.catalog.traces.layout import name_of
from inlinebench.messages import CONSTRUCTION_SEED, ProblemAt
from inlinebench.problem import own_code
from inlinebench.problem.recorded import RecordedInputError, RecordedInputMissing
from inlinebench.problem.shapes import literals
from inlinebench.wire.arithmetic import cast, seed_all
from inlinebench.wire.backward import ForwardBackward, GradientForm
from inlinebench.wire.tree import flatten, unflatten

_PRECISION = "__precision__"
"""The name in a problem's module that holds the precision that `inputs` and `construct` cast to."""
_GRADIENTS = "__gradients__"
"""The name in a problem's module that holds what a call differentiates, if it has a backward."""
ZOO = ("einops",)
"""The packages of the extra `zoo`, which problems of KernelBench import."""
NEEDED = ("Model", "get_inputs")
"""The names that a problem file must define."""


class ProblemError(Exception):
    """The problem file or its reference fails. The message names the file and says what to do."""


class NotHere(ProblemError):
    """The problem needs something that is not on this machine, so it is skipped."""


class PackageMissing(NotHere):
    """The problem file imports a package that is not installed."""


def load_at(problem: ProblemAt) -> types.ModuleType:
    """Loads a problem file at a shape and a precision, for calls with or without a backward. Raises ProblemError."""
    module = load(problem.path, problem.shape, problem.constants)
    if problem.precision is not None:
        vars(module)[_PRECISION] = problem.precision
    if problem.gradients is not None:
        vars(module)[_GRADIENTS] = problem.gradients
    return module


def gradients(module: types.ModuleType) -> GradientForm | None:
    """Returns what a call of a loaded problem differentiates, or None if it has no backward."""
    found = vars(module).get(_GRADIENTS)
    assert found is None or isinstance(found, GradientForm)
    return found


def load(path: Path, shape: str = FULL, constants: Mapping[str, Any] | None = None) -> types.ModuleType:
    """Loads a problem file with the constants of a shape, and with `constants`, in place of the file's own.

    After each assignment to a replaced constant, an assignment of the new value is inserted. Then the file is executed,
    so everything that is computed from the constant uses the new value. A constant that is named by a number replaces
    that number in `get_inputs` and `get_init_inputs` (`inlinebench.problem.shapes.literals`). Raises ProblemError.
    """
    module = _execute(path, _tree_at(path, shape, constants or {}))
    missing = [name for name in NEEDED if not hasattr(module, name)]
    if missing:
        raise ProblemError(f"{path}: missing {', '.join(missing)}; a problem file must define {', '.join(NEEDED)}")
    return module


def source_at(path: Path, shape: str, constants: Mapping[str, Any]) -> str:
    """Returns the text of a problem file with the constants of a shape in place. Raises ProblemError."""
    return ast.unparse(_tree_at(path, shape, constants))


def init_inputs(module: types.ModuleType) -> tuple[list[Any], dict[str, Any]]:
    """Returns the positional and keyword arguments for the constructors of `Model` and `ModelNew`.

    `get_init_inputs` returns a list or tuple of positional arguments, or `[args, kwargs]`. There are none without it.
    Raises ProblemError if it raises or returns something else.
    """
    if not hasattr(module, "get_init_inputs"):
        return [], {}
    seed_all(CONSTRUCTION_SEED)  # so that random arguments are the same for both models
    given = _call(module, "get_init_inputs")
    if not isinstance(given, list | tuple):
        raise ProblemError(f"{module.__file__}: get_init_inputs() returns {type(given).__name__}; it must return a "
                           "list of constructor arguments")
    # KernelBench's level 4 uses [[args...], {kwargs...}].
    if len(given) == 2 and isinstance(given[0], list | tuple) and isinstance(given[1], dict):
        return list(given[0]), dict(given[1])
    return list(given), {}


def inputs(module: types.ModuleType) -> list[Any]:
    """Returns the arguments of a call: those of `forward` from `get_inputs`, cast to the module's precision, and the
    gradients of the outputs if it has a backward. Raises ProblemError."""
    given = _call(module, "get_inputs")
    if not isinstance(given, list | tuple):
        raise ProblemError(
            f"{module.__file__}: get_inputs() returns {type(given).__name__}; it must return a list of forward's "
            "arguments"
        )
    if _PRECISION in vars(module):
        skeleton, leaves = flatten(list(given))
        given = unflatten(skeleton, [cast(leaf, vars(module)[_PRECISION]) for leaf in leaves])
    form = gradients(module)
    return list(given) if form is None else [*given, form.draw()]


def construct(module: types.ModuleType) -> torch.nn.Module:
    """Constructs the reference model on the CPU under the public seed, cast to the module's precision.

    Initializes lazy parameters. Its `forward` is followed by a backward if calls have one. Raises ProblemError.
    """
    arguments, named = init_inputs(module)
    seed_all(CONSTRUCTION_SEED)
    try:
        with own_code.step(own_code.CONSTRUCTOR):
            model = module.Model(*copy.deepcopy(arguments), **copy.deepcopy(named))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise ProblemError(f"{module.__file__}: Model(...) raises {describe(error)}") from error
    if not isinstance(model, torch.nn.Module):
        raise ProblemError(f"{module.__file__}: Model is not a torch.nn.Module; derive it from torch.nn.Module")
    if _lazy_names(model):
        _materialize(module, model)
    if _PRECISION in vars(module):
        model = cast(model, vars(module)[_PRECISION])
    form = gradients(module)
    return model if form is None else ForwardBackward(model, form)


def _materialize(module: types.ModuleType, model: torch.nn.Module) -> None:
    """Gives lazy parameters their shapes and values by a call with example inputs, under the public seed.

    Modules are in evaluation mode meanwhile, so that buffers such as running means keep their values.
    """
    skeleton, leaves = flatten(list(_call(module, "get_inputs")))
    device = next(tensor.device for tensor in (*model.parameters(), *model.buffers()))
    leaves = [leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    modes = [(each, each.training) for each in model.modules()]
    try:
        with own_code.step(own_code.FORWARD), torch.no_grad():
            model.eval()(*unflatten(skeleton, leaves))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise ProblemError(f"{module.__file__}: the call that initializes lazy modules raises {describe(error)}"
                           ) from error
    for each, training in modes:
        each.training = training
    if lazy := _lazy_names(model):
        raise ProblemError(f"{module.__file__}: forward does not initialize the lazy {', '.join(lazy)}; use its "
                           "module in forward, or one that is not lazy")


def _lazy_names(model: torch.nn.Module) -> list[str]:
    return [name for name, tensor in (*model.named_parameters(), *model.named_buffers()) if is_lazy(tensor)]


def second_model(module: types.ModuleType, model: torch.nn.Module) -> torch.nn.Module:
    """Returns a second model with the same weights as one constructed from the module. They share no memory.

    It is a deep copy if possible. Some models cannot be copied, and a copied function with a closure, such as a lambda,
    would keep using the original's modules. In these cases, a new model is constructed on the CPU with the same seed
    and gets the same weights. Raises ProblemError.
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
            if name in known:
                mine.copy_(known[name])
    return made


def _closes_over_something(value: object) -> bool:
    """Whether a value is a function with a closure, or a `partial` or a collection that contains one."""
    if isinstance(value, types.FunctionType):
        return value.__closure__ is not None
    if isinstance(value, functools.partial):
        return _closes_over_something(value.func)
    if isinstance(value, list | tuple | set):
        return any(map(_closes_over_something, value))
    return isinstance(value, Mapping) and any(map(_closes_over_something, value.values()))


def describe(error: BaseException) -> str:
    """Returns the type of an exception and the first line of its message."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def raised(problem: ProblemAt, error: Exception) -> ProblemError:
    """Returns the error of a reference whose call raises `error`."""
    return ProblemError(f"{problem.path}: the reference's {problem.what_runs} raises {describe(error)}")


def tree_of(path: Path) -> ast.Module:
    """Returns the syntax tree of a problem file as it is written. Raises ProblemError."""
    try:
        return ast.parse(source(path), filename=str(path))
    except (OSError, SyntaxError, ValueError) as error:
        raise ProblemError(describe_syntax_error(path, error)) from error


def _tree_at(path: Path, shape: str, constants: Mapping[str, Any]) -> ast.Module:
    tree = tree_of(path)
    replaced = dict(constants)
    if shape != FULL:
        replaced |= _shape_constants(path, tree, shape)
    return _replace(path, tree, replaced)


def _shape_constants(path: Path, tree: ast.Module, shape: str) -> dict[str, Any]:
    shapes = getattr(_execute(path, tree), "SHAPES", None)
    if not isinstance(shapes, Mapping) or shape not in shapes:
        known = ", ".join([FULL, *shapes]) if isinstance(shapes, Mapping) else FULL
        raise ProblemError(f"{path}: no shape {shape!r}; the shapes are {known}")
    if not isinstance(shapes[shape], Mapping):
        raise ProblemError(f"{path}: SHAPES[{shape!r}] must be a dictionary of constants, such as {{\"N\": 16}}")
    return dict(shapes[shape])


def _replace(path: Path, tree: ast.Module, constants: Mapping[str, Any]) -> ast.Module:
    tree = literals.replace(tree, constants)
    body: list[ast.stmt] = []
    found = set(filter(str.isdecimal, constants))
    for statement in tree.body:
        body.append(statement)
        for name in dict.fromkeys(assigned_names(statement)):
            if name in constants:
                found.add(name)
                value = ast.parse(repr(constants[name]), mode="eval").body
                assignment = ast.Assign([ast.Name(name, ast.Store())], value)
                body.append(ast.fix_missing_locations(ast.copy_location(assignment, statement)))
    if missing := sorted(set(constants) - found):
        raise ProblemError(f"{path}: no constant {', '.join(missing)}; only constants that the file assigns at module "
                           "level can be replaced")
    return ast.Module(body, tree.type_ignores)


def _execute(path: Path, tree: ast.Module) -> types.ModuleType:
    module = types.ModuleType(f"inlinebench_problem_{name_of(path)}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # pickle, dataclasses and inspect look up the module of a class
    try:
        with own_code.step(own_code.LOADING):
            exec(compile(tree, str(path), "exec"), module.__dict__)
    except torch.OutOfMemoryError:
        raise
    except (Exception, SystemExit) as error:
        text = f"{path}: loading it raises {describe(error)}"
        if isinstance(error, ImportError) and _is_beside(path, error):
            raise ProblemError(f"{text}; a problem is a single file: copy what it imports into it") from error
        if isinstance(error, ModuleNotFoundError) and (package := _missing_package(error)):
            how = f" (pip install {package})" if package in ZOO else ""
            raise PackageMissing(f"{text}; install the package {package}{how} to evaluate it") from error
        raise ProblemError(text) from error
    return module


def _is_beside(path: Path, error: ImportError) -> bool:
    """Whether a module that cannot be imported is a file or folder next to the problem."""
    name = (error.name or "").partition(".")[0]
    beside = name and ((path.parent / f"{name}.py").exists() or (path.parent / name).is_dir())
    return bool(beside) or "relative import" in str(error)


def _missing_package(error: ModuleNotFoundError) -> str | None:
    """Returns the package that is not installed, or None if it is installed and only a submodule is missing."""
    package = (error.name or "").partition(".")[0]
    return package if package and importlib.util.find_spec(package) is None else None


def _call(module: types.ModuleType, function: str) -> Any:
    try:
        with own_code.step(f"{function}()"):
            return getattr(module, function)()
    except torch.OutOfMemoryError:
        raise
    except RecordedInputError as error:
        kind = NotHere if isinstance(error, RecordedInputMissing) else ProblemError
        raise kind(f"{module.__file__}: {error}") from error
    except (Exception, SystemExit) as error:
        raise ProblemError(f"{module.__file__}: {function}() raises {describe(error)}") from error
