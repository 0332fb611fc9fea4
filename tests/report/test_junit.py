from __future__ import annotations

import os
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlinebench.errors import CannotWrite, UsageError
from inlinebench.report.formats.junit import check_place, write
from inlinebench.results.result import Result, Verdict

from .samples import FAILURES, any_result, result


def suite_of(path: Path) -> ElementTree.Element:
    suite = ElementTree.parse(path).getroot().find("testsuite")
    assert suite is not None
    return suite


def test_each_result_is_a_test_case_with_its_outcome(tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    write([result("p/naive", seconds=1.25)] + [result("p/naive", verdict, shape="odd") for verdict in FAILURES], path)
    passed, *others = suite_of(path)
    assert passed.attrib == {"classname": "p", "name": "naive[full]", "time": "1.250"}
    assert len(passed) == 0
    outcomes = {case[0].get("type"): case[0].tag for case in others}
    expected = {str(verdict): "failure" for verdict in FAILURES} | {"skipped": "skipped", "internal_error": "error"}
    assert outcomes == expected


def test_the_suite_counts_its_cases(tmp_path: Path) -> None:
    verdicts = (Verdict.PASSED, Verdict.WRONG, Verdict.CRASHED, Verdict.SKIPPED, Verdict.INTERNAL_ERROR)
    write([result(verdict=verdict) for verdict in verdicts], tmp_path / "out.xml")
    counts = {"name": "inlinebench", "time": "0.000", "tests": "5", "failures": "2", "errors": "1", "skipped": "1"}
    assert suite_of(tmp_path / "out.xml").attrib == counts


def test_a_failure_has_its_reason_and_log(tmp_path: Path) -> None:
    reason = "x.cu(3): error: <oops> & more\nsecond line"
    write([result(verdict=Verdict.BUILD_FAILED, reason=reason, log="\x1b[31mred\x00\ud800")], tmp_path / "out.xml")
    (case,) = suite_of(tmp_path / "out.xml")
    failure, output = case
    assert failure.get("message") == "build_failed: x.cu(3): error: <oops> & more"
    assert failure.text == "build_failed: x.cu(3): error: <oops> & more\n  | second line"
    assert (output.tag, output.text) == ("system-out", r"  | \x1b[31mred\x00\ud800")


@given(st.lists(any_result(), max_size=4))
def test_any_results_make_valid_xml(results: list[Result]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "out.xml")
        write(results, path)
        assert len(suite_of(path)) == len(results)


def test_an_existing_file_is_replaced_and_no_other_file_is_left(tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    path.write_text("old")
    check_place(path)
    assert path.read_text() == "old"
    write([result()], path)
    assert len(suite_of(path)) == 1
    assert os.listdir(tmp_path) == ["out.xml"]


def test_a_failed_write_leaves_the_existing_file_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise OSError(28, "disk full")

    path = tmp_path / "out.xml"
    path.write_text("old")
    monkeypatch.setattr(ElementTree.ElementTree, "write", fail)
    with pytest.raises(CannotWrite, match="disk full"):
        write([result()], path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.xml"]


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "out.xml").symlink_to(tmp_path / "real.xml")
    write([result()], tmp_path / "out.xml")
    assert (tmp_path / "out.xml").is_symlink()
    assert len(suite_of(tmp_path / "real.xml")) == 1


@pytest.mark.parametrize("name", ["missing/out.xml", ".", "file/out.xml", "/dev/null"])
def test_an_unwritable_path_is_an_error_before_the_run(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / name
    with pytest.raises(UsageError, match=f"--junit {path}: .*; name "):
        check_place(path)
    assert os.listdir(tmp_path) == ["file"]
