from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.errors import UsageError
from inlinebench.results.jsonl import JsonLines, read
from inlinebench.results.result import Result, Verdict
from inlinebench.results.result_json import from_json, to_json

from ..report.samples import any_result, result

FIRST, SECOND = result("a/naive", speedup=2.0), result("b/naive", Verdict.WRONG)


def without_null(facts: dict[str, object]) -> dict[str, object]:
    assert None not in facts.values()
    return facts


@given(any_result())
def test_any_result_survives_a_round_trip_through_json(found: Result) -> None:
    line = to_json(found)
    assert "\n" not in line
    json.loads(line, object_hook=without_null)
    assert from_json(line) == found


@given(st.lists(any_result(), max_size=5))
def test_written_results_are_read_back(results: list[Result]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "out.jsonl")
        with JsonLines(path) as lines:
            for found in results:
                lines.write(found)
        assert list(read(path)) == results


def test_each_result_is_flushed_as_soon_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with JsonLines(path) as lines:
        lines.write(FIRST)
        assert list(read(path)) == [FIRST]
        lines.write(SECOND)
        assert list(read(path)) == [FIRST, SECOND]


def test_an_existing_file_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    for found in (FIRST, SECOND):
        with JsonLines(path) as lines:
            lines.write(found)
    assert list(read(path)) == [FIRST, SECOND]


@pytest.mark.parametrize("name", ["missing/out.jsonl", ".", "file/out.jsonl"])
def test_an_unwritable_path_is_an_error_on_entering(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / name
    with pytest.raises(UsageError, match=f"--out {path}: can't be written .*; name a file"), JsonLines(path):
        pass
    assert not (tmp_path / "missing").exists()


def test_a_device_file_can_be_written_to() -> None:
    with JsonLines(Path("/dev/null")) as lines:
        lines.write(FIRST)


@pytest.mark.parametrize("kept", [1, 5, 12, 100, -1])
def test_a_half_written_last_line_is_skipped_with_a_warning(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(to_json(FIRST) + "\n" + to_json(SECOND)[:kept])
    with pytest.warns(UserWarning, match="line 2: half-written"):
        assert list(read(path)) == [FIRST]


def test_a_run_appends_below_a_half_written_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(to_json(FIRST)[:100])
    with JsonLines(path) as lines:
        lines.write(SECOND)
    with pytest.warns(UserWarning, match="line 1: half-written"):
        assert list(read(path)) == [SECOND]


def test_a_complete_last_line_without_a_newline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(to_json(FIRST))
    with JsonLines(path) as lines:
        lines.write(SECOND)
    assert list(read(path)) == [FIRST, SECOND]


@pytest.mark.parametrize("line", ["hello", "[1]", '{"schema": 99}', '{"schema": 1, "problem": "p"}'])
def test_the_error_for_a_line_that_is_not_a_result_has_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(f"{to_json(FIRST)}\n\n{line}\n")
    with pytest.raises(ValueError, match=r"out\.jsonl, line 3: "):
        list(read(path))


def test_writing_to_a_closed_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not open"):
        JsonLines(tmp_path / "out.jsonl").write(FIRST)
