"""The Python API: `evaluate`."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from os.path import isfile
from pathlib import Path
from typing import Any

from inlinebench import catalog
from inlinebench.errors import NoDevice, NoSandbox, UsageError
from inlinebench.options import OLD_NAMES, OPTIONS, Options, rules
from inlinebench.options.kinds import PATHS
from inlinebench.results.result import Result


def evaluate(problem: str | Path, solution: str | Path, **settings: Any) -> Result:
    """Evaluates one solution against one problem and returns the result.

    `problem` is a name or the path of a problem file. `solution` is the path of a solution file or its source text.
    `settings` are fields of `inlinebench.options.Options`, for example `device="cuda:0"`, `check=True` or
    `shapes=("small",)`. The default shape is `full`. Times and speedups measured on the CPU do not predict a GPU's.

    The function may be called from any number of threads and processes at the same time. All calls of a user with the
    same settings share the cache and the judges. A server keeps the judges ready until a minute after the last call
    (see `inlinebench.serve`). Builds run in parallel; evaluations on the same GPU run one after the other.

    Raises TypeError for other settings, UsageError if the arguments cannot be evaluated, NoDevice if the device cannot
    be used, NoSandbox if a required sandbox is not available, and ServerDied if the server ends before it replies.
    """
    from inlinebench.serve.client import ask
    from inlinebench.serve.messages import Request

    settings = _renamed(settings)
    _check_names(settings)
    source = _source(solution)
    paths = {name: Path(value) for name, value in settings.items()
             if isinstance(value, str) and _SETTINGS[name].kind.parse in PATHS}
    shapes = {} if settings.get("constants") else {"shapes": (catalog.FULL,)}
    options = Options(names=(_name(problem),), solution_files=(Path(solution).absolute() if source is None else _ANY,),
                      quiet=True, **{**shapes, **settings, **paths})
    try:
        rules.check(options, lambda field, value: f"{field}={value!r}")
        return ask(Request(_absolute(rules.settled(options)), source))
    except (UsageError, NoDevice, NoSandbox) as error:
        raise type(error)(rules.in_fields(str(error))) from error


_ANY = Path("solution.py")
"""Stands for the file that the server writes the source text to."""
_SETTINGS = {name: each for name, each in OPTIONS.items() if each.scope != "run"}


def _renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings under their present names. An old name is a warning."""
    for name in settings.keys() & OLD_NAMES.keys():
        warnings.warn(f"evaluate(): {name} is {OLD_NAMES[name]} now", FutureWarning, stacklevel=3)
    return {OLD_NAMES.get(name, name): value for name, value in settings.items()}


def _check_names(settings: Mapping[str, Any]) -> None:
    """Raises TypeError, as for any unexpected argument."""
    for name in settings:
        if name not in _SETTINGS:
            nearest = difflib.get_close_matches(name, _SETTINGS, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else "see inlinebench.options"
            raise TypeError(f"evaluate() has no setting {name!r}; "
                            + ("it is an option of `inlinebench run`" if name in OPTIONS else hint))


def _source(solution: str | Path) -> str | None:
    """Returns the source text, or None if `solution` is a path. A text may be empty or a single line. Raises TypeError
    and UsageError."""
    if not isinstance(solution, str | Path):
        raise TypeError(f"evaluate(): solution must be a path or the source text, not {type(solution).__name__}")
    if isinstance(solution, Path) or ("\n" not in solution and (solution.endswith(".py") or isfile(solution))):
        return None
    try:
        solution.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"evaluate(): the source is not text: {error.reason} at character {error.start}") from None
    return solution


def _name(problem: str | Path) -> str:
    path = Path(problem)
    return str(path.absolute()) if path.suffix == ".py" and path.is_file() else str(problem)


def _absolute(options: Options) -> Options:
    """Makes paths absolute, because the server may run in another folder."""
    return replace(options, problems=options.problems.absolute(), solutions=options.solutions.absolute(),
                   cache=options.cache.expanduser().absolute())
