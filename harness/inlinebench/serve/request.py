"""What is to be evaluated: the arguments of `evaluate`, checked, and as JSON."""

from __future__ import annotations

import difflib
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os.path import isfile
from pathlib import Path
from typing import Any

from inlinebench import catalog
from inlinebench.catalog import Solution
from inlinebench.catalog.traces.layout import PROBLEM_SUFFIXES
from inlinebench.errors import NoDevice, NoSandbox, UsageError
from inlinebench.options import OLD_NAMES, OPTIONS, Options, rules
from inlinebench.options.kinds import PATHS
from inlinebench.response.choice import NoSolution, choose

_ANY = Path("solution.py")
"""Stands for the file that the source text is written to."""
ID = re.compile("[A-Za-z0-9_-]{16,64}")
"""What a caller may call an evaluation."""
_GIVEN = ("source", "response", "solution")
SETTINGS = {name: each for name, each in OPTIONS.items() if each.scope != "run"}
"""The options that one evaluation has."""
NOT_REMOTE = {"trust", "sanitize", *(name for name, each in SETTINGS.items() if each.kind.parse in PATHS)}
"""Settings that only the user of the machine may give: they name its files, or leave out the sandbox, as sanitizers do.
"""


@dataclass(frozen=True)
class Request:
    """A request to evaluate one solution."""

    options: Options
    """The options, which name the problem and the solution file."""
    source: str | None = None
    """The source text of the solution, if it is not in a file."""
    invalid: str = ""
    """Why a response has no solution. The result is `invalid` for this reason."""
    reuse: bool = False
    """Whether the result may be that of an equal request before."""

    @contextmanager
    def as_file(self) -> Iterator[Options]:
        """Yields the options with a temporary file of the source text as the solution, or with the file itself."""
        if self.source is None:
            yield self.options
            return
        with tempfile.TemporaryDirectory(prefix="inlinebench-") as folder:
            path = Path(folder) / _ANY
            path.write_text(self.source, encoding="utf-8", newline="\n")
            if self.invalid:
                response = Solution("", path.stem, path, self.invalid)
                yield replace(self.options, solution_files=(), responses=(response,))
            else:
                yield replace(self.options, solution_files=(path,))


def request(problem: str | Path, solution: str | Path, settings: Mapping[str, Any]) -> Request:
    """Returns the request for the arguments of `evaluate`.

    Raises TypeError for other settings, and UsageError, NoDevice or NoSandbox as `evaluate` does.
    """
    settings = _renamed(settings)
    _check_names(settings)
    source = _source(solution)
    paths = {name: Path(value) for name, value in settings.items()
             if isinstance(value, str) and SETTINGS[name].kind.parse in PATHS}
    shapes = {} if settings.get("constants") else {"shapes": (catalog.FULL,)}
    with in_fields():
        file = Path(solution).absolute() if source is None else _ANY
        options = Options(names=(_name(problem),), solution_files=(file,), quiet=True,
                          **{**shapes, **settings, **paths})
        rules.check(options, lambda field, value: f"{field}={value!r}")
        return Request(_absolute(rules.settled(options)), source)


def to_json(
    problem: str | Path, solution: str | Path, settings: Mapping[str, Any], *, reuse: bool = True
) -> dict[str, Any]:
    """Returns the body that asks a service for this. Raises what `request` raises."""
    asked = request(problem, solution, settings)
    text = {name: str(Path(value).absolute()) if isinstance(value, Path) else value
            for name, value in _renamed(settings).items()}
    what = {"solution": str(asked.options.solution_files[0])} if asked.source is None else {"source": asked.source}
    return {"problem": asked.options.names[0], **what, "settings": text, "reuse": reuse}


def from_json(body: Any, *, remote: bool) -> Request:
    """Returns the request of a body: `problem`, one of `source`, `response` and `solution`, `settings`, `reuse`, `id`.

    A `remote` caller may not name files of this machine, or leave out the sandbox. Raises UsageError.
    """
    if not isinstance(body, dict) or body.keys() - {"problem", *_GIVEN, "settings", "reuse", "id"}:
        raise UsageError("an evaluation is an object with problem, one of source, response and solution, settings, "
                         "reuse and id")
    problem, settings, reuse = body.get("problem"), body.get("settings", {}), body.get("reuse", True)
    given = [name for name in _GIVEN if name in body]
    if len(given) != 1 or not isinstance(body[given[0]], str) or not isinstance(problem, str):
        raise UsageError("problem is a text, and so is one of source, response and solution")
    if not isinstance(settings, dict):
        raise UsageError("settings is an object")
    if not isinstance(reuse, bool):
        raise UsageError("reuse is true or false")
    if "id" in body and not (isinstance(body["id"], str) and ID.fullmatch(body["id"])):
        raise UsageError("id is a text of 16 to 64 letters, digits, - and _; draw it")
    if remote:
        named = sorted(NOT_REMOTE & settings.keys())
        if given == ["solution"] or "/" in problem or problem.endswith(PROBLEM_SUFFIXES):
            named = ["a path"]
        if named:
            raise UsageError(f"{named[0]} can be given only over the user's own socket")
    if given == ["solution"] and "\n" in body["solution"]:
        raise UsageError("solution is the path of a file; give a text as source")
    try:
        if given == ["response"]:
            return replace(of_response(problem, body["response"], settings), reuse=reuse)
        if given == ["solution"]:
            return replace(request(problem, Path(body["solution"]), settings), reuse=reuse)
        return replace(_of_text(problem, body["source"], settings), reuse=reuse)
    except TypeError as error:
        raise UsageError(str(error)) from None


def of_response(problem: str | Path, response: str, settings: Mapping[str, Any]) -> Request:
    """Returns the request to evaluate the solution in a model's response. Raises what `request` raises."""
    asked = _of_text(problem, response, settings)
    try:
        return replace(asked, source=choose(response).block.source)
    except NoSolution as error:
        return replace(asked, invalid=str(error))


def _of_text(problem: str | Path, text: str, settings: Mapping[str, Any]) -> Request:
    """Returns the request to evaluate a source text, which may be a single line and would be taken for a path."""
    return replace(request(problem, "\n", settings), source=_encodable(text))


@contextmanager
def in_fields() -> Iterator[None]:
    """Raises errors with the names of fields in place of flags."""
    try:
        yield
    except (UsageError, NoDevice, NoSandbox) as error:
        raise type(error)(rules.in_fields(str(error))) from error


def _renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings under their present names, with tuples in place of lists. An old name is a warning."""
    for name in settings.keys() & OLD_NAMES.keys():
        warnings.warn(f"evaluate(): {name} is {OLD_NAMES[name]} now", FutureWarning, stacklevel=4)
    return {OLD_NAMES.get(name, name): tuple(value) if isinstance(value, list) else value
            for name, value in settings.items()}


def _check_names(settings: Mapping[str, Any]) -> None:
    """Raises TypeError, as for any unexpected argument."""
    for name in settings:
        if name not in SETTINGS:
            nearest = difflib.get_close_matches(name, SETTINGS, n=1)
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
    return _encodable(solution)


def _encodable(source: str) -> str:
    try:
        source.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"evaluate(): the source is not text: {error.reason} at character {error.start}") from None
    return source


def _name(problem: str | Path) -> str:
    path = Path(problem)
    return str(path.absolute()) if path.suffix in PROBLEM_SUFFIXES and path.is_file() else str(problem)


def _absolute(options: Options) -> Options:
    """Makes paths absolute, because a service runs in another folder."""
    return replace(options, problems=options.problems.absolute(), solutions=options.solutions.absolute(),
                   cache=options.cache.expanduser().absolute())
