"""The kinds of options: how a text becomes a value, and what a value must be."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from inlinebench.device_kinds import KINDS
from inlinebench.errors import UsageError

ALL_DEVICES = "all"
DEVICE = "|".join(["auto", *(kind.name + (r"(:\d+)?" if kind.numbered else "") for kind in KINDS)])
"""The regular expression of a value of `--device`."""
_DEVICES = [name for kind in KINDS for name in (kind.name, *([f"{kind.name}:N"] if kind.numbered else []))]
DEVICES_TEXT = f"auto, {', '.join(_DEVICES[:-1])} or {_DEVICES[-1]}"
"""The values of `--device`, in words."""
BASELINES = ("eager", "compile", "compile-max")
SOLUTION_BASELINE = "solution:"


@dataclass(frozen=True)
class Kind:
    """A kind of option."""

    wanted: str
    """What to write, to complete a sentence that starts with `write`."""
    holds: Callable[[Any], bool]
    """Whether a value is that."""
    metavar: str = ""
    """The placeholder for the value in the help."""
    parse: Callable[[str], Any] = str
    """Converts text to a value. Invalid text may stay text, which `holds` then refuses."""
    collect: Callable[[Iterable[Any]], Any] | None = None
    """Makes one value of those of a repeated option. None: the last one counts."""
    const: Any = None
    """The value of an option that is given without one. With a `metavar` it may have one, otherwise it takes none."""

    def named(self, metavar: str) -> Kind:
        """Returns the kind with another name in the help."""
        return replace(self, metavar=metavar)

    def repeated(self, metavar: str) -> Kind:
        """Returns the kind of a tuple of such values, one for each time that the option is given."""
        return replace(self, metavar=metavar, collect=tuple,
                       holds=lambda value: isinstance(value, tuple) and all(map(self.holds, value)))

    def read(self, name: str, text: str) -> Any:
        """Returns the value of a text; `name` is where it is from. Raises UsageError if it is not of this kind."""
        value = self.parse(text)
        if not self.holds(value):
            raise UsageError(f"{name}{text}: write {self.wanted}")
        return value


def one_of(choices: Sequence[str], metavar: str = "") -> Kind:
    """Returns the kind of a text that is one of several."""
    return Kind(f"one of {', '.join(choices)}", lambda value: isinstance(value, str) and value in choices,
                metavar or "|".join(choices))


def words(meaning: Mapping[str, bool]) -> Kind:
    """Returns the kind of a truth value that is written as one of two words."""
    return Kind(f"{' or '.join(meaning)} ({' or '.join(map(str, meaning.values()))} in Python)",
                lambda value: isinstance(value, bool), "|".join(meaning), lambda text: meaning.get(text, text))


def at_home(folder: str) -> Path:
    """Returns a folder with `~` replaced by the home folder. Raises UsageError if the home folder is unknown."""
    try:
        return Path(folder).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{folder}: the home folder is unknown; name the cache's folder with --cache or "
                         "INLINEBENCH_CACHE") from error


def constant(text: str) -> tuple[str, Any]:
    """Returns name and value of `NAME=VALUE`. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UsageError(f"--set {text}: write NAME=VALUE, for example --set M=256")
    try:
        found = ast.literal_eval(value)
        ast.literal_eval(repr(found))  # not so for 1e999, which a file cannot contain
        return name, found
    except (ValueError, SyntaxError) as error:
        raise UsageError(f"--set {text}: {value!r} is not a Python literal (a number, a string, a tuple)") from error


def _or_text(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            return convert(text)
        except ValueError:
            return text

    return parse


_whole, _number = _or_text(int), _or_text(float)


def _shard(text: str) -> Any:
    part, _, parts = text.partition("/")
    return (int(part), int(parts)) if part.isdecimal() and parts.isdecimal() else text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _matches(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _are_devices(value: Any) -> bool:
    if not isinstance(value, tuple) or not all(isinstance(name, str) for name in value):
        return False
    numbers = all(name.isdecimal() for name in value) and len(set(value)) == len(value)
    return value == (ALL_DEVICES,) or set(value) == {"cpu"} or numbers


def _is_shard(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_whole, value)) and 1 <= value[0] <= value[1]


ANY = Kind("anything", lambda value: True)
TEXT = Kind("a text", lambda value: isinstance(value, str))
NAMES = replace(TEXT, wanted="names").repeated("NAME")
SWITCH = Kind("True or False", lambda value: isinstance(value, bool), const=True)
COUNT = Kind("a positive integer", lambda value: _is_whole(value) and value >= 1, "N", _whole)
WHOLE = Kind("0 or a positive integer", lambda value: _is_whole(value) and value >= 0, "N", _whole)
INTEGER = Kind("an integer", _is_whole, "N", _whole)
SECONDS = Kind("a positive number of seconds, at most 1000000", lambda value: _is_number(value) and 0 < value <= 1e6,
               "S", _number)
GIB = Kind("a positive number of GiB, at most 1000000", lambda value: _is_number(value) and 0 < value <= 1e6, "GIB",
           _number)
SIZE = Kind("a size in GiB, 0 or more", lambda value: _is_number(value) and value >= 0, "GIB", _number)
SHARE = Kind("a number between 0 and 1", lambda value: _is_number(value) and 0 < value < 1, "X", _number)
RATIO = Kind("a positive number", lambda value: _is_number(value) and 0 < value < math.inf, "X", _number)
TOLERANCE = Kind("0 or a positive number", lambda value: _is_number(value) and 0 <= value < math.inf, "X", _number)
FILE = Kind("a path", lambda value: isinstance(value, Path), "FILE", Path)
FOLDER = FILE.named("DIR")
CACHE = replace(FOLDER, parse=at_home)
PATHS = (Path, at_home)
"""The parsers of paths."""
CONSTANTS = Kind("constants with their values", lambda value: isinstance(value, Mapping), "K=V", constant, dict)
ONE_DEVICE = Kind(DEVICES_TEXT, _matches(DEVICE), "NAME")
SEVERAL_DEVICES = Kind(f"{ALL_DEVICES}, GPU numbers such as 0,1, or cpu,cpu", _are_devices, "LIST",
                       lambda text: tuple(text.split(",")))
BASELINE = Kind(f"one of {', '.join(BASELINES)}, {SOLUTION_BASELINE}NAME",
                lambda value: value in BASELINES or _matches(f"{SOLUTION_BASELINE}(?s:.+)")(value)).repeated("NAME")
ARCHITECTURES = replace(
    Kind("compute capabilities such as 90, 80,90a or sm_90", _matches(r"[1-9]\d{1,2}[af]?")).repeated("LIST"),
    parse=lambda text: [name.strip().removeprefix("sm_") for name in text.split(",")],
    collect=lambda lists: tuple(chain.from_iterable(lists)))
SHARD = Kind("I/N, for example 2/8", _is_shard, "I/N", _shard)
