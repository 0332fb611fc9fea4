"""The JSON form of results: one line for each. Fields that are None are absent, never null."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from inlinebench.foreign import inert_json
from inlinebench.results.result import Result

SCHEMA = 3
"""The schema that `to_json` writes."""
_READABLE = (1, 2, 3)
"""Schemas that `from_json` reads."""
_RENAMED = {"floor": "roofline"}
"""Fields of schema 1 that were renamed, with their present names."""


def to_json(result: Result) -> str:
    """Returns the result as one line of JSON, without a newline at the end. Fields that are None are left out.

    Raises ValueError for NaN and infinity, which JSON cannot represent.
    """
    return inert_json(json.dumps({"schema": SCHEMA, **_encode(result)}, allow_nan=False))


def from_json(line: str) -> Result:
    """Returns the result that `to_json` wrote, in this or an older schema. Unknown fields are ignored.

    Raises ValueError if the line is not a result.
    """
    try:
        data = json.loads(line)
    except RecursionError as error:
        raise ValueError(f"nested too deeply to be a result: {line[:80]!r}") from error
    schema = data.pop("schema", None) if isinstance(data, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise ValueError(f"schema {schema} is of a later inlinebench, and this one reads schemas up to {SCHEMA}")
    if schema not in _READABLE:
        raise ValueError(f"not a result of schema {SCHEMA} or older: {line[:80]!r}")
    try:
        return typing.cast(Result, _decode(Result, data))
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a result of schema {SCHEMA}: {error}") from error


def _encode(value: Any) -> Any:
    if is_dataclass(value):
        facts = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _encode(fact) for name, fact in facts.items() if fact is not None}
    if isinstance(value, Enum):
        return value.value
    return [_encode(item) for item in value] if isinstance(value, tuple) else value


def _decode(kind: Any, value: Any) -> Any:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        kind = next(option for option in typing.get_args(kind) if option is not type(None))
    if is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, Mapping):
            raise TypeError(f"{kind.__name__} is {value!r}")
        hints = typing.get_type_hints(kind)
        facts = {_RENAMED.get(name, name): fact for name, fact in value.items()}
        return kind(**{name: _decode(hints[name], fact) for name, fact in facts.items() if name in hints})
    if typing.get_origin(kind) is tuple:
        return tuple(_decode(typing.get_args(kind)[0], item) for item in value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value
