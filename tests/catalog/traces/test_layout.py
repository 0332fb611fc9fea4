"""Which folders have definitions, and which files belong to one."""

from __future__ import annotations

from pathlib import Path

import pytest

from inlinebench.catalog import read, selection
from inlinebench.catalog.traces import trace_files
from inlinebench.catalog.traces.layout import definitions, name_of, recorded_file, workloads_of

from ...traces.files import OFFSETS, PAIRS, SEGMENT_WORKLOADS, SEGMENTS, change, copy_sets


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    return copy_sets(tmp_path)


@pytest.mark.parametrize(("folder", "found"), [
    ("", [SEGMENTS]), ("definitions", [SEGMENTS]), ("definitions/segment", [SEGMENTS]),
    ("pairs", [PAIRS]), ("pairs/swap_halves", [PAIRS]), ("workloads", []), ("blob", []),
])
def test_the_definitions_in_a_folder(sets: Path, folder: str, found: list[Path]) -> None:
    assert list(definitions(sets / folder)) == [sets / path for path in found]


def test_a_folder_of_problem_files_has_no_definitions(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("{}")
    assert read(tmp_path, tmp_path).problems == {}


def test_names_and_workloads(sets: Path) -> None:
    assert (name_of(sets / SEGMENTS), name_of(sets / PAIRS)) == ("segment_sums", "swap_halves")
    assert workloads_of(sets / SEGMENTS) == sets / SEGMENT_WORKLOADS
    assert workloads_of(sets / PAIRS) == (sets / PAIRS).with_name("workload.jsonl")


def test_recorded_inputs_are_found_from_the_folder_of_the_definition_upwards(sets: Path) -> None:
    assert recorded_file(sets / SEGMENTS, f"./{OFFSETS}") == sets / OFFSETS
    assert recorded_file(sets / SEGMENTS, "blob/other.safetensors") is None


def test_the_files_of_a_problem_are_its_definition_its_workloads_and_recorded_inputs(sets: Path) -> None:
    assert trace_files(sets / SEGMENTS) == [sets / SEGMENTS, sets / SEGMENT_WORKLOADS, sets / OFFSETS]
    (sets / OFFSETS).unlink()
    assert trace_files(sets / SEGMENTS) == [sets / SEGMENTS, sets / SEGMENT_WORKLOADS]
    change(sets / SEGMENTS, lambda given: given.pop("inputs"))
    assert trace_files(sets / SEGMENTS) == [sets / SEGMENTS]


def test_a_definition_is_selected_by_its_path(sets: Path) -> None:
    known = read(sets, sets)
    assert selection.find_problem(known, str(sets / PAIRS)).name == "swap_halves"
    assert [each.name for each in selection.problems(known, [str(sets / PAIRS)], (), ())] == ["swap_halves"]
