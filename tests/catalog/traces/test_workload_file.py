"""What is refused in a file of workloads, and in which words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inlinebench.catalog.traces.definition import Definition, read_definition
from inlinebench.catalog.traces.fields import DefinitionError
from inlinebench.catalog.traces.workload_file import Origin, TraceWorkload, read_workload_file

from ...traces.files import FOLDER, PAIRS, SEGMENT_WORKLOADS, SEGMENTS

SEGMENT_SUMS = read_definition(FOLDER / SEGMENTS)
SWAP_HALVES = read_definition(FOLDER / PAIRS)
FIRST = json.loads((FOLDER / SEGMENT_WORKLOADS).read_text().splitlines()[0])


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., tuple[TraceWorkload, ...]]:
    def read_lines(*lines: str, of: Definition = SEGMENT_SUMS) -> tuple[TraceWorkload, ...]:
        path = tmp_path / "workloads.jsonl"
        path.write_text("\n".join(lines))
        return read_workload_file(path, of)

    return read_lines


Read = Callable[..., tuple[TraceWorkload, ...]]


def line(edit: Callable[[dict[str, Any]], object] = lambda _: None) -> str:
    given = json.loads(json.dumps(FIRST))
    edit(given["workload"])
    return json.dumps(given)


def test_workloads_are_named_by_the_first_characters_of_their_uuids() -> None:
    first, second = read_workload_file(FOLDER / SEGMENT_WORKLOADS, SEGMENT_SUMS)
    assert (first.name, second.name) == ("3f9a1c02", "7b00d4e1")
    assert first.axes == {"rows": 9, "segments": 3, "len_offsets": 4}
    assert [each.origin for each in first.sources.values()] == [Origin.RANDOM, Origin.RECORDED, Origin.SCALAR]
    assert first.sources["offsets"].value == ("./blob/segment/offsets.safetensors", "short")


def test_uuids_that_begin_alike_are_kept(read: Read) -> None:
    found = read(line(), "", line(lambda given: given.update(uuid="3f9a1c02-another")))
    assert [each.name for each in found] == [FIRST["workload"]["uuid"], "3f9a1c02-another"]


def test_a_workload_can_stand_by_itself(read: Read) -> None:
    assert read(json.dumps(FIRST["workload"]))[0].name == "3f9a1c02"


def test_an_input_without_a_source_is_drawn(read: Read) -> None:
    assert read(line(lambda given: given["inputs"].pop("x")))[0].sources["x"].origin is Origin.RANDOM


@pytest.mark.parametrize(("edit", "said"), [
    (lambda given: given.pop("uuid"), "the field 'uuid' is missing"),
    (lambda given: given["axes"].pop("rows"), "it has no value for the axis 'rows'"),
    (lambda given: given["axes"].update(rows=-1), "the axis 'rows' is -1; it must be a whole number that is not"),
    (lambda given: given["axes"].update(rows=2.5), "the axis 'rows' is 2.5; it must be a whole number"),
    (lambda given: given["axes"].update(columns=25),
     "it has a value for 'columns', which is no variable axis; these are rows, segments, len_offsets"),
    (lambda given: given["axes"].update(depth=1), "it has a value for 'depth', which is no variable axis"),
    (lambda given: given["inputs"].update(y={"type": "random"}), "it has a source for 'y', which is no input of "),
    (lambda given: given["inputs"]["x"].update(type="zeros"),
     "the type 'zeros' is not supported; the types are random, scalar, safetensors, custom"),
    (lambda given: given["inputs"]["x"].update(type="scalar", value=1), "and the definition has a shape for it"),
    (lambda given: given["inputs"]["scale"].update(value="1"), "the scalar '1' must be a finite number or a boolean"),
    (lambda given: given["inputs"]["scale"].update(value=float("inf")), "the scalar inf must be a finite number"),
    (lambda given: given["inputs"]["scale"].update(type="safetensors"),
     "it is a tensor of a file, and the definition has a scalar"),
    (lambda given: given["inputs"].update(x=given["inputs"]["offsets"]),
     "it draws no input; with the same inputs in every call, a solution could keep its outputs"),
    (lambda given: given["inputs"]["offsets"].pop("tensor_key"), "the field 'tensor_key' is missing"),
    (lambda given: given["inputs"]["x"].update(type="custom"),
     "the type custom needs 'custom_inputs_entrypoint', which "),
])
def test_a_fault_is_named_with_its_line(read: Read, edit: Callable[[dict[str, Any]], object], said: str) -> None:
    with pytest.raises(DefinitionError, match=r"workloads\.jsonl, line 2: ") as caught:
        read(line(lambda given: given.update(uuid="another")), line(edit))
    assert said in str(caught.value)


def test_a_constant_axis_may_be_repeated_with_its_value(read: Read) -> None:
    assert "columns" not in read(line(lambda given: given["axes"].update(columns=24)))[0].axes


def test_a_workload_of_another_definition_is_refused(read: Read) -> None:
    with pytest.raises(DefinitionError, match=r"line 1: it is a workload of 'segment_sums'; .* is 'pairs_swap_halves'"):
        read(line(), of=SWAP_HALVES)


@pytest.mark.parametrize(("lines", "said"), [((), "there are no workloads in it"), (("{",), "line 1: not JSON"),
                                             ((line(), line()), "two workloads have the uuid '3f9a1c02-")])
def test_a_file_without_distinct_workloads_is_refused(read: Read, lines: tuple[str, ...], said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        read(*lines)
