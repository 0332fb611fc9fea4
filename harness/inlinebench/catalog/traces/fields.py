"""Reads the fields of JSON objects, with errors that say where a field is missing or of another type."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
_WORDS = {str: "a text", dict: "an object", list: "a list", int: "a whole number"}


class DefinitionError(ValueError):
    """A definition or a file of workloads cannot be read. The message names the file and says what is wrong."""


@dataclass(frozen=True)
class JsonObject:
    """One object of a JSON file."""

    where: str
    """Where it is, as messages name it."""
    values: Mapping[str, Any]
    """Its fields."""

    def get(self, name: str, kind: type[T], default: T | None = None) -> T:
        """Returns a field. A field without a default must be there. Raises DefinitionError, also for another type."""
        value = self.values.get(name)
        if value is None:
            if default is None:
                raise self.error(f"the field {name!r} is missing")
            return default
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.error(f"the field {name!r} must be {_WORDS[kind]}")
        return value

    def entries(self, name: str) -> dict[str, JsonObject]:
        """Returns the fields of an object of objects, in order. Raises DefinitionError."""
        found = self.get(name, dict)
        for key, value in found.items():
            if not isinstance(value, dict):
                raise self.error(f"{name}[{key!r}] must be an object")
        return {key: JsonObject(f"{self.where}: {name}[{key!r}]", value) for key, value in found.items()}

    def texts(self, name: str) -> tuple[str, ...]:
        """Returns an optional list of texts. Raises DefinitionError."""
        found = self.get(name, list, [])
        if not all(isinstance(each, str) for each in found):
            raise self.error(f"the field {name!r} must be a list of texts")
        return tuple(found)

    def error(self, what: str) -> DefinitionError:
        """Returns an error about this object."""
        return DefinitionError(f"{self.where}: {what}")


def text_of(path: Path) -> str:
    """Returns the text of a file. Raises DefinitionError if it is not UTF-8, and OSError."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from None


def json_object(text: str, path: Path, line: int | None = None) -> JsonObject:
    """Returns the object of a JSON text: a file, or one line of it. Raises DefinitionError."""
    where = str(path) if line is None else f"{path}, line {line}"
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise DefinitionError(f"{path}, line {error.lineno if line is None else line}: not JSON: {error.msg}") from None
    if not isinstance(found, dict):
        raise DefinitionError(f"{where}: it must be a JSON object")
    return JsonObject(where, found)


def is_scalar(value: object) -> bool:
    """Whether a value is a Python scalar that an input can have: a finite number or a boolean."""
    return isinstance(value, int | float) and math.isfinite(value)
