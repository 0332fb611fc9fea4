"""The JSON schema of a line of results, made from the records, so that it cannot differ from them."""

from __future__ import annotations

import ast
import inspect
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields
from enum import Enum
from typing import Any

from inlinebench.results.result import Result, Verdict
from inlinebench.results.result_json import SCHEMA

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}
_PASSED = {"properties": {"verdict": {"const": Verdict.PASSED.value}}}
_WRONG = {"properties": {"verdict": {"const": Verdict.WRONG.value}}}
_RULES = [
    {"if": _PASSED, "then": {"required": ["check"], "properties": {"reason": {"const": ""}}},
     "else": {"required": ["reason"], "properties": {"reason": {"minLength": 1}, "timing": False, "memory": False}}},
    {"if": _WRONG, "else": {"properties": {"mismatch": False}}},
]
"""The rules between fields that `Result` checks."""


def result_schema() -> dict[str, Any]:
    """Returns the JSON schema (draft 2020-12) of what `to_json` writes in the present schema.

    It allows unknown fields, which readers ignore: a later version may add some without a new number of the schema.
    """
    records: dict[str, dict[str, Any]] = {}
    _add(Result, records)
    whole = records.pop(Result.__name__)
    number = {"const": SCHEMA, "description": "The number of the schema."}
    return {
        "$schema": _DRAFT,
        "$id": f"urn:inlinebench:result:{SCHEMA}",
        "title": f"inlinebench result, schema {SCHEMA}",
        **whole,
        "properties": {"schema": number, **whole["properties"]},
        "required": ["schema", *whole["required"]],
        "allOf": _RULES,
        "$defs": dict(sorted(records.items())),
    }


def _add(record: type, records: dict[str, dict[str, Any]]) -> None:
    """Adds the schema of a record, and of the records that it contains, by their names."""
    hints, said = typing.get_type_hints(record), _field_docs(record)
    records[record.__name__] = {}  # keeps its place before the records that it contains
    properties = {each.name: {**_value(hints[each.name], records), "description": said[each.name]}
                  for each in fields(record)}
    required = [each.name for each in fields(record) if each.default is MISSING and each.default_factory is MISSING]
    what, _, _ = inspect.cleandoc(record.__doc__ or "").partition("\n\n")
    records[record.__name__].update(
        type="object", description=" ".join(what.split()), properties=properties, required=required)


def _value(kind: Any, records: dict[str, dict[str, Any]]) -> dict[str, Any]:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):  # None is absent from the JSON
        kind = next(option for option in typing.get_args(kind) if option is not type(None))
    if typing.get_origin(kind) is tuple:
        return {"type": "array", "items": _value(typing.get_args(kind)[0], records)}
    if issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if kind.__name__ not in records:
        _add(kind, records)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _field_docs(record: type) -> Mapping[str, str]:
    """Returns what the source of a record says below each of its fields, in one line each."""
    body = ast.parse(inspect.getsource(record)).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)):
            found[field.target.id] = " ".join(str(text.value.value).split())
    return found
