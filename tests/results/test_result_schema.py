"""Tests of the JSON schema of results: it accepts what is written, and refuses what the records refuse."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator, ValidationError

from inlinebench.cli.main import main
from inlinebench.results import repeats, result, times
from inlinebench.results.result import Result
from inlinebench.results.result_json import SCHEMA, from_json, to_json
from inlinebench.results.result_schema import result_schema

from ..report.samples import any_result

FROZEN = (Path(__file__).parent / f"schema_{SCHEMA}.jsonl").read_text(encoding="utf-8").splitlines()
"""Lines that an earlier version of this schema wrote: all fields, a mismatch, the fewest fields, and a verdict that
schema 2 lacks. A change that invalidates one of them needs a new number of the schema, and a file of its own."""
OLDER = (Path(__file__).parent / "schema_2.jsonl").read_text(encoding="utf-8").splitlines()


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yields the schemas of all records in a schema."""
    yield from (each for each in (schema, *schema["$defs"].values()))


def closed() -> Draft202012Validator:
    """Returns the schema without unknown fields."""
    schema = result_schema()
    for each in objects(schema):
        each["additionalProperties"] = False
    return Draft202012Validator(schema)


SCHEMA_OF_RESULTS, CLOSED = Draft202012Validator(result_schema()), closed()


def changed(**facts: Any) -> dict[str, Any]:
    """Returns the frozen line that did not pass, with these fields changed; None removes one."""
    data = json.loads(FROZEN[2]) | facts
    return {name: fact for name, fact in data.items() if fact is not None}


def leaves(value: Any, *place: str | int) -> set[tuple[Any, ...]]:
    """Returns the values in a JSON value with their places."""
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        return {leaf for name, each in inside for leaf in leaves(each, *place, name)}
    return {(*place, value)}


def test_the_schema_is_a_json_schema() -> None:
    Draft202012Validator.check_schema(result_schema())


@given(any_result())
def test_every_result_that_can_be_written_is_valid(found: Result) -> None:
    CLOSED.validate(json.loads(to_json(found)))


@pytest.mark.parametrize("line", FROZEN)
def test_a_line_of_an_earlier_version_stays_valid_and_is_read(line: str) -> None:
    SCHEMA_OF_RESULTS.validate(json.loads(line))
    assert leaves(json.loads(to_json(from_json(line)))) >= leaves(json.loads(line))


@pytest.mark.parametrize("line", OLDER)
def test_a_line_of_an_older_schema_is_read(line: str) -> None:
    assert leaves(json.loads(to_json(from_json(line)))) >= leaves({**json.loads(line), "schema": SCHEMA})


def test_fields_of_a_later_version_are_valid() -> None:
    SCHEMA_OF_RESULTS.validate(changed(unheard_of=1))
    with pytest.raises(ValidationError, match="unheard_of"):
        CLOSED.validate(changed(unheard_of=1))


@pytest.mark.parametrize("facts", [
    {"schema": SCHEMA + 1}, {"schema": None}, {"problem": None}, {"problem": 3}, {"verdict": "splendid"},
    {"reason": ""}, {"reason": None}, {"seed": "1"}, {"seed": 1.5}, {"check": []}, {"check": {"calls": 1}},
    {"verdict": "passed", "reason": ""}, {"verdict": "passed", "check": json.loads(FROZEN[0])["check"]},
    {"timing": json.loads(FROZEN[0])["timing"]}, {"memory": {"solution_bytes": 1, "reference_bytes": 1}},
    {"memory": {"solution_bytes": 1}}, {"mismatch": json.loads(FROZEN[1])["mismatch"]},
], ids=repr)
def test_what_readers_refuse_is_invalid(facts: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        from_json(json.dumps(changed(**facts)))
    with pytest.raises(ValidationError):
        SCHEMA_OF_RESULTS.validate(changed(**facts))


def test_every_record_and_field_is_there_with_a_description() -> None:
    found = dict(zip(["Result", *result_schema()["$defs"]], objects(result_schema()), strict=True))
    records = dict(each for module in (result, times, repeats) for each in inspect.getmembers(module, is_dataclass))
    assert found.keys() == records.keys()
    for name, schema in found.items():
        assert schema["description"]
        assert {"schema", *schema["properties"]} == {"schema", *(field.name for field in fields(records[name]))}
        assert all(each["description"] for each in schema["properties"].values())


def test_the_command_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == result_schema()
